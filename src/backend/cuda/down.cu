// The experts' down projections, their weighted sum in order of rank, and the residual.
//
// Layout   weights: stripes, by the addresses in the list; h: int8 rows by slot; x: f32 rows.
// Mapping  a block owns eight outputs (a stripe of every expert) of all rows; a warp takes every
//          eighth group, all its units one after the other, and reads its hidden rows straight
//          from L2 into fragments. Outputs of all slots meet in shared memory, and a thread for
//          each (row, output) adds them by rank: no atomics, no second kernel.
//          Addresses and weights are read before the wait for gate_up: the router's writes are
//          visible, since gate_up lets this kernel begin only behind its own wait.
// Limits   d_model % 8 == 0, d_ff % 32 (super-blocks: 256), 1 to 16 rows (the launcher checks).
// Cost     see bench/gpu_kernels and docs/decisions/0011.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/combine.h"
#include "backend/cuda/expert_sizes.cuh"
#include "backend/cuda/experts_row.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/stage_rows.h"
#include "backend/cuda/stripe_dispatch.h"
#include "backend/cuda/weight_ring.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;

struct DownArgs : DownSizes {
  int n_slots;  // of outputs
};

struct SharedPlan {
  int outs_at, weights_at, barriers_at, n_bytes;
};
__host__ __device__ inline SharedPlan shared_plan(const DownArgs& a) {
  SharedPlan s;
  s.outs_at = a.ring.slots_bytes(kWarps);
  s.weights_at = s.outs_at + a.n_slots * 8 * 4;
  s.barriers_at = (s.weights_at + a.n_slots * 4 + 7) / 8 * 8;
  s.n_bytes = s.barriers_at + a.ring.barriers_bytes(kWarps);
  return s;
}

// The units of a warp's groups, one after the other.
template <Type type>
struct UnitWalk {
  const DownArgs& a;
  int n_groups;
  int group;     // of the next unit
  int unit = 0;  // in it

  struct Place {
    const ExpertGroup* group;
    RowShape shape;
    int unit;
    const uint8_t* src;
    int n_chunks;
  };
  __device__ __forceinline__ bool is_done() const { return group >= n_groups; }
  __device__ __forceinline__ Place next() {
    const bool is_shared = a.p.shape.shared_d_ff > 0 && group == n_groups - 1;
    const RowShape shape = is_shared ? a.shared_shape : a.shape;
    const ExpertGroup* const g = a.p.list.groups + group;
    const auto* const down = reinterpret_cast<const uint8_t*>(
        __ldcg(reinterpret_cast<const unsigned long long*>(&g->down)));
    const int64_t stripe = is_shared ? a.shared_stripe_bytes : a.stripe_bytes;
    const int n = down ? min(kUnitChunks, shape.n_chunks - kUnitChunks * unit) : 0;
    const Place place{
        g, shape, unit,
        down ? down + blockIdx.x * stripe + chunk_offset<type>(kUnitChunks * unit) : nullptr, n};
    if (down == nullptr || ++unit == shape.n_units()) unit = 0, group += kWarps;
    return place;
  }
};

template <Type type>
__device__ __forceinline__ int place_bytes(const typename UnitWalk<type>::Place& at) {
  return at.n_chunks ? unit_bytes<type>(at.shape, kUnitChunks * at.unit, at.n_chunks) : 0;
}

__device__ __forceinline__ InputRow hidden_row(const Int8Rows& h, int slot) {
  const int64_t at = static_cast<int64_t>(slot) * h.n_chunks;
  return {h.q + kChunk * at, h.d + 8 * at, h.y + 8 * at};
}

// x + the sum over ranks of a row's output, and the shared expert's. weights: [n_rows, n_used],
// then [n_rows] of the shared expert; outs in the same order.
__device__ __forceinline__ void combine(const DownArgs& a, const float* weights, const float* outs,
                                        int i, float x) {
  const int r = i / 8, column = i % 8, n_used = a.p.shape.n_used, first = r * n_used;
  float v = sum_by_rank(weights + first, outs + first * 8 + column, n_used);
  if (a.p.shape.shared_d_ff > 0) {
    const int k = a.p.n_rows * n_used + r;
    v = __fmaf_rn(weights[k], outs[k * 8 + column], v);
  }
  a.p.x[static_cast<int64_t>(r) * a.p.shape.d_model + 8 * blockIdx.x + column] = __fadd_rn(x, v);
}

// Chunks of a unit that are unpacked before the wait for gate_up: with two, Q5_1 spills registers.
template <Type type>
constexpr int kEarly = type == Type::q5_1 ? 1 : kEarlyChunks;

