// The operations of a GPU's stream for steps of more than 16 rows (cuda_ops.h): experts and
// projections by wide_gemm.h, attention by wide_attend.h, the router by wide_route.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "backend/cuda/attend_shape.h"
#include "backend/cuda/float_rows.h"
#include "backend/cuda/project.h"
#include "backend/cuda/quantize_rows.h"
#include "backend/cuda/wide_attend.h"
#include "backend/cuda/wide_experts.h"
#include "backend/cuda/wide_route.h"

namespace sluice::backend::cuda {
namespace {

using quant::Type;
using Use = CudaScratch::Use;

// A step's row r * kMaxRows .. for each r.
template <typename Slice>
void each_slice(int64_t n_rows, const Slice& slice) {
  for (int64_t first = 0; first < n_rows; first += kMaxRows) {
    slice(first, std::min<int64_t>(kMaxRows, n_rows - first));
  }
}

RowsView some_rows(const RowsView& v, int64_t first, int64_t n) {
  return {v.row(first), n, v.n_cols};
}
ConstRowsView some_rows(const ConstRowsView& v, int64_t first, int64_t n) {
  return {v.row(first), n, v.n_cols};
}

bool is_woven(const WeightView& w) {
  return !quant::is_float(w.type) && w.layout == quant::Layout::stripes &&
         w.n_rows % quant::kStripeRows == 0;
}

void require_wide(const WeightView& gate, const WeightView& up, const WeightView& down) {
  require(is_woven(gate) && is_woven(up) && is_woven(down) && gate.type == up.type,
          "experts of types ", quant::type_name(gate.type), ", ", quant::type_name(up.type),
          " and ", quant::type_name(down.type),
          " are not computed by GPUs for more than 16 rows yet: they must be quantised, and gate "
          "and up of one type");
}

// Up to so many rows the projections are those of decode steps, sixteen rows at a time: with few
// rows the items of wide_gemm.h are fewer than SMs (16 of the 30B-A3B shape's output). The bits are
// the same (bench_gpu_wide_trunk, docs/decisions/0018).
constexpr int64_t kFewRowsIn = 32;
constexpr int64_t kFewRowsAdded = 48;

// Of the weights that are woven; columns of `out` are those of all.
ProjectRows few_rows(const Int8Rows& in, int64_t n_rows, std::span<const Projection> projections,
                     const RowsView& out, bool adds) {
  ProjectRows p;
  p.in = in;
  p.n_rows = static_cast<int>(n_rows);
  p.n_cols = static_cast<int>(projections.front().weight.n_cols);
  p.out = out.data;
  p.out_stride = static_cast<int>(out.n_cols);
  p.adds = adds;
  int column = 0;
  for (const Projection& one : projections) {
    const WeightView& w = one.weight;
    const auto n = static_cast<int>(w.n_rows);
    if (is_woven(w)) p.weights[p.n_weights++] = {w.type, bytes(w.data), n, one.bias, column};
    column += n;
  }
  return p;
}

// Large tiles with their sums in registers (wide_block.cu) are faster for all rows times one
// weight, however many there are, and for experts with wide_block_rows() each, on average; the bits
// are the same (bench_gpu_wide, docs/decisions/0018). Where rows went does not count.
bool has_blocks(Type type, int64_t n_cols, const Launch& how) {
  return wide_block_height(type, n_cols, how) > 0;
}
int tile_height(const WeightView& w, bool by_blocks, const Launch& how) {
  return by_blocks ? wide_block_height(w.type, w.n_cols, how) : wide_tile_height(w.type, how);
}
void multiply(const WideGemm& p, bool by_blocks, const Launch& how) {
  by_blocks ? wide_block(p, how) : wide_gemm(p, how);
}
void multiply_all_rows(const WideGemm& p, const Launch& how) {
  multiply(p, has_blocks(p.type, p.n_cols, how), how);
}

// All rows times one weight, into columns from out.data on.
WideGemm all_rows(const WeightView& w, const Int8Rows& in, int64_t n_rows, const Launch& how) {
  WideGemm p;
  p.type = w.type;
  p.n_cols = static_cast<int>(w.n_cols);
  p.n_out = static_cast<int>(w.n_rows);
  p.weights[0] = bytes(w.data);
  p.in = in;
  p.rows.n_rows = static_cast<int>(n_rows);
  p.height = tile_height(w, has_blocks(w.type, w.n_cols, how), how);
  return p;
}

}  // namespace

void CudaOps::wide_project_in(ConstRowsView x, const NormView& norm,
                              std::span<const Projection> projections, RowsView out) {
  enqueue([&](const Attended&) {
    // Others than stripes first, since they use the same memory for their rows.
    int64_t column = 0;
    for (const Projection& one : projections) {
      if (!is_woven(one.weight)) {
        each_slice(x.n_rows, [&](int64_t first, int64_t n) {
          project_one(some_rows(x, first, n), norm, one, some_rows(out, first, n), column);
        });
      }
      column += one.weight.n_rows;
    }
    const Int8Rows in = int8_rows(Use::input, x.n_rows, x.n_cols);
    quantize_rows({x.data, nullptr, norm.weight, norm.eps, static_cast<int>(x.n_rows),
                   static_cast<int>(x.n_cols), in},
                  how_);
    if (x.n_rows <= kFewRowsIn && projections.size() <= kMaxProjections) {
      const ProjectRows p = few_rows(in, x.n_rows, projections, out, false);
      if (p.n_weights > 0) project_rows(p, how_);
      return;
    }
    column = 0;
    bool is_first = true;
    for (auto one = projections.begin(); one != projections.end();) {
      if (!is_woven(one->weight)) {
        column += (one++)->weight.n_rows;
        continue;
      }
      WideGemm p = all_rows(one->weight, in, x.n_rows, how_);
      p.out = out.data + column;
      p.out_stride = static_cast<int>(out.n_cols);
      p.bias = one->bias;
      column += one->weight.n_rows;
      for (++one; one != projections.end() && one->weight.type == p.type; ++one) {
        if (!is_woven(one->weight) || p.n_more == kMoreMatrices) break;
        p.more[p.n_more++] = {bytes(one->weight.data), one->bias,
                              static_cast<int>(one->weight.n_rows)};
        column += one->weight.n_rows;
      }
      p.begins_beside = !std::exchange(is_first, false);
      multiply_all_rows(p, how_);
    }
  });
}

void CudaOps::wide_project_add(ConstRowsView in, const Projection& projection, RowsView x) {
  if (!is_woven(projection.weight)) {
    return each_slice(in.n_rows, [&](int64_t first, int64_t n) {
      project_add(some_rows(in, first, n), projection, some_rows(x, first, n));
    });
  }
  enqueue([&](const Attended& attended) {
    Int8Rows rows = attended.int8;
    if (attended.f32 != in.data) {
      rows = int8_rows(Use::input, in.n_rows, in.n_cols);
      quantize_rows({in.data, nullptr, nullptr, 0.0f, static_cast<int>(in.n_rows),
                     static_cast<int>(in.n_cols), rows},
                    how_);
    }
    if (in.n_rows <= kFewRowsAdded) {
      return project_rows(few_rows(rows, in.n_rows, {&projection, 1}, x, true), how_);
    }
    WideGemm p = all_rows(projection.weight, rows, in.n_rows, how_);
    p.out = x.data;
    p.out_stride = static_cast<int>(x.n_cols);
    p.bias = projection.bias;
    p.adds = true;
    multiply_all_rows(p, how_);
  });
}

// Caches of other types by attend_any: right, and not fast. (Their keys and values, rounded to f16,
// would change logits by more than noise does.)
void CudaOps::wide_attend(RowsView qkv, const AttentionView& attention, const StepView& step,
                          const KvLayerView& kv, RowsView out) {
  enqueue([&](const Attended&) {
    Attend of = shape_of(attention, step, kv);
    of.qkv = qkv.data;
    const bool is_half = kv.k_type == quant::Type::f16 || kv.k_type == quant::Type::bf16;
    if (!is_half || kv.k_type != kv.v_type) {
      attend_any(of, attention, step, kv, out);
      return;
    }
    of.out = out.data;
    of.out_int8 = int8_rows(Use::attended, out.n_rows, out.n_cols);
    const int64_t n_halves = wide_query_halves(step.n_rows, of.n_heads, of.head_dim);
    auto* const queries = scratch_.get(
        Use::queries, static_cast<uint64_t>(2 * n_halves + step.n_rows * of.n_heads * 4));
    cuda::wide_attend(
        {of, kv_page(kv.k_type, of.n_kv_heads, of.head_dim, kv.page_tokens), attention.q_norm.eps,
         attention.k_norm.eps, reinterpret_cast<uint16_t*>(queries),
         reinterpret_cast<float*>(queries + 2 * n_halves), step.n_past},
        how_);
    attended_ = {out.data, of.out_int8};
  });
}

void CudaOps::wide_route(ConstRowsView x, const NormView& norm, const RouterView& router,
                         const ExpertInputView& a, const RoutingView& routing) {
  enqueue([&](const Attended&) {
    WideRoute p{route_of(x, norm, router)};
    p.of.scores = scratch_.get<float>(Use::scores, x.n_rows * (p.of.n_experts + 1));
    p.of.a = input_rows(a);
    p.of.experts = routing.experts;
    p.of.weights = routing.weights;
    p.of.shared_weights = router.shared_gate ? routing.shared_weights : nullptr;
    const int64_t n_cols = wide_route_cols(p.of.d_model);
    p.weighted = scratch_.get<float>(Use::normed, x.n_rows * (n_cols + 1));
    p.scales = p.weighted + x.n_rows * n_cols;
    cuda::wide_route(p, how_);
    copy_rows(a, p.of.a, true);
    if (a.f32) {
      norm_rows({x.data, nullptr, norm.weight, norm.eps, p.of.n_rows, p.of.d_model, a.f32}, how_);
    }
    if (routing.forced) {
      force_experts({routing.forced, routing.experts, p.of.n_rows * p.of.n_used}, how_);
    }
  });
}

void CudaOps::wide_experts(const ExpertsView& experts, const ExpertInputView& a,
                           const RoutingView& routing, RowsView x) {
  SortView sort;
  sort.pairs.n_used = routing.n_used;
  enqueue([&](const Attended&) {
    const int64_t n_experts = experts.gate.n_mats;
    sort.pairs.first = scratch_.get<int32_t>(Use::pairs, n_experts + 1 + a.n_rows * routing.n_used);
    sort.pairs.slots = sort.pairs.first + n_experts + 1;
  });
  sort_pairs(experts, sort, routing, a.n_rows);
  compute_sorted(experts, sort.pairs, a);
  add_sorted(experts, routing, {}, x);
}

void CudaOps::sort_pairs(const ExpertsView& experts, const SortView& sort,
                         const RoutingView& routing, int64_t n_rows) {
  enqueue([&](const Attended&) {
    SortPairs p;
    p.experts = routing.experts;
    p.n_slots = static_cast<int>(n_rows * routing.n_used);
    p.n_experts = static_cast<int>(experts.gate.n_mats);
    p.first = sort.pairs.first;
    p.slots = sort.pairs.slots;
    p.n_pairs = sort.n_pairs;
    p.told = sort.told;
    p.step = sort.step;
    p.layer = static_cast<uint32_t>(request_number(0, sort.layer) >> 16);
    cuda::sort_pairs(p, how_);
  });
}

// Of all pairs and of the shared expert.
float* CudaOps::wide_rows(int64_t n_rows, int n_used, int64_t d_model) {
  return scratch_.get<float>(Use::outside, n_rows * (n_used + 1) * d_model);
}

void CudaOps::compute_sorted(const ExpertsView& e, const SortedPairs& pairs,
                             const ExpertInputView& a) {
  enqueue([&](const Attended&) {
    const Int8Rows in = input_rows(a);
    copy_rows(a, in, false);
    WideHidden to;
    to.n_rows = a.n_rows;
    to.n_routed = a.n_rows * pairs.n_used;
    to.d_model = a.n_cols;
    to.h = int8_rows(Use::hidden, to.n_routed + a.n_rows,
                     std::max(e.gate.n_rows, e.shared_gate ? e.shared_gate.n_rows : 0));
    to.outs = wide_rows(a.n_rows, pairs.n_used, a.n_cols);
    compute_routed(e, pairs, in, to);
    if (e.shared_gate) compute_shared(e, in, to);
  });
}

// One list of tiles for both products: as high as either has room for.
void CudaOps::compute_routed(const ExpertsView& e, const SortedPairs& pairs, const Int8Rows& in,
                             const WideHidden& to) {
  require(e.table, "experts stand in no table of addresses");
  require_wide(e.gate, e.up, e.down);
  const ExpertLayout layout(e);
  const int n_experts = static_cast<int>(e.gate.n_mats);
  WideGemm p = all_rows(e.gate, in, 0, how_);
  const bool by_blocks = to.n_routed >= int64_t{wide_block_rows(how_)} * n_experts &&
                         has_blocks(e.gate.type, e.gate.n_cols, how_) &&
                         has_blocks(e.down.type, e.down.n_cols, how_);
  p.height = std::min(tile_height(e.gate, by_blocks, how_), tile_height(e.down, by_blocks, how_));
  const int most = most_tiles(static_cast<int>(to.n_routed), n_experts, p.height);
  auto* const tiles = scratch_.get<WideTile>(Use::tiles, most + 1);
  auto* const n_tiles = reinterpret_cast<int32_t*>(tiles + most);
  cut_tiles({pairs.first, reinterpret_cast<const uint8_t* const*>(e.table), n_experts, p.height,
             tiles, n_tiles},
            how_);
  p.rows = {tiles, n_tiles, most, pairs.slots, pairs.n_used};
  p.weights_at[1] = static_cast<int64_t>(layout.up_at);
  p.h = to.h;
  multiply(p, by_blocks, how_);
  WideGemm down = all_rows(e.down, to.h, 0, how_);
  down.height = p.height;
  down.rows = p.rows;
  down.rows.slots_per_row = 1;
  down.weights_at[0] = static_cast<int64_t>(layout.down_at);
  down.out = to.outs;
  down.out_stride = static_cast<int>(to.d_model);
  multiply(down, by_blocks, how_);
}

void CudaOps::compute_shared(const ExpertsView& e, const Int8Rows& in, const WideHidden& to) {
  require_wide(e.shared_gate, e.shared_up, e.shared_down);
  const bool by_blocks = has_blocks(e.shared_gate.type, e.shared_gate.n_cols, how_) &&
                         has_blocks(e.shared_down.type, e.shared_down.n_cols, how_);
  WideGemm p = all_rows(e.shared_gate, in, to.n_rows, how_);
  p.height = tile_height(e.shared_gate, by_blocks, how_);
  p.weights[1] = bytes(e.shared_up.data);
  p.rows.first_out = to.n_routed;
  p.h = to.h;
  multiply(p, by_blocks, how_);
  WideGemm down = all_rows(e.shared_down, to.h, to.n_rows, how_);
  down.height = tile_height(e.shared_down, by_blocks, how_);
  down.rows.first_in = down.rows.first_out = to.n_routed;
  down.out = to.outs;
  down.out_stride = static_cast<int>(to.d_model);
  multiply(down, by_blocks, how_);
}

void CudaOps::add_sorted(const ExpertsView& experts, const RoutingView& routing,
                         const LayerLogView& log, RowsView x) {
  enqueue([&](const Attended&) {
    SumPairs p;
    p.outs = wide_rows(x.n_rows, routing.n_used, x.n_cols);
    p.weights = routing.weights;
    p.shared_weights = experts.shared_gate ? routing.shared_weights : nullptr;
    p.n_rows = static_cast<int>(x.n_rows);
    p.n_used = routing.n_used;
    p.d_model = static_cast<int>(x.n_cols);
    p.x = x.data;
    if (log.counts) {
      p.counts = reinterpret_cast<uint64_t*>(log.counts);
      p.n_words = sizeof(LayerLog) / sizeof(uint64_t);
      p.n_logged = &log.counts->n_rows;
      p.experts = routing.experts;
      p.routed = reinterpret_cast<RoutedPair*>(log.routed);
    }
    sum_pairs(p, how_);
  });
}

}  // namespace sluice::backend::cuda
