// The operations of a GPU's stream that are about experts (cuda_ops.h).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "backend/cuda/cuda_ops_parts.h"
#include "backend/cuda/find_missing.h"
#include "backend/cuda/float_rows.h"
#include "backend/cuda/route.h"
#include "backend/cuda/step_rows.h"
#include "backend/cuda/table_changes.h"

namespace sluice::backend::cuda {
namespace {

using Use = CudaScratch::Use;

bool has_same_types(const ExpertsView& e) {
  if (quant::is_float(e.gate.type) || quant::is_float(e.down.type)) return false;
  if (e.gate.type != e.up.type) return false;
  return !e.shared_gate || (e.shared_gate.type == e.gate.type && e.shared_up.type == e.gate.type &&
                            e.shared_down.type == e.down.type);
}

void require_woven(const WeightView& w) {
  require(!w || quant::is_float(w.type) || w.layout == quant::Layout::stripes,
          "experts must be woven by eight rows");
}

// Kernels copy by 16 bytes, so every stripe must begin at a multiple of that (of MXFP4, rows of an
// odd number of blocks do not).
bool can_land(const ExpertsView& e) {
  return std::ranges::all_of(std::array{&e.gate, &e.up, &e.down}, [](const WeightView* w) {
    return 8 * quant::row_bytes(w->type, w->n_cols) % 16 == 0;
  });
}

ExpertShape shape_of(const ExpertsView& e, int n_used) {
  for (const WeightView* w :
       {&e.gate, &e.up, &e.down, &e.shared_gate, &e.shared_up, &e.shared_down}) {
    require_woven(*w);
  }
  return {e.gate.type,
          e.down.type,
          static_cast<int>(e.gate.n_cols),
          static_cast<int>(e.gate.n_rows),
          e.shared_gate ? static_cast<int>(e.shared_gate.n_rows) : 0,
          n_used};
}

}  // namespace

// Rows of whole chunks are the same to the engine and to kernels; others are copied.
Int8Rows CudaOps::input_rows(const ExpertInputView& a) {
  if (a.q && a.n_cols % 256 == 0) return {a.q, a.d, a.y, static_cast<int>(a.n_cols / 256)};
  return int8_rows(Use::expert_input, a.n_rows, a.n_cols);
}

void CudaOps::copy_rows(const ExpertInputView& a, const Int8Rows& rows, bool to_view) {
  if (!a.q || rows.q == a.q) return;
  const auto copy = [&](auto* view, auto* padded, int64_t per_row, int64_t stride) {
    const auto n = static_cast<size_t>(per_row) * sizeof(*view);
    const auto n_padded = static_cast<size_t>(stride) * sizeof(*view);
    CHECK_CUDA(cudaMemcpy2DAsync(to_view ? view : padded, to_view ? n : n_padded,
                                 to_view ? padded : view, to_view ? n_padded : n, n,
                                 static_cast<size_t>(a.n_rows), cudaMemcpyDeviceToDevice,
                                 how_.stream));
  };
  copy(a.q, rows.q, a.n_cols, int64_t{256} * rows.n_chunks);
  copy(a.d, rows.d, a.n_cols / 32, int64_t{8} * rows.n_chunks);
  copy(a.y, rows.y, a.n_cols / 32, int64_t{8} * rows.n_chunks);
}

// Without the places where its results go.
Route CudaOps::route_of(ConstRowsView x, const NormView& norm, const RouterView& router) {
  const WeightView& w = router.weight;
  require(quant::is_float(w.type) && w.layout == quant::Layout::rows, "a router of type ",
          quant::type_name(w.type), " is not read by GPUs yet");
  require(w.n_rows <= kMostExperts && router.n_used <= kMaxUsed, router.n_used, " of ", w.n_rows,
          " experts; GPUs choose ", kMaxUsed, " of ", kMostExperts, " at most");
  auto* const zeros = scratch_.get<Zeros>(Use::zeros, 1);
  Route p;
  p.x = x.data;
  p.norm = norm.weight;
  p.eps = norm.eps;
  p.n_rows = static_cast<int>(x.n_rows);
  p.d_model = static_cast<int>(x.n_cols);
  p.type = w.type;
  p.weight = w.data;
  p.shared_gate = router.shared_gate;
  p.n_experts = static_cast<int>(w.n_rows);
  p.n_used = router.n_used;
  p.renormalize = router.renormalize;
  p.table = zeros->table;
  p.list = expert_list();
  p.scores = scratch_.get<float>(Use::scores, int64_t{kMaxRows} * (kMostExperts + 1));
  p.n_done = &zeros->n_routed;
  return p;
}

// The number of groups stands in front of them.
ExpertList CudaOps::expert_list(Use use) {
  auto* const groups = scratch_.get<ExpertGroup>(use, int64_t{kMaxRows} * kMaxUsed + 2);
  return {reinterpret_cast<int32_t*>(groups), groups + 1};
}

// Where nothing is recorded, the list of experts is left to experts() or find_experts().
void CudaOps::route(ConstRowsView x, const NormView& norm, const RouterView& router,
                    const ExpertInputView& a, const RoutingView& routing) {
  if (x.n_rows > kMaxRows) return wide_route(x, norm, router, a, routing);
  const auto add = std::exchange(held_add_, {});
  enqueue([&](const Attended&) {
    Route p = route_of(x, norm, router);
    p.a = input_rows(a);
    p.experts = routing.experts;
    p.weights = routing.weights;
    p.shared_weights = router.shared_gate ? routing.shared_weights : nullptr;
    const HeldRoute held{p, a, routing.forced, add};
    if (stream_.recording() != 0) {
      held_ = held;
    } else {
      launch_route(held);
    }
  });
}

// Whether the scores are made by what is added before them, without a kernel of their own.
bool CudaOps::add_scores(const HeldRoute& held) {
  const Route& p = held.route;
  const bool is_plain = !held.a.f32 && p.a.q == held.a.q;  // gate_up writes nothing else
  if (!held.add || held.add->x != p.x || p.ranks || found_.any || !is_plain) return false;
  // Only where it makes the whole row that the router reads.
  if (held.add->n_rows != p.n_rows || held.add->weight.n_rows != p.d_model) return false;
  ProjectAdd add = *held.add;
  uint64_t* const sums = scratch_.get<Zeros>(Use::zeros, 1)->score_sums;
  add.scores = {sums, p.norm, p.d_model, p.type, p.weight, p.shared_gate, p.n_experts};
  cuda::project_add(add, how_);
  Ranking& r = found_.ranking;
  r.sums = sums, r.x = p.x, r.norm = p.norm, r.eps = p.eps;
  return true;
}

void CudaOps::launch_route(const HeldRoute& held) {
  if (held.add) cuda::project_add(*held.add, how_);
  const Route& p = held.route;
  cuda::route(p, how_);
  copy_rows(held.a, p.a, true);
  if (held.a.f32) {
    norm_rows({p.x, nullptr, p.norm, p.eps, p.n_rows, p.d_model, held.a.f32}, how_);
  }
  if (held.forced && p.ranks) force_experts({held.forced, p.experts, p.n_rows * p.n_used}, how_);
}

void CudaOps::launch_held() {
  if (const auto held = std::exchange(held_, {})) launch_route(*held);
}

void CudaOps::experts(const ExpertsView& experts, const ExpertInputView& a,
                      const RoutingView& routing, RowsView x) {
  if (a.n_rows > kMaxRows) return wide_experts(experts, a, routing, x);
  enqueue([&](const Attended&) {
    require(experts.table, "experts stand in no table of addresses");
    list_found(experts, experts.table, a.n_rows, routing, nullptr);
    compute_list(experts, a);
    add_list(routing, x);
  });
}

void CudaOps::look_at(const ExpertsView& experts, int n_rows, int n_used) {
  found_ = {.shape = shape_of(experts, n_used), .n_rows = n_rows};
  if (!has_same_types(experts)) found_.any = experts;
}

// The list is the last one's until another is made: an operation behind it reads it.
void CudaOps::list_found(const ExpertsView& experts, const std::byte* const* table, int64_t n_rows,
                         const RoutingView& routing, const int32_t* n_live) {
  const ExpertLayout layout(experts);
  look_at(experts, rows_of(n_rows), routing.n_used);
  list_experts({routing.experts,
                found_.n_rows,
                routing.n_used,
                reinterpret_cast<const uint8_t* const*>(table),
                static_cast<int64_t>(layout.up_at),
                static_cast<int64_t>(layout.down_at),
                {bytes(experts.shared_gate.data), bytes(experts.shared_up.data),
                 bytes(experts.shared_down.data)},
                expert_list(),
                n_live},
               how_);
}

void CudaOps::compute_list(const ExpertsView& experts, const ExpertInputView& a) {
  const ExpertShape& shape = found_.shape;
  require(experts.gate.n_cols == shape.d_model && a.n_rows == found_.n_rows,
          "experts are computed that were not looked up");
  const Int8Rows in = input_rows(a);
  copy_rows(a, in, false);
  found_.hidden = int8_rows(Use::hidden, int64_t{found_.n_rows} * (shape.n_used + 1),
                            std::max(shape.d_ff, shape.shared_d_ff));
  if (found_.any) {
    compute_any(*found_.any, a);
    return;
  }
  if (found_.missing) found_.ranking.missing = &*found_.missing;
  gate_up({shape, found_.n_rows, expert_list(), in, found_.hidden, found_.ranking, found_.landing},
          how_);
}

void CudaOps::add_list(const RoutingView& routing, RowsView x) {
  if (found_.any) {
    add_any(*found_.any, routing, x);
    return;
  }
  Down p{found_.shape,    found_.n_rows,          expert_list(), found_.hidden,
         routing.weights, routing.shared_weights, nullptr,       x.data};
  p.n_live = found_.n_live;
  p.host = found_.host;
  p.outside = p.host.rows;
  p.landing = found_.landing;
  p.down_at = found_.down_at;
  p.sums = found_.ranking.sums;
  if (p.sums) p.n_sums = kMostRanked + 1;
  down(p, how_);
}

// The prediction is made whether it is wanted or not: a recording cannot tell before it is
// replayed.
void CudaOps::foresee(const ForeseeView& foresee, ConstRowsView x, const NormView& norm,
                      const RouterView& router, const RoutingView& prediction) {
  enqueue([&](const Attended&) {
    if (router.weight) {
      Route p = route_of(x, norm, router);
      p.shared_gate = nullptr;
      p.a = int8_rows(Use::foreseen_input, x.n_rows, x.n_cols);
      p.scores = scratch_.get<float>(Use::foreseen_scores, int64_t{kMaxRows} * (kMostExperts + 1));
      p.list = expert_list(Use::foreseen_groups);
      p.experts = prediction.experts;
      p.weights = prediction.weights;
      cuda::route(p, how_);
    }
    tell_routed({foresee.step, request_number(0, foresee.layer), static_cast<bool>(router.weight),
                 foresee.wanted, foresee.news},
                how_);
  });
}

bool CudaOps::lists_itself(const HeldRoute& held, const LookupView& lookup,
                           const ExpertInputView& a, const RoutingView& routing) const {
  return held.route.experts == routing.experts && held.a.n_rows == a.n_rows && lookup.part == 0;
}

// Experts are ranked by those who compute them, who of a single row also look for those that are
// missing; but not among staged ones: a copy that arrives meanwhile would be there for some of them
// only. Others are listed by the router, if none is forced.
void CudaOps::route_and_list(HeldRoute held, const ExpertsView& experts, const LookupView& lookup,
                             const ExpertInputView& a, const RoutingView& routing) {
  Route& p = held.route;
  const ExpertLayout layout(experts);
  p.table = reinterpret_cast<const uint8_t* const*>(lookup.table);
  p.up_at = static_cast<int64_t>(layout.up_at);
  p.down_at = static_cast<int64_t>(layout.down_at);
  p.shared[0] = bytes(experts.shared_gate.data);
  p.shared[1] = bytes(experts.shared_up.data);
  p.shared[2] = bytes(experts.shared_down.data);
  p.n_live = lookup.n_live;
  look_at(experts, p.n_rows, p.n_used);
  const bool may_force_or_miss = held.forced || lookup.log.counts;
  p.ranks = !lookup.staged.empty() || found_.any || !can_rank_later(p) ||
            (p.n_rows > 1 && may_force_or_miss);
  if (!p.ranks) {
    found_.ranking = ranking_of(p);
    found_.ranking.forced = held.forced;
    if (lookup.log.counts) found_.missing = missing_of(experts, lookup, a, routing);
  }
  if (!add_scores(held)) launch_route(held);
  if (p.ranks && held.forced) {
    list_found(experts, lookup.table, a.n_rows, routing, lookup.n_live);
  }
}

// Without a log all experts are in the table.
void CudaOps::find_experts(const ExpertsView& experts, const LookupView& lookup,
                           const ExpertInputView& a, const RoutingView& routing) {
  auto held = std::exchange(held_, {});
  if (held && !lists_itself(*held, lookup, a, routing)) held_.swap(held);
  enqueue([&](const Attended&) {
    if (held) {
      route_and_list(*held, experts, lookup, a, routing);
    } else {
      list_found(experts, lookup.table, a.n_rows, routing, lookup.n_live);
    }
    found_.n_live = lookup.n_live;
    if (!lookup.log.counts) return;
    if (!found_.missing) find_missing(missing_of(experts, lookup, a, routing), how_);
    found_.host = {.step = lookup.step,
                   .number = request_number(0, lookup.layer, lookup.part),
                   .answered = &mailbox_.words->answered,
                   .fault = &mailbox_.words->fault,
                   .relay = &scratch_.get<Zeros>(Use::zeros, 1)->relay,
                   .rows = mailbox_.answers,
                   .answer_ns = reinterpret_cast<const long long*>(&mailbox_.head->answer_ns),
                   .began = scratch_.get<uint64_t>(Use::began, 1),
                   .log = lookup.log.counts};
  });
}

FindMissing CudaOps::missing_of(const ExpertsView& experts, const LookupView& lookup,
                                const ExpertInputView& a, const RoutingView& routing) {
  const ExpertLayout layout(experts);
  FindMissing p;
  p.list = expert_list();
  p.has_shared = static_cast<bool>(experts.shared_gate);
  p.experts = routing.experts;
  p.weights = routing.weights;
  p.n_rows = found_.n_rows;
  p.n_used = routing.n_used;
  p.n_live = lookup.n_live;
  p.step = lookup.step;
  p.number = request_number(0, lookup.layer, lookup.part);
  p.goes_on = lookup.part > 0;
  require(lookup.staged.size() <= kMostStaged, lookup.staged.size(), " staged experts; ",
          kMostStaged, " at most");
  std::ranges::copy(lookup.staged, p.staged);
  p.n_staged = static_cast<int>(lookup.staged.size());
  p.host = bytes(lookup.host);
  p.stride = static_cast<int64_t>(layout.stride);
  p.up_at = static_cast<int64_t>(layout.up_at);
  p.down_at = static_cast<int64_t>(layout.down_at);
  p.expert_bytes = layout.n_bytes;
  p.link_share = lookup.link_share;
  p.a = a;
  p.mailbox = mailbox_;
  p.relay = &scratch_.get<Zeros>(Use::zeros, 1)->relay;
  p.landing = lookup.landing;
  p.lands = lookup.landing.data && p.n_rows == 1 && !found_.any && can_land(experts);
  if (p.lands) {
    found_.landing = {reinterpret_cast<uint8_t*>(lookup.landing.data),
                      static_cast<int64_t>(lookup.landing.place_bytes)};
    found_.down_at = p.down_at;
  }
  p.log = lookup.log;
  p.began = scratch_.get<uint64_t>(Use::began, 1);
  return p;
}

void CudaOps::change_table(const TableChangesView& changes) {
  enqueue([&](const Attended&) { cuda::change_table(changes, how_); });
}

void CudaOps::compute_found(const ExpertsView& experts, const ExpertInputView& a) {
  enqueue([&](const Attended&) { compute_list(experts, a); });
}

void CudaOps::add_found(const RoutingView& routing, RowsView x) {
  enqueue([&](const Attended&) { add_list(routing, x); });
}

}  // namespace sluice::backend::cuda
