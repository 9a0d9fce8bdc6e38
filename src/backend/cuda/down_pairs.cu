// The experts' down projections of several rows, their weighted sum in order of rank, and the
// residual, for types of which a warp takes two stripes of an expert (stripe_two.h). Otherwise as
// down.cu.
//
// Mapping  a block owns sixteen outputs of all rows, two stripes of every expert; a warp takes an
//          expert, then the next one that no other warp of the block has taken, and reads its
//          hidden rows straight from L2 into fragments. Chunk sums meet in shared memory, and a
//          thread for each (row, output) adds them in order, and experts by rank.
// Limits   d_model % 16 == 0, at most four chunks of d_ff (down_pairs says so); otherwise those of
//          down.cu.
// Cost     see bench/gpu_kernels and docs/decisions/0015.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/down_pairs.h"
#include "backend/cuda/expert_sizes.cuh"
#include "backend/cuda/host_words.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/stage_rows.h"
#include "backend/cuda/stripe_dispatch.h"
#include "backend/cuda/stripe_two.h"
#include "backend/cuda/weight_ring.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = 16;
constexpr int kThreads = kWarps * kWarp;
constexpr int kOutputs = 16;
constexpr int kChunkStride = kOutputs + 8;  // of sums: lanes of a row write to other banks

struct PairsArgs : DownSizes {
  int n_slots;  // of outputs
  int most_groups;
  int n_chunks;  // of the longest rows

  __host__ __device__ constexpr int slot_stride() const { return n_chunks * kChunkStride; }
};

struct PairsPlan {
  int groups_at, sums_at, weights_at, barriers_at, n_bytes;
};
__host__ __device__ inline PairsPlan shared_plan(const PairsArgs& a) {
  PairsPlan s;
  s.groups_at = a.ring.slots_bytes(kWarps);
  s.sums_at = s.groups_at + a.most_groups * static_cast<int>(sizeof(ExpertGroup));
  s.weights_at = s.sums_at + a.n_slots * a.slot_stride() * 4;
  s.barriers_at = (s.weights_at + a.n_slots * 4 + 7) / 8 * 8;
  s.n_bytes = s.barriers_at + a.ring.barriers_bytes(kWarps);
  return s;
}

struct NoBarrier {
  __device__ __forceinline__ void operator()() const {}
};

// The block's stripes of groups, and the shapes of their rows.
template <Type type>
class Stripes {
 public:
  __device__ __forceinline__ Stripes(const PairsArgs& a, const ExpertGroup* groups, int n_groups)
      : a_(a), groups_(groups), n_groups_(n_groups) {}

  __device__ __forceinline__ bool is_shared(int group) const {
    return a_.p.shape.shared_d_ff > 0 && group == n_groups_ - 1;
  }
  __device__ __forceinline__ const RowShape& shape(int group) const {
    return is_shared(group) ? a_.shared_shape : a_.shape;
  }
  // data is null where another place computes the expert.
  __device__ __forceinline__ TwoUnits of(int group) const {
    const uint8_t* const down = groups_[group].down;
    const int n = shape(group).n_chunks;
    if (down == nullptr) return {{nullptr, nullptr}, 0, n};
    const int64_t bytes = is_shared(group) ? a_.shared_stripe_bytes : a_.stripe_bytes;
    const uint8_t* const first = down + 2 * static_cast<int64_t>(blockIdx.x) * bytes;
    return {{first, first + bytes}, 0, n};
  }

 private:
  const PairsArgs& a_;
  const ExpertGroup* groups_;
  int n_groups_;
};