template <Type type>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(type == Type::q2_k ? 1 : 2))
    down_kernel(const __grid_constant__ DownArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  const SharedPlan plan = shared_plan(a);
  const int warp = warp_index(), lane = lane_index();
  auto* const outs = reinterpret_cast<float*>(shared + plan.outs_at);
  WeightRing ring(shared, shared + plan.barriers_at, a.ring, warp);
  let_next_kernel_begin();
  const int n_groups = __ldcg(a.p.list.n_groups);
  UnitWalk<type> asked{a, n_groups, warp}, walk{a, n_groups, warp};
  const auto request = [&] {
    const auto place = asked.next();
    ring.request(place.src, place_bytes<type>(place));
  };
  for (int i = 0; i < a.ring.n_slots && !asked.is_done(); ++i) request();

  typename UnitWalk<type>::Place place{};
  Unit unit{};
  UnitWeights weights;
  int n_pairs = 1, slot = 0;  // of the unit's group; slot k in lane k
  const auto take_next = [&] {
    place = walk.next();
    n_pairs = __ldcg(&place.group->n_pairs);
    slot = __ldcg(place.group->slot + lane % kMaxRows);
    unit = {ring.wait(place.src), kUnitChunks * place.unit, place.n_chunks};
    if (place.n_chunks && n_pairs == 1) unpack_unit<type, kEarly<type>>(unit, place.shape, weights);
  };
  auto* const weights_of_slots = reinterpret_cast<float*>(shared + plan.weights_at);
  const int n_routed = a.p.n_rows * a.p.shape.n_used;
  for (int i = threadIdx.x; i < a.n_slots; i += kThreads) {
    if (i < n_routed) weights_of_slots[i] = __ldcg(a.p.weights + i);
    if (i >= n_routed && a.p.shape.shared_d_ff > 0) {
      weights_of_slots[i] = __ldcg(a.p.shared_weights + i - n_routed);
    }
  }
  bool has_unit = !walk.is_done();
  if (has_unit) take_next();
  wait_for_previous_kernel();

  const bool sums = static_cast<int>(threadIdx.x) < 8 * a.p.n_rows;
  float x = 0.0f;
  if (sums) {
    x = __ldcg(a.p.x + static_cast<int64_t>(threadIdx.x / 8) * a.p.shape.d_model + 8 * blockIdx.x +
               threadIdx.x % 8);
  }
  constexpr int kGroups = kMaxRows / kInputsAtOnce;
  PerLane<float> acc[kGroups] = {};
  while (has_unit) {
    if (place.n_chunks == 0) {
      for (int i = lane; i < 8 * n_pairs; i += kWarp) {
        const int own = __ldcg(place.group->slot + i / 8);
        outs[own * 8 + i % 8] = __ldcg(a.p.outside + static_cast<int64_t>(own) * a.p.shape.d_model +
                                       8 * blockIdx.x + i % 8);
      }
    } else if (n_pairs > 1) {
      dot_unit_4<type, PastL1Load>(
          unit, place.shape, n_pairs,
          [&](int r) { return hidden_row(a.p.h, __shfl_sync(kAllLanes, slot, r)); },
          [&](int, int at, const PerLane<float>& got) {
#pragma unroll
            for (int k = 0; k < kGroups; ++k) {
              if (k == at) acc[k].value = add_rn(acc[k].value, got.value);
            }
          });
    } else {
      PerLane<float> got;
      dot_unit<type, PastL1Load, kEarly<type>>(
          unit, place.shape, weights, hidden_row(a.p.h, __shfl_sync(kAllLanes, slot, 0)), got);
      add_in_order(got, unit.n, acc[0]);
    }
    if (place.n_chunks && place.unit == place.shape.n_units() - 1) {
#pragma unroll
      for (int k = 0; k < kGroups; ++k) {
        // A single pair's sum is the same in the four lanes of a row.
        const int pair = kInputsAtOnce * k + lane % 4;
        const int own = __shfl_sync(kAllLanes, slot, pair);
        if (pair < n_pairs) outs[own * 8 + lane / 4] = acc[k].value;
        acc[k].value = 0.0f;
      }
    }
    __syncwarp();
    if (!asked.is_done()) request();
    has_unit = !walk.is_done();
    if (has_unit) take_next();
  }
  __syncthreads();
  if (sums) combine(a, weights_of_slots, outs, static_cast<int>(threadIdx.x), x);
}

template <Type type>
void run(const Down& p, const Launch& how) {
  const DownArgs args{down_sizes<type>(p, kWarps, 2), p.n_rows * (p.shape.n_used + 1)};
  constexpr int kMinShared = 76 * 1024;  // as gate_up's: not more than two blocks an SM
  const int n_bytes = std::max(shared_plan(args).n_bytes, std::min(kMinShared, how.shared_bytes));
  CHECK(n_bytes <= how.shared_bytes);
  const dim3 grid(static_cast<unsigned>(p.shape.d_model / 8));
  launch(down_kernel<type>, grid, kThreads, static_cast<size_t>(n_bytes), how, args);
}

}  // namespace

void down(const Down& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_rows <= kMaxRows && p.shape.n_used <= kMaxUsed);
  CHECK(p.shape.d_model % 8 == 0 && p.shape.d_ff % 32 == 0 && p.shape.shared_d_ff % 32 == 0);
  CHECK(p.h.n_chunks == row_shape(std::max(p.shape.d_ff, p.shape.shared_d_ff)).n_chunks);
  if (p.n_rows == 1) return down_row(p, how);
  CHECK(p.ranking.scores == nullptr);
  with_stripe_type(p.shape.down_type, [&]<Type type>() { run<type>(p, how); });
}

}  // namespace sluice::backend::cuda
