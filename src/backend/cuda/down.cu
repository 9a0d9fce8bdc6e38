// The experts' down projections, their weighted sum in order of rank, and the residual.
//
// Layout   weights: stripes, by the addresses in the list; h: int8 rows by slot; x: f32 rows.
// Mapping  a block owns eight outputs (a stripe of every expert) of all rows; a warp takes every
//          eighth group, all its units one after the other, and reads its hidden rows straight
//          from L2 into fragments. Outputs of all slots meet in shared memory, and a thread for
//          each (row, output) adds them by rank: no atomics, no second kernel.
//          The list and the weights are read before the wait for gate_up: the router's writes are
//          visible, since gate_up lets this kernel begin only behind its own wait. Where a block
//          has little shared memory, units are shorter.
// Limits   d_model % 8 == 0, d_ff % 32 (super-blocks: 256), 2 to 16 rows (the launcher checks).
// Cost     see bench/gpu_kernels and docs/decisions/0015.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/combine.h"
#include "backend/cuda/down_pairs.h"
#include "backend/cuda/expert_sizes.cuh"
#include "backend/cuda/experts_row.h"
#include "backend/cuda/host_words.cuh"
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
  int most_groups;
};

struct SharedPlan {
  int groups_at, outs_at, weights_at, barriers_at, n_bytes;
};
__host__ __device__ inline SharedPlan shared_plan(const DownArgs& a) {
  SharedPlan s;
  s.groups_at = a.ring.slots_bytes(kWarps);
  s.outs_at = s.groups_at + a.most_groups * static_cast<int>(sizeof(ExpertGroup));
  s.weights_at = s.outs_at + a.n_slots * 8 * 4;
  s.barriers_at = (s.weights_at + a.n_slots * 4 + 7) / 8 * 8;
  s.n_bytes = s.barriers_at + a.ring.barriers_bytes(kWarps);
  return s;
}

// The units of a warp's groups, one after the other.
template <Type type, int unit_chunks>
class UnitWalk {
 public:
  __device__ __forceinline__ UnitWalk(const DownArgs& a, const ExpertGroup* groups, int n_groups)
      : a_(a), groups_(groups), n_groups_(n_groups), group_(warp_index()) {
    find();
  }

  __device__ __forceinline__ bool is_done() const { return group_ >= n_groups_; }
  __device__ __forceinline__ const ExpertGroup& group() const { return groups_[group_]; }
  __device__ __forceinline__ const RowShape& shape() const { return shape_; }
  // n is 0 where another place computes the expert.
  __device__ __forceinline__ Unit unit() const {
    return {stripe_ + chunk_offset<type>(first_), first_,
            min(unit_chunks, shape_.n_chunks - first_)};
  }
  // True where a group ends.
  __device__ __forceinline__ bool advance() {
    first_ += unit_chunks;
    if (first_ < shape_.n_chunks) return false;
    group_ += kWarps;
    find();
    return true;
  }

 private:
  __device__ __forceinline__ void find() {
    first_ = 0;
    if (is_done()) return;
    const bool is_shared = a_.p.shape.shared_d_ff > 0 && group_ == n_groups_ - 1;
    shape_ = is_shared ? a_.shared_shape : a_.shape;
    stripe_ = group().down;
    if (stripe_) {
      stripe_ += blockIdx.x * (is_shared ? a_.shared_stripe_bytes : a_.stripe_bytes);
    } else {
      shape_.n_chunks = 0;
    }
  }

  const DownArgs& a_;
  const ExpertGroup* groups_;
  int n_groups_, group_, first_ = 0;
  RowShape shape_ = {};
  const uint8_t* stripe_ = nullptr;  // of the group
};

// A unit's weights, awaited where its inputs have been requested.
struct Awaited {
  static constexpr bool kAlways = false;
  WeightRing& ring;
  __device__ __forceinline__ const uint8_t* operator()(const uint8_t* src) const {
    return ring.wait(src);
  }
};

// x + the sum over ranks of a row's output, and the shared expert's. weights: [n_rows, n_used],
// then [n_rows] of the shared expert; outs in the same order.
__device__ __forceinline__ void combine(const DownArgs& a, const float* weights, const float* outs,
                                        int i, float x) {
  const int r = i / 8, column = i % 8, n_used = a.p.shape.n_used, first = r * n_used;
  float v = sum_by_rank(weights + first, outs + first * 8 + column, n_used, 8);
  if (a.p.shape.shared_d_ff > 0) {
    const int k = a.p.n_rows * n_used + r;
    v = __fmaf_rn(weights[k], outs[k * 8 + column], v);
  }
  a.p.x[static_cast<int64_t>(r) * a.p.shape.d_model + 8 * blockIdx.x + column] = __fadd_rn(x, v);
}