// x + the sum over ranks of a row's output, and the shared expert's. sums: of this column;
// weights: [n_rows, n_used], then [n_rows] of the shared expert.
__device__ __forceinline__ float combine(const PairsArgs& a, const float* weights,
                                         const float* sums, int r, float x) {
  const int n_used = a.p.shape.n_used;
  const auto output = [&](int slot, int n_chunks) {
    const float* const of_slot = sums + slot * a.slot_stride();
    float dot = 0.0f;
#pragma unroll
    for (int c = 0; c < kUnitChunks; ++c) {
      const float more = __fadd_rn(dot, of_slot[min(c, n_chunks - 1) * kChunkStride]);
      dot = c < n_chunks ? more : dot;
    }
    return dot;
  };
  float v = __fmul_rn(weights[r * n_used], output(r * n_used, a.shape.n_chunks));
#pragma unroll 4
  for (int k = r * n_used + 1; k < (r + 1) * n_used; ++k) {
    v = __fmaf_rn(weights[k], output(k, a.shape.n_chunks), v);
  }
  if (a.p.shape.shared_d_ff > 0) {
    const int k = a.p.n_rows * n_used + r;
    v = __fmaf_rn(weights[k], output(k, a.shared_shape.n_chunks), v);
  }
  return __fadd_rn(x, v);
}

template <Type type>
__global__ void __launch_bounds__(kThreads, 1)
    down_pairs_kernel(const __grid_constant__ PairsArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  if (!is_from_sm_90()) return;
  __shared__ HostTimes times;
  __shared__ int n_taken;  // of the groups
  const PairsPlan plan = shared_plan(a);
  const int warp = warp_index(), lane = lane_index();
  auto* const groups = reinterpret_cast<ExpertGroup*>(shared + plan.groups_at);
  auto* const sums = reinterpret_cast<float*>(shared + plan.sums_at);
  auto* const weights_of_slots = reinterpret_cast<float*>(shared + plan.weights_at);
  WeightRing ring(shared, shared + plan.barriers_at, a.ring, warp);
  let_next_kernel_begin();
  const int n_groups = __ldcg(a.p.list.n_groups), n_rows = a.p.n_rows;
  const int n_live = a.p.n_live ? min(__ldcg(a.p.n_live), n_rows) : n_rows;
  load_groups(a.p.list.groups, a.most_groups, groups);
  if (threadIdx.x == 0) times = {}, n_taken = kWarps;
  __syncthreads();
  const Stripes<type> stripes(a, groups, n_groups);
  const auto request = [&](int group) {
    if (group >= n_groups) return;
    const TwoUnits units = stripes.of(group);
    ring.request(units.data,
                 units.data[0] ? unit_bytes<type>(stripes.shape(group), 0, units.n) : 0);
  };
  int g = warp;
  request(g);
  wait_for_previous_kernel();

  if (blockIdx.x == 0 && threadIdx.x == 0) begin_times(a.p.host, times);
  const int n_routed = n_rows * a.p.shape.n_used;
  for (int i = threadIdx.x; i < a.n_slots; i += kThreads) {
    if (i < n_routed) weights_of_slots[i] = __ldcg(a.p.weights + i);
    if (i >= n_routed && a.p.shape.shared_d_ff > 0) {
      weights_of_slots[i] = __ldcg(a.p.shared_weights + i - n_routed);
    }
  }
  const int own_row = static_cast<int>(threadIdx.x) / kOutputs;
  const int own = static_cast<int>(threadIdx.x) % kOutputs;
  const bool adds = own_row < n_live;
  float* const out = a.p.x + static_cast<int64_t>(own_row) * a.p.shape.d_model +
                     kOutputs * static_cast<int64_t>(blockIdx.x) + own;
  const float x = adds ? __ldcg(out) : 0.0f;

  // The ring has one slot, where weights stand as far into a line as they do in memory.
  const uint8_t* const slot = shared + warp * a.ring.slot_size;
  const auto in_line = [](const uint8_t* p) {
    return static_cast<int>(reinterpret_cast<uintptr_t>(p) % kLine);
  };
  NoBarrier before;
#pragma unroll 1
  while (g < n_groups) {
    const ExpertGroup& group = groups[g];
    const int n_pairs = group.n_pairs;
    const RowShape shape = stripes.shape(g);
    const TwoUnits from = stripes.of(g);
    if (from.data[0] == nullptr) {
      TwoUnits none = from;
      ring.wait(from.data, none.data);
      await_answer(a.p.host, times);
      for (int i = lane; i < kOutputs * n_pairs; i += kWarp) {
        const int own_slot = group.slot[i / kOutputs], column = i % kOutputs;
        float* const to = sums + own_slot * a.slot_stride() + column;
        for (int c = 1; c < shape.n_chunks; ++c) to[c * kChunkStride] = 0.0f;
        *to = __ldcv(a.p.outside + static_cast<int64_t>(own_slot) * a.p.shape.d_model +
                     kOutputs * static_cast<int64_t>(blockIdx.x) + column);
      }
    } else {
      bool is_there = false;
      const auto ready = [&](TwoUnits& units) {
        if (!is_there) ring.wait(from.data, units.data);
        is_there = true;
        units.data[0] = slot + in_line(from.data[0]);
        units.data[1] = slot + a.ring.slot_size / 2 + in_line(from.data[1]);
      };
#pragma unroll 1
      for (int k = 0; k == 0 || k < n_pairs; k += kInputsAtOnce) {
        const int n = min(kInputsAtOnce, n_pairs - k);
        const auto row = [&](int i) { return input_row(a.p.h, group.slot[k + i]); };
        const auto take = [&](int stripe, int chunk, int input, int, float sum) {
          sums[group.slot[k + input] * a.slot_stride() + chunk * kChunkStride + 8 * stripe +
               lane / 4] = sum;
        };
        if (n == 1) {
          dot_two<type, PastL1Load>(from, shape, row(0), ready, before, take);
        } else if (n == 2) {
          dot_two<type, PastL1Load, 2>(from, shape, n, row, ready, before, take);
        } else if (n > 2) {
          dot_two<type, PastL1Load, 4>(from, shape, n, row, ready, before, take);
        } else {
          TwoUnits none;  // no live row
          ready(none);
        }
      }
    }
    __syncwarp();
    const int next = lane == 0 ? atomicAdd(&n_taken, 1) : 0;
    g = __shfl_sync(kAllLanes, next, 0);
    request(g);
  }
  __syncthreads();
  if (adds) *out = combine(a, weights_of_slots, sums + own, own_row, x);
  if (blockIdx.x == 0 && threadIdx.x == 0) write_times(a.p.host, times);
}

