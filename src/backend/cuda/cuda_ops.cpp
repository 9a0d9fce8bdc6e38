// See cuda_ops.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cuda_ops.h"

#include <algorithm>
#include <bit>

#include "backend/cuda/attend.h"
#include "backend/cuda/pick.h"
#include "backend/cuda/project.h"
#include "backend/cuda/quantize_rows.h"
#include "backend/cuda/route.h"
#include "backend/cuda/step_rows.h"

namespace sluice::backend::cuda {
namespace {

using Use = CudaScratch::Use;

constexpr int kMostHeads = 256;
constexpr int kMostExperts = 1024;

// What stands in zeros: counters of attend and route, and a table without addresses.
struct Zeros {
  unsigned n_attended[kMaxRows * kMostHeads];
  unsigned n_routed;
  const uint8_t* table[kMostExperts];
};

void require(bool holds, const auto&... what) {
  if (!holds) throw Error(Errc::device, cat("CUDA: ", what...));
}

int rows_of(int64_t n_rows) {
  require(n_rows >= 1 && n_rows <= kMaxRows, "a step of ", n_rows,
          " rows; steps of more than 16 rows do not run on GPUs yet");
  return static_cast<int>(n_rows);
}

const uint8_t* bytes(const std::byte* data) { return reinterpret_cast<const uint8_t*>(data); }

StripeWeight stripes(const WeightView& w, const float* bias) {
  require(!quant::is_float(w.type), "weights of type ", quant::type_name(w.type),
          " are not read by GPUs yet; quantise them");
  require(w.layout == quant::Layout::stripes && w.n_rows % quant::kStripeRows == 0,
          "weights must be woven by eight rows; one has ", w.n_rows);
  return {w.type, bytes(w.data), static_cast<int>(w.n_rows), bias};
}

ExpertShape shape_of(const ExpertsView& e, int n_used) {
  require(!quant::is_float(e.gate.type) && !quant::is_float(e.down.type),
          "experts of float types are not computed by GPUs yet");
  require(e.gate.layout == quant::Layout::stripes && e.down.layout == quant::Layout::stripes,
          "experts must be woven by eight rows");
  require(e.gate.type == e.up.type, "gate and up of an expert have different types (",
          quant::type_name(e.gate.type), ", ", quant::type_name(e.up.type),
          "), which GPUs do not read yet");
  ExpertShape shape{
      e.gate.type, e.down.type, static_cast<int>(e.gate.n_cols), static_cast<int>(e.gate.n_rows),
      0,           n_used};
  if (!e.shared_gate) return shape;
  require(e.shared_gate.type == e.gate.type && e.shared_up.type == e.gate.type &&
              e.shared_down.type == e.down.type,
          "a shared expert of other types than the routed ones is not computed by GPUs yet");
  shape.shared_d_ff = static_cast<int>(e.shared_gate.n_rows);
  return shape;
}

NormOfHeads norm_of(HeadNorm norm) {
  return norm == HeadNorm::none       ? NormOfHeads::none
         : norm == HeadNorm::per_head ? NormOfHeads::per_head
                                      : NormOfHeads::whole;
}

Attend shape_of(const AttentionView& a, const StepView& step, const KvLayerView& kv) {
  require(
      kv.k_type == kv.v_type && (kv.k_type == quant::Type::f16 || kv.k_type == quant::Type::bf16),
      "a KV cache of ", quant::type_name(kv.k_type), " and ", quant::type_name(kv.v_type),
      " is not read by GPUs yet; f16 and bf16 are");
  require(kv.page_tokens > 0 && std::has_single_bit(static_cast<unsigned>(kv.page_tokens)),
          "pages of ", kv.page_tokens, " tokens; GPUs need a power of two");
  require(a.head_norm == HeadNorm::none || a.q_norm.eps == a.k_norm.eps,
          "norms of q and k have different eps");
  require(a.n_heads <= kMostHeads, a.n_heads, " heads; ", kMostHeads, " at most");
  Attend p;
  p.n_rows = rows_of(step.n_rows);
  p.n_heads = a.n_heads;
  p.n_kv_heads = a.n_kv_heads;
  p.head_dim = a.head_dim;
  p.head_norm = norm_of(a.head_norm);
  p.q_norm = a.q_norm.weight;
  p.k_norm = a.k_norm.weight;
  p.eps = a.q_norm.eps;
  p.angles = step.angles;
  p.n_pairs = static_cast<int>(a.rope.frequencies.size());
  p.pairs_are_adjacent = a.rope.pairing == RopePairing::adjacent;
  p.sequences = step.sequences;
  p.max_length = static_cast<int>(step.table_stride) * kv.page_tokens;
  p.page_table = step.page_table;
  p.table_stride = static_cast<int>(step.table_stride);
  p.page_shift = std::countr_zero(static_cast<unsigned>(kv.page_tokens));
  p.kv_type = kv.k_type;
  p.k = reinterpret_cast<uint8_t*>(kv.k);
  p.v = reinterpret_cast<uint8_t*>(kv.v);
  return p;
}

}  // namespace

CudaOps::CudaOps(CudaDevice& device, CudaStream& stream, std::span<std::byte> scratch)
    : device_(device), stream_(stream), scratch_(device, scratch) {
  device_.make_current();
  how_ = launch_on(stream_.handle());
  CHECK_CUDA(cudaMemset(scratch_.get<Zeros>(Use::zeros, 1), 0, sizeof(Zeros)));
}

// Every operation but project_add forgets what attend left behind.
template <typename Work>
void CudaOps::enqueue(const Work& work) {
  const Attended attended = std::exchange(attended_, {});
  stream_.enqueue([&](cudaStream_t) { work(attended); });
}

void CudaOps::missing(const char* what) const {
  throw Error(Errc::device, cat("CUDA: ", what, " does not run on GPUs yet; use the CPU"));
}

Int8Rows CudaOps::int8_rows(Use use, int64_t n_rows, int64_t n_cols) {
  const int64_t n_chunks = (n_cols + 255) / 256, n = n_rows * n_chunks;
  std::byte* const q = scratch_.get(use, static_cast<uint64_t>(n) * (256 + 2 * 8 * sizeof(float)));
  auto* const d = reinterpret_cast<float*>(q + 256 * n);
  return {reinterpret_cast<int8_t*>(q), d, d + 8 * n, static_cast<int>(n_chunks)};
}

Buffer CudaOps::allocate(uint64_t n_bytes) { return device_.allocate(MemoryKind::device, n_bytes); }

void CudaOps::embed(const WeightView& table, const StepView& step, RowsView x) {
  enqueue([&](const Attended&) {
    require(quant::is_float(table.type), "embeddings of type ", quant::type_name(table.type),
            " are not read by GPUs yet; the host embeds");
    cuda::embed({table.type, table.data, step.tokens, step.n_live, static_cast<int>(x.n_rows),
                 static_cast<int>(x.n_cols), x.data},
                how_);
  });
}

void CudaOps::project_in(ConstRowsView x, const NormView& norm,
                         std::span<const Projection> projections, RowsView out) {
  enqueue([&](const Attended&) {
    require(projections.size() <= kMaxProjections, projections.size(),
            " projections at once; four at most");
    ProjectIn p;
    p.x = x.data;
    p.norm = norm.weight;
    p.eps = norm.eps;
    p.n_rows = rows_of(x.n_rows);
    p.n_cols = static_cast<int>(x.n_cols);
    for (const Projection& one : projections) {
      p.weights[p.n_weights++] = stripes(one.weight, one.bias);
    }
    p.out = out.data;
    p.a = int8_rows(Use::input, x.n_rows, x.n_cols);
    cuda::project_in(p, how_);
  });
}

// Padding has no position. In a recording all layers see the same rows, so the first one masks them
// for all; outside of one every call does.
const int32_t* CudaOps::masked_positions(const StepView& step, RowsView out, Launch& how) {
  auto* const positions = scratch_.get<int32_t>(Use::positions, kMaxRows);
  const Masked wanted{stream_.recording(), step.positions, out.data};
  if (wanted.recording != 0 && wanted == masked_) return positions;
  masked_ = wanted;
  mask_padding({step.positions, step.n_live, rows_of(step.n_rows), positions, out.data,
                static_cast<int>(out.n_cols)},
               how_);
  how.overlaps = false;
  return positions;
}

void CudaOps::attend(RowsView qkv, const AttentionView& attention, const StepView& step,
                     const KvLayerView& kv, RowsView out) {
  enqueue([&](const Attended&) {
    Attend p = shape_of(attention, step, kv);
    Launch how = how_;
    p.qkv = qkv.data;
    p.positions = masked_positions(step, out, how);
    p.out = out.data;
    p.out_int8 = int8_rows(Use::attended, out.n_rows, out.n_cols);
    p.partials =
        scratch_.get<float>(Use::partials, attend_partials(p.n_rows, p.n_heads, p.head_dim));
    p.n_done = scratch_.get<Zeros>(Use::zeros, 1)->n_attended;
    cuda::attend(p, how);
    attended_ = {out.data, p.out_int8};
  });
}

void CudaOps::project_add(ConstRowsView in, const Projection& projection, RowsView x) {
  enqueue([&](const Attended& attended) {
    ProjectAdd p;
    p.n_rows = rows_of(in.n_rows);
    p.n_cols = static_cast<int>(in.n_cols);
    p.in = attended.int8;
    if (attended.f32 != in.data) {
      p.in = int8_rows(Use::input, in.n_rows, in.n_cols);
      quantize_rows({in.data, nullptr, nullptr, 0.0f, p.n_rows, p.n_cols, p.in}, how_);
    }
    p.weight = stripes(projection.weight, projection.bias);
    p.x = x.data;
    cuda::project_add(p, how_);
  });
}

// Rows of whole chunks are the same to the engine and to kernels; others are copied.
Int8Rows CudaOps::input_rows(const ExpertInputView& a) {
  require(a.q && !a.f32, "experts of float types are not computed by GPUs yet");
  if (a.n_cols % 256 == 0) return {a.q, a.d, a.y, static_cast<int>(a.n_cols / 256)};
  return int8_rows(Use::expert_input, a.n_rows, a.n_cols);
}

void CudaOps::copy_rows(const ExpertInputView& a, const Int8Rows& rows, bool to_view) {
  if (rows.q == a.q) return;
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

// The list of experts is left to experts(), which knows where they stand.
void CudaOps::route(ConstRowsView x, const NormView& norm, const RouterView& router,
                    const ExpertInputView& a, const RoutingView& routing) {
  enqueue([&](const Attended&) {
    const WeightView& w = router.weight;
    require(quant::is_float(w.type) && w.layout == quant::Layout::rows, "a router of type ",
            quant::type_name(w.type), " is not read by GPUs yet");
    require(w.n_rows <= kMostExperts && router.n_used <= kMaxUsed, router.n_used, " of ", w.n_rows,
            " experts; GPUs choose ", kMaxUsed, " of ", kMostExperts, " at most");
    auto* const zeros = scratch_.get<Zeros>(Use::zeros, 1);
    auto* const groups = scratch_.get<ExpertGroup>(Use::groups, int64_t{kMaxRows} * kMaxUsed + 2);
    Route p;
    p.x = x.data;
    p.norm = norm.weight;
    p.eps = norm.eps;
    p.n_rows = rows_of(x.n_rows);
    p.d_model = static_cast<int>(x.n_cols);
    p.type = w.type;
    p.weight = w.data;
    p.shared_gate = router.shared_gate;
    p.n_experts = static_cast<int>(w.n_rows);
    p.n_used = router.n_used;
    p.renormalize = router.renormalize;
    p.table = zeros->table;
    p.a = input_rows(a);
    p.experts = routing.experts;
    p.weights = routing.weights;
    p.shared_weights = router.shared_gate ? routing.shared_weights : nullptr;
    p.list = {reinterpret_cast<int32_t*>(groups), groups + 1};
    p.scores = scratch_.get<float>(Use::scores, int64_t{kMaxRows} * (kMostExperts + 1));
    p.n_done = &zeros->n_routed;
    cuda::route(p, how_);
    copy_rows(a, p.a, true);
    if (routing.forced) {
      force_experts({routing.forced, routing.experts, p.n_rows * p.n_used}, how_);
    }
  });
}

void CudaOps::experts(const ExpertsView& experts, const ExpertInputView& a,
                      const RoutingView& routing, RowsView x) {
  enqueue([&](const Attended&) {
    require(experts.table, "experts stand in no table of addresses");
    const int n_rows = rows_of(x.n_rows);
    const ExpertShape shape = shape_of(experts, routing.n_used);
    const ExpertLayout layout(experts);
    auto* const groups = scratch_.get<ExpertGroup>(Use::groups, int64_t{kMaxRows} * kMaxUsed + 2);
    const ExpertList list{reinterpret_cast<int32_t*>(groups), groups + 1};
    list_experts({routing.experts,
                  n_rows,
                  routing.n_used,
                  reinterpret_cast<const uint8_t* const*>(experts.table),
                  static_cast<int64_t>(layout.up_at),
                  static_cast<int64_t>(layout.down_at),
                  {bytes(experts.shared_gate.data), bytes(experts.shared_up.data),
                   bytes(experts.shared_down.data)},
                  list},
                 how_);
    const Int8Rows in = input_rows(a);
    copy_rows(a, in, false);
    const Int8Rows hidden = int8_rows(Use::hidden, n_rows * (routing.n_used + 1),
                                      std::max(shape.d_ff, shape.shared_d_ff));
    gate_up({shape, n_rows, list, in, hidden}, how_);
    down({shape, n_rows, list, hidden, routing.weights, routing.shared_weights, nullptr, x.data},
         how_);
  });
}

void CudaOps::logits(ConstRowsView x, const StepView& step, int64_t first, const NormView& norm,
                     const WeightView& output, RowsView logits) {
  enqueue([&](const Attended&) {
    auto* const rows = scratch_.get<int32_t>(Use::wanted, logits.n_rows);
    wanted_rows({step.logit_rows, step.n_logits, static_cast<int>(first),
                 static_cast<int>(logits.n_rows), rows},
                how_);
    for (int64_t at = 0; at < logits.n_rows; at += kMaxRows) {
      Logits p;
      p.x = x.data;
      p.rows = rows + at;
      p.norm = norm.weight;
      p.eps = norm.eps;
      p.n_rows = static_cast<int>(std::min<int64_t>(kMaxRows, logits.n_rows - at));
      p.n_cols = static_cast<int>(x.n_cols);
      p.weight = stripes(output, nullptr);
      p.logits = logits.row(at);
      p.a = int8_rows(Use::input, p.n_rows, x.n_cols);
      cuda::logits(p, how_);
    }
  });
}

void CudaOps::pick(ConstRowsView logits, const StepView& step, int64_t first, PickedRow* picks) {
  enqueue([&](const Attended&) {
    cuda::pick({logits.data, static_cast<int>(logits.n_rows), static_cast<int>(logits.n_cols),
                step.n_logits, static_cast<int>(first), step.n_best, picks},
               how_);
  });
}

void CudaOps::foresee(const uint32_t*, ConstRowsView, const NormView&, const RouterView&,
                      const RoutingView&) {
  enqueue([&](const Attended&) { missing("prefetching experts"); });
}

void CudaOps::find_experts(const ExpertsView&, const LookupView&, const ExpertInputView&,
                           const RoutingView&) {
  enqueue([&](const Attended&) { missing("a model whose experts are not all in its memory"); });
}

void CudaOps::compute_found(const ExpertsView&, const ExpertInputView&) {
  enqueue([&](const Attended&) { missing("a model whose experts are not all in its memory"); });
}

void CudaOps::add_found(const RoutingView&, RowsView) {
  enqueue([&](const Attended&) { missing("a model whose experts are not all in its memory"); });
}

void CudaOps::log_routing(const RoutingView&, int64_t, const LayerLogView&) {
  enqueue([&](const Attended&) { missing("a log of what was routed"); });
}

void CudaOps::compute_pairs(const ExpertsView&, std::span<const ExpertPair>,
                            const ExpertInputView&) {
  enqueue([&](const Attended&) { missing("a prompt of more than 16 rows a step"); });
}

void CudaOps::add_pairs(const ExpertsView&, const RoutingView&, RowsView) {
  enqueue([&](const Attended&) { missing("a prompt of more than 16 rows a step"); });
}

}  // namespace sluice::backend::cuda