template <Type type, bool is_roomy>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(2))
    down_kernel(const __grid_constant__ DownArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ HostTimes times;
  const SharedPlan plan = shared_plan(a);
  const int warp = warp_index(), lane = lane_index();
  auto* const groups = reinterpret_cast<ExpertGroup*>(shared + plan.groups_at);
  auto* const outs = reinterpret_cast<float*>(shared + plan.outs_at);
  auto* const weights_of_slots = reinterpret_cast<float*>(shared + plan.weights_at);
  WeightRing ring(shared, shared + plan.barriers_at, a.ring, warp);
  let_next_kernel_begin();
  const int n_groups = __ldcg(a.p.list.n_groups), n_rows = a.p.n_rows;
  const int n_live = a.p.n_live ? min(__ldcg(a.p.n_live), n_rows) : n_rows;
  load_groups(a.p.list.groups, a.most_groups, groups);
  if (threadIdx.x == 0) times = {};
  __syncthreads();
  using Walk = UnitWalk<type, kChunksOfUnit<is_roomy>>;
  Walk asked(a, groups, n_groups), walk(a, groups, n_groups);
  const auto request = [&] {
    const Unit unit = asked.unit();
    ring.request(unit.data, unit.n ? unit_bytes<type>(asked.shape(), unit.first, unit.n) : 0);
    asked.advance();
  };
#pragma unroll 1
  for (int i = 0; i < a.ring.n_slots && !asked.is_done(); ++i) request();
  wait_for_previous_kernel();

  if (blockIdx.x == 0 && threadIdx.x == 0) begin_times(a.p.host, times);
  const int n_routed = n_rows * a.p.shape.n_used;
  for (int i = threadIdx.x; i < a.n_slots; i += kThreads) {
    if (i < n_routed) weights_of_slots[i] = __ldcg(a.p.weights + i);
    if (i >= n_routed && a.p.shape.shared_d_ff > 0) {
      weights_of_slots[i] = __ldcg(a.p.shared_weights + i - n_routed);
    }
  }
  const bool sums = static_cast<int>(threadIdx.x) < 8 * n_live;
  float x = 0.0f;
  if (sums) {
    x = __ldcg(a.p.x + static_cast<int64_t>(threadIdx.x / 8) * a.p.shape.d_model + 8 * blockIdx.x +
               threadIdx.x % 8);
  }
  PairSets acc = {};
#pragma unroll 1
  while (!walk.is_done()) {
    const ExpertGroup& group = walk.group();
    const Unit unit = walk.unit();
    const int n_pairs = group.n_pairs;
    if (unit.n == 0) {
      ring.wait(unit.data);
      await_answer(a.p.host, times);
      for (int i = lane; i < 8 * n_pairs; i += kWarp) {
        const int own = group.slot[i / 8];
        outs[own * 8 + i % 8] = __ldcv(a.p.outside + static_cast<int64_t>(own) * a.p.shape.d_model +
                                       8 * blockIdx.x + i % 8);
      }
    } else {
      add_pairs<type, PastL1Load>(
          unit, walk.shape(), n_pairs, acc, [&](int k) { return input_row(a.p.h, group.slot[k]); },
          Awaited{ring});
    }
    __syncwarp();
    if (!asked.is_done()) request();
    if (walk.advance() && unit.n > 0) {
      acc.each(n_pairs, lane,
               [&](int pair, float sum) { outs[group.slot[pair] * 8 + lane / 4] = sum; });
      acc = {};
    }
  }
  __syncthreads();
  if (sums) combine(a, weights_of_slots, outs, static_cast<int>(threadIdx.x), x);
  if (blockIdx.x == 0 && threadIdx.x == 0) write_times(a.p.host, times);
}

// False where a block has not the shared memory for it.
template <Type type, bool is_roomy>
bool run(const Down& p, const Launch& how) {
  DownArgs args{down_sizes<type, is_roomy>(p, kWarps, 2), p.n_rows * (p.shape.n_used + 1),
                most_groups(p.shape, p.n_rows)};
  // Two blocks an SM, and not more: a dependent launch packs them where the kernel before ends
  // first.
  while (args.ring.n_slots > 1 && shared_plan(args).n_bytes > how.shared_per_sm / 2 - 1024) {
    --args.ring.n_slots;
  }
  const int n_bytes = std::max(shared_plan(args).n_bytes, how.shared_per_sm / 3);
  if (n_bytes > how.shared_bytes) return false;
  const dim3 grid(static_cast<unsigned>(p.shape.d_model / 8));
  launch(down_kernel<type, is_roomy>, grid, kThreads, static_cast<size_t>(n_bytes), how, args);
  return true;
}

}  // namespace

void down(const Down& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_rows <= kMaxRows && p.shape.n_used <= kMaxUsed);
  CHECK(p.shape.d_model % 8 == 0 && p.shape.d_ff % 32 == 0 && p.shape.shared_d_ff % 32 == 0);
  CHECK(p.h.n_chunks == row_shape(std::max(p.shape.d_ff, p.shape.shared_d_ff)).n_chunks);
  if (p.n_rows == 1) return down_row(p, how);
  if (down_pairs(p, how)) return;
  with_stripe_type(p.shape.down_type, [&]<Type type>() {
    CHECK((run<type, true>(p, how) || run<type, false>(p, how)));
  });
}

}  // namespace sluice::backend::cuda
