// See cuda_ops.h. The trunk's operations; those of experts stand in cuda_experts.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cuda_ops.h"

#include <algorithm>
#include <bit>

#include "backend/cuda/attend.h"
#include "backend/cuda/cuda_ops_parts.h"
#include "backend/cuda/pick.h"
#include "backend/cuda/project.h"
#include "backend/cuda/quantize_rows.h"
#include "backend/cuda/step_rows.h"

namespace sluice::backend::cuda {
namespace {

using Use = CudaScratch::Use;

StripeWeight stripes(const WeightView& w, const float* bias) {
  require(!quant::is_float(w.type), "weights of type ", quant::type_name(w.type),
          " are not read by GPUs yet; quantise them");
  require(w.layout == quant::Layout::stripes && w.n_rows % quant::kStripeRows == 0,
          "weights must be woven by eight rows; one has ", w.n_rows);
  return {w.type, bytes(w.data), static_cast<int>(w.n_rows), bias};
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

CudaOps::CudaOps(CudaDevice& device, CudaStream& stream, const MailboxView& mailbox,
                 std::span<std::byte> scratch)
    : device_(device), stream_(stream), mailbox_(mailbox), scratch_(device, scratch) {
  device_.make_current();
  how_ = launch_on(stream_.handle());
  CHECK_CUDA(cudaMemset(scratch_.get<Zeros>(Use::zeros, 1), 0, sizeof(Zeros)));
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
    set_normed_rows(p, x, norm);
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

}  // namespace sluice::backend::cuda
