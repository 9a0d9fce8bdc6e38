// See cuda_ops.h. The trunk's operations; those of experts stand in cuda_experts.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cuda_ops.h"

#include <algorithm>

#include "backend/cuda/attend.h"
#include "backend/cuda/attend_any.h"
#include "backend/cuda/attend_shape.h"
#include "backend/cuda/cuda_ops_parts.h"
#include "backend/cuda/delta_net.h"
#include "backend/cuda/float_in.h"
#include "backend/cuda/float_rows.h"
#include "backend/cuda/pick.h"
#include "backend/cuda/project.h"
#include "backend/cuda/quantize_rows.h"
#include "backend/cuda/step_rows.h"
#include "backend/cuda/wide_delta.h"

namespace sluice::backend::cuda {
namespace {

using Use = CudaScratch::Use;

bool is_woven(const WeightView& w) {
  return w.layout == quant::Layout::stripes && w.n_rows % quant::kStripeRows == 0;
}

StripeWeight stripes(const WeightView& w, const float* bias) {
  require(is_woven(w), "weights must be woven by eight rows; one has ", w.n_rows);
  return {w.type, bytes(w.data), static_cast<int>(w.n_rows), bias};
}

// n_cols columns of rows that stand so far apart.
void copy_columns(const float* from, int64_t from_stride, float* to, int64_t to_stride,
                  int64_t n_cols, int n_rows, const Launch& how) {
  const auto bytes = [](int64_t n) { return static_cast<size_t>(n) * sizeof(float); };
  CHECK_CUDA(cudaMemcpy2DAsync(to, bytes(to_stride), from, bytes(from_stride), bytes(n_cols),
                               static_cast<size_t>(n_rows), cudaMemcpyDeviceToDevice, how.stream));
}

// For the kernel that is made for it.
bool is_common(const AttentionView& a, const KvLayerView& kv) {
  return kv.k_type == kv.v_type &&
         (kv.k_type == quant::Type::f16 || kv.k_type == quant::Type::bf16) &&
         (a.head_norm == HeadNorm::none || a.q_norm.eps == a.k_norm.eps);
}

// What the kernels of recurrent layers are told of a layer and its states.
DeltaNetStep shape_of(const DeltaNetView& net, const StateLayerView& state) {
  require(net.head_dim <= kDeltaDims, "recurrent heads of ", net.head_dim, " values; ", kDeltaDims,
          " at most");
  DeltaNetStep p;
  p.n_taps = net.n_taps;
  p.n_key_heads = net.n_key_heads;
  p.n_value_heads = net.n_value_heads;
  p.head_dim = net.head_dim;
  p.by_remainder = net.key_heads == KeyHeads::by_remainder;
  p.gates_by_key_head = net.gate_columns == GateColumns::by_key_head;
  p.conv = net.conv;
  p.decay = net.decay;
  p.time_bias = net.time_bias;
  p.norm = net.norm.weight;
  p.eps = net.norm.eps;
  p.states = state.data;
  p.state_stride = state.stride;
  p.from = state.from;
  p.to = state.to;
  p.n_sequences = state.n_sequences;
  p.updates = state.updates;
  p.update_stride = state.update_stride;
  p.n_places = state.n_places;
  p.max_logged_rows = state.max_logged_rows;
  return p;
}

}  // namespace

CudaOps::CudaOps(CudaDevice& device, CudaStream& stream, const MailboxView& mailbox,
                 std::span<std::byte> scratch)
    : device_(device),
      stream_(stream),
      mailbox_(mailbox),
      scratch_(device, scratch),
      woven_(device) {
  device_.make_current();
  how_ = launch_on(stream_.handle());
  // In the stream's order: on the default stream it may come after the first kernels.
  CHECK_CUDA(cudaMemsetAsync(scratch_.get<Zeros>(Use::zeros, 1), 0, sizeof(Zeros), how_.stream));
  stream_.set_before_end([this] { enqueue([](const Attended&) {}); });
}

CudaOps::~CudaOps() { stream_.set_before_end({}); }

void CudaOps::reserve(const OpsSize& size) {
  const OpsArrays a = ops_arrays(size);
  const std::pair<Use, uint64_t> arrays[] = {{Use::input, a.input},
                                             {Use::attended, a.attended},
                                             {Use::expert_input, a.expert_input},
                                             {Use::hidden, a.hidden},
                                             {Use::outside, a.outside},
                                             {Use::partials, a.partials},
                                             {Use::queries, a.queries},
                                             {Use::scores, a.scores},
                                             {Use::normed, a.normed},
                                             {Use::projected, a.projected},
                                             {Use::gate, a.gate},
                                             {Use::up, a.up},
                                             {Use::pairs, a.pairs},
                                             {Use::tiles, a.tiles}};
  for (const auto& [use, n_bytes] : arrays) scratch_.get(use, n_bytes);
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
  if (x.n_rows > kMaxRows) return wide_project_in(x, norm, projections, out);
  enqueue([&](const Attended&) {
    require(projections.size() <= kMaxProjections, projections.size(),
            " projections at once; four at most");
    ProjectIn p;
    set_normed_rows(p, x, norm);
    p.n_cols = static_cast<int>(x.n_cols);
    p.out = out.data;
    p.out_stride = static_cast<int>(out.n_cols);
    FloatIn floats{p.x, p.norm, p.eps, p.n_rows, p.n_cols, {}, 0, out.data, out.n_cols};
    int64_t column = 0;
    for (const Projection& one : projections) {
      const WeightView& w = one.weight;
      if (quant::is_float(w.type) && float_in_fits(w.n_rows, w.n_cols, how_)) {
        floats.weights[floats.n_weights++] = {w.type, w.data, static_cast<int>(w.n_rows), one.bias,
                                              static_cast<int>(column)};
      } else if (is_woven(one.weight)) {
        p.weights[p.n_weights] = stripes(one.weight, one.bias);
        p.weights[p.n_weights++].out_column = static_cast<int>(column);
      } else {
        project_one(x, norm, one, out, column);
      }
      column += one.weight.n_rows;
    }
    // First: it is short, and the others' weights are on their way meanwhile.
    if (floats.n_weights > 0) float_in(floats, how_);
    if (p.n_weights == 0) return;
    p.a = int8_rows(Use::input, x.n_rows, x.n_cols);
    cuda::project_in(p, how_);
  });
}

const float* CudaOps::normed_rows(ConstRowsView x, const int32_t* index, int64_t n_rows,
                                  const NormView& norm) {
  auto* const out = scratch_.get<float>(Use::normed, n_rows * x.n_cols);
  norm_rows({x.data, index, norm.weight, norm.eps, static_cast<int>(n_rows),
             static_cast<int>(x.n_cols), out},
            how_);
  return out;
}

// Of several side by side, the one whose columns of `out` begin at `first`.
void CudaOps::project_one(ConstRowsView x, const NormView& norm, const Projection& projection,
                          RowsView out, int64_t first) {
  const WeightView& w = projection.weight;
  const int n_rows = rows_of(x.n_rows);
  if (quant::is_float(w.type)) {
    float_project(
        {w.type, w.data, projection.bias, static_cast<int>(w.n_rows), static_cast<int>(w.n_cols),
         normed_rows(x, nullptr, n_rows, norm), n_rows, out.data + first, out.n_cols},
        how_);
    return;
  }
  ProjectIn p;
  set_normed_rows(p, x, norm);
  p.n_cols = static_cast<int>(x.n_cols);
  const WeightView woven = is_woven(w) ? w : woven_.stripes_of(w);
  require(woven.n_rows == w.n_rows || !projection.bias, "a bias of ", w.n_rows, " rows");
  p.weights[p.n_weights++] = stripes(woven, projection.bias);
  p.out = scratch_.get<float>(Use::projected, n_rows * woven.n_rows);
  p.out_stride = static_cast<int>(woven.n_rows);
  p.a = int8_rows(Use::input, n_rows, x.n_cols);
  cuda::project_in(p, how_);
  copy_columns(p.out, woven.n_rows, out.data + first, out.n_cols, w.n_rows, n_rows, how_);
}

void CudaOps::attend(RowsView qkv, const AttentionView& attention, const StepView& step,
                     const KvLayerView& kv, RowsView out) {
  if (step.n_rows > kMaxRows) return wide_attend(qkv, attention, step, kv, out);
  enqueue([&](const Attended&) {
    Attend p = shape_of(attention, step, kv);
    p.n_rows = rows_of(step.n_rows);
    p.qkv = qkv.data;
    if (!is_common(attention, kv)) {
      attend_any(p, attention, step, kv, out);
      return;
    }
    p.out = out.data;
    p.out_int8 = int8_rows(Use::attended, out.n_rows, out.n_cols);
    p.partials =
        scratch_.get<float>(Use::partials, attend_partials(p.n_rows, p.n_heads, p.head_dim));
    p.met = scratch_.get<Zeros>(Use::zeros, 1)->n_attended;
    cuda::attend(p, how_);
    attended_ = {out.data, p.out_int8};
  });
}

void CudaOps::attend_any(Attend p, const AttentionView& a, const StepView& step,
                         const KvLayerView& kv, RowsView out) {
  require(a.head_dim <= kMostHeadDim, "heads of ", a.head_dim, " values; ", kMostHeadDim,
          " at most with such a KV cache");
  const auto page = [&](quant::Type type) {
    return kv_page(type, a.n_kv_heads, a.head_dim, kv.page_tokens);
  };
  p.out = out.data;
  cuda::attend_any(
      {p, kv.k_type, kv.v_type, page(kv.k_type), page(kv.v_type), a.q_norm.eps, a.k_norm.eps,
       step.n_live, scratch_.get<float>(Use::queries, out.n_rows * out.n_cols)},
      how_);
}

void CudaOps::delta_net(ConstRowsView in, const DeltaNetView& net, const StepView& step,
                        const StateLayerView& state, RowsView out) {
  enqueue([&](const Attended&) {
    DeltaNetStep p = shape_of(net, state);
    p.in = in.data;
    p.n_rows = static_cast<int>(in.n_rows);
    p.sequences = step.sequences;
    p.positions = step.positions;
    p.n_live = step.n_live;
    p.out = out.data;
    const bool has_blocks = net.head_dim % 32 == 0;
    if (has_blocks) p.out_int8 = int8_rows(Use::attended, out.n_rows, out.n_cols);
    if (in.n_rows > kMaxRows && net.n_taps <= kDeltaMostTaps) {
      const int64_t n_cols = wide_delta_cols(net.n_key_heads, net.n_value_heads, net.head_dim);
      wide_delta_net({p, scratch_.get<float>(Use::outside, in.n_rows * n_cols)}, how_);
    } else {
      cuda::delta_net(p, how_);
    }
    if (has_blocks) attended_ = {out.data, p.out_int8};
  });
}

void CudaOps::delta_replay(const DeltaNetView& net, const StateLayerView& state,
                           const StateReplay& replay) {
  enqueue([&](const Attended&) {
    cuda::delta_replay(
        {shape_of(net, state), replay.sequence, replay.begin, replay.end, replay.from, replay.to},
        how_);
  });
}

void CudaOps::project_add(ConstRowsView in, const Projection& projection, RowsView x) {
  if (in.n_rows > kMaxRows) return wide_project_add(in, projection, x);
  enqueue([&](const Attended& attended) {
    const WeightView& w = projection.weight;
    if (quant::is_float(w.type)) {
      float_project(
          {w.type, w.data, projection.bias, static_cast<int>(w.n_rows), static_cast<int>(w.n_cols),
           in.data, rows_of(in.n_rows), x.data, x.n_cols, true},
          how_);
      return;
    }
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
    if (stream_.recording() != 0 && can_add_scores(p, how_)) {
      held_add_ = p;
    } else {
      cuda::project_add(p, how_);
    }
  });
}

void CudaOps::logits(ConstRowsView x, const StepView& step, int64_t first, const NormView& norm,
                     const WeightView& output, RowsView logits) {
  enqueue([&](const Attended&) {
    // No more than the step has.
    const int64_t n_rows = std::min(logits.n_rows, step.n_rows);
    auto* const rows = scratch_.get<int32_t>(Use::wanted, n_rows);
    wanted_rows(
        {step.logit_rows, step.n_logits, static_cast<int>(first), static_cast<int>(n_rows), rows},
        how_);
    for (int64_t at = 0; at < n_rows; at += kMaxRows) {
      Logits p;
      p.x = x.data;
      p.rows = rows + at;
      p.norm = norm.weight;
      p.eps = norm.eps;
      p.n_rows = static_cast<int>(std::min<int64_t>(kMaxRows, n_rows - at));
      p.n_cols = static_cast<int>(x.n_cols);
      logits_at(p, output, logits.row(at));
    }
  });
}

// Rows that are no whole stripes are computed with some more behind them, and copied without.
void CudaOps::logits_at(Logits p, const WeightView& output, float* out) {
  if (quant::is_float(output.type)) {
    const ConstRowsView x(p.x, p.n_rows, p.n_cols);
    float_project({output.type, output.data, nullptr, static_cast<int>(output.n_rows), p.n_cols,
                   normed_rows(x, p.rows, p.n_rows, {p.norm, p.eps}), p.n_rows, out, output.n_rows},
                  how_);
    return;
  }
  const WeightView woven = is_woven(output) ? output : woven_.stripes_of(output);
  p.weight = stripes(woven, nullptr);
  p.a = int8_rows(Use::input, p.n_rows, p.n_cols);
  const bool is_whole = woven.n_rows == output.n_rows;
  p.logits = is_whole ? out : scratch_.get<float>(Use::projected, int64_t{kMaxRows} * woven.n_rows);
  cuda::logits(p, how_);
  if (is_whole) return;
  copy_columns(p.logits, woven.n_rows, out, output.n_rows, output.n_rows, p.n_rows, how_);
}

void CudaOps::pick(ConstRowsView logits, const StepView& step, int64_t first, PickedRow* picks) {
  enqueue([&](const Attended&) {
    const int n_rows = rows_of(std::min(logits.n_rows, step.n_rows));
    cuda::pick({logits.data, n_rows, static_cast<int>(logits.n_cols), step.n_logits,
                static_cast<int>(first), step.n_best, picks,
                scratch_.get<uint64_t>(Use::picks, int64_t{kMaxRows} * kPickParts),
                scratch_.get<Zeros>(Use::zeros, 1)->n_picked},
               how_);
  });
}

}  // namespace sluice::backend::cuda
