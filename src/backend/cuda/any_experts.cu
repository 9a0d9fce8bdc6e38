// Experts of any types (any_experts.h).
//
// Layout   quantised weights: stripes, in device memory; float ones: rows; outputs f32.
// Mapping  dots: a block has 8 stripes (or 32 float rows) of an expert of the list, and goes
// through
//          its pairs. Hidden: a warp has 32 values of a slot. Sum: a thread has an output.
// Limits   n_out % 8 == 0 where quantised; launched without overlap.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/any_experts.h"

#include "backend/cuda/combine.h"
#include "backend/cuda/contract.h"
#include "backend/cuda/float_dot.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/stage_rows.h"
#include "backend/cuda/stripe_dispatch.h"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kFloatRows = kThreads / kChains;

Launch alone(Launch how) {
  how.overlaps = false;
  return how;
}

// Of the block's expert; null where there is nothing to do.
__device__ __forceinline__ const uint8_t* matrix_of(const ExpertDots& p,
                                                    const ExpertGroup*& group) {
  if (static_cast<int>(blockIdx.y) >= *p.list.n_groups) return nullptr;
  group = p.list.groups + blockIdx.y;
  if (group->n_pairs == 0 || (group->slot[0] >= p.n_routed) != p.is_shared) return nullptr;
  return p.matrix == ExpertMatrix::gate ? group->gate
         : p.matrix == ExpertMatrix::up ? group->up
                                        : group->down;
}

// Weights are read where they stand, so nothing may be behind their last block.
struct PastL1AndShort : PastL1Load {
  static constexpr bool kWhole = false;
};

template <Type type>
__global__ void __launch_bounds__(kThreads, 1)
    stripe_dots_kernel(const __grid_constant__ ExpertDots p) {
  const int stripe = static_cast<int>(blockIdx.x) * kWarps + warp_index(), lane = lane_index();
  const ExpertGroup* group = nullptr;
  const uint8_t* const matrix = matrix_of(p, group);
  if (!matrix || 8 * stripe >= p.n_out) return;
  const RowShape shape = row_shape(p.n_cols);
  const uint8_t* const data =
      matrix + static_cast<int64_t>(stripe) *
                   (chunk_offset<type>(shape.n_chunks - 1) +
                    Stripe<type>::chunk_bytes(blocks_of<type>(shape, shape.n_chunks - 1)));
  for (int i = 0; i < group->n_pairs; ++i) {
    const int from = p.by_slot ? group->slot[i] : group->row[i];
    const Int8Rows in = p.in.from(from);
    PerLane<float> acc{0.0f};
    for (int first = 0; first < shape.n_chunks; first += kUnitChunks) {
      const Unit unit{data + chunk_offset<type>(first), first,
                      min(kUnitChunks, shape.n_chunks - first)};
      add_unit<type, PastL1AndShort, 1>(
          unit, shape,
          [&](int) {
            return InputRow{in.q, in.d, in.y};
          },
          acc);
    }
    if (lane % 4 == 0) p.out[group->slot[i] * p.out_stride + 8 * stripe + lane / 4] = acc.value;
  }
}

template <Type type>
__global__ void __launch_bounds__(kThreads)
    float_dots_kernel(const __grid_constant__ ExpertDots p) {
  const int chain = static_cast<int>(threadIdx.x) % kChains;
  const int row = static_cast<int>(blockIdx.x) * kFloatRows + static_cast<int>(threadIdx.x) / 8;
  const ExpertGroup* group = nullptr;
  const uint8_t* const matrix = matrix_of(p, group);
  if (!matrix) return;
  const int64_t at = min(row, p.n_out - 1);  // all lanes take part in the sums
  const uint8_t* const weight = matrix + at * p.n_cols * (type == Type::f32 ? 4 : 2);
  for (int i = 0; i < group->n_pairs; ++i) {
    const int from = p.by_slot ? group->slot[i] : group->row[i];
    float dot[1];
    float_dots<type>(weight, p.in_f32 + from * p.in_stride, p.n_cols, chain, dot);
    if (chain == 0 && row < p.n_out) p.out[group->slot[i] * p.out_stride + row] = dot[0];
  }
}

__global__ void __launch_bounds__(kThreads) hidden_kernel(const __grid_constant__ ExpertHidden p) {
  const int block = static_cast<int>(blockIdx.x) * kWarps + warp_index(), lane = lane_index();
  const int slot = static_cast<int>(blockIdx.y);
  if (32 * block + lane >= (slot < p.n_routed ? p.d_ff : p.shared_d_ff)) return;
  const int64_t at = slot * p.stride + 32 * block + lane;
  const PerLane<float> value{swiglu(p.gate[at], p.up[at])};
  p.gate[at] = value.value;
  if (!p.h) return;
  const int64_t to = static_cast<int64_t>(slot) * p.h.n_chunks * 8 + block;
  quantize_block(value, p.h.q + 32 * to, p.h.d + to, p.h.y + to);
}

__global__ void __launch_bounds__(kThreads) sum_kernel(const __grid_constant__ ExpertSum p) {
  const int r = static_cast<int>(blockIdx.y);
  const int c = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (c >= p.d_model || (p.n_live && r >= *p.n_live)) return;
  const int64_t slot = static_cast<int64_t>(r) * p.n_used;
  float v = sum_by_rank(p.weights + slot, p.outs + slot * p.d_model + c, p.n_used, p.d_model);
  if (p.has_shared) {
    const float* const out = p.outs + static_cast<int64_t>(p.n_rows) * p.n_used * p.d_model;
    v = __fmaf_rn(p.shared_weights ? p.shared_weights[r] : 1.0f,
                  out[static_cast<int64_t>(r) * p.d_model + c], v);
  }
  float* const x = p.x + static_cast<int64_t>(r) * p.d_model + c;
  *x = __fadd_rn(*x, v);
}

dim3 grid_of(int n, int per_block, int n_y) {
  return dim3(static_cast<unsigned>((n + per_block - 1) / per_block), static_cast<unsigned>(n_y));
}

}  // namespace

void expert_dots(const ExpertDots& p, const Launch& how) {
  CHECK(p.n_out >= 1 && p.n_cols >= 1 && p.most_groups >= 1);
  if (quant::is_float(p.type)) {
    CHECK(p.in_f32 != nullptr);
    with_float_type(p.type, [&]<Type type>() {
      launch(float_dots_kernel<type>, grid_of(p.n_out, kFloatRows, p.most_groups), kThreads, 0,
             alone(how), p);
    });
    return;
  }
  CHECK(p.n_out % 8 == 0 && p.n_cols % 32 == 0 && p.in);
  with_stripe_type(p.type, [&]<Type type>() {
    launch(stripe_dots_kernel<type>, grid_of(p.n_out / 8, kWarps, p.most_groups), kThreads, 0,
           alone(how), p);
  });
}

void expert_hidden(const ExpertHidden& p, const Launch& how) {
  CHECK(p.n_slots >= 1 && (!p.h || (p.d_ff % 32 == 0 && p.shared_d_ff % 32 == 0)));
  const int d_ff = p.d_ff > p.shared_d_ff ? p.d_ff : p.shared_d_ff;
  launch(hidden_kernel, grid_of(d_ff, kThreads, p.n_slots), kThreads, 0, alone(how), p);
}

void expert_sum(const ExpertSum& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_used >= 1);
  launch(sum_kernel, grid_of(p.d_model, kThreads, p.n_rows), kThreads, 0, alone(how), p);
}

}  // namespace sluice::backend::cuda