template <Type type>
bool run(const Down& p, const Launch& how) {
  PairsArgs args{down_sizes<type>(p, kWarps, 1), p.n_rows * (p.shape.n_used + 1),
                 most_groups(p.shape, p.n_rows), 0};
  args.n_chunks = args.shape.n_chunks;
  if (p.shape.shared_d_ff > 0) args.n_chunks = std::max(args.n_chunks, args.shared_shape.n_chunks);
  args.ring.n_slots = 1;
  args.ring.slot_size *= 2;
  const int n_bytes = std::max(shared_plan(args).n_bytes, how.shared_per_sm / 2);
  if (args.n_chunks > kUnitChunks || n_bytes > how.shared_bytes) return false;
  const dim3 grid(static_cast<unsigned>(p.shape.d_model / kOutputs));
  launch(down_pairs_kernel<type>, grid, kThreads, static_cast<size_t>(n_bytes), how, args);
  return true;
}

}  // namespace

bool down_pairs(const Down& p, const Launch& how) {
  bool is_done = false;
  // Before sm_90 a thread of so many would have too few registers.
  if (!how.overlaps || p.shape.d_model % kOutputs != 0) return false;
  with_stripe_type(p.shape.down_type, [&]<Type type>() {
    if constexpr (takes_two<type> && type != Type::q8_0) is_done = run<type>(p, how);
  });
  return is_done;
}

}  // namespace sluice::backend::cuda
