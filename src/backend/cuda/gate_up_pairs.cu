// Gate, up, SwiGLU and the quantisation of the hidden row, for all experts of a step of several
// rows, for types of which a warp takes a stripe of gate and the same rows of up (stripe_two.h).
// Otherwise as gate_up.cu.
//
// Mapping  an item is 32 hidden values of one group: four pairs of stripes. A warp takes the even
//          units of a pair, or the odd ones. All chunk sums of up to `pairs_at_once` inputs meet in
//          shared memory, and a warp for each pair adds them in order, makes the hidden values and
//          quantises them. Where a group has more inputs a warp has one unit of an item, whose
//          weights stay until all inputs are done.
// Limits   as gate_up.cu.
// Cost     see bench/gpu_kernels.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/async_copy.cuh"
#include "backend/cuda/gate_up_items.cuh"
#include "backend/cuda/gate_up_pairs.h"
#include "backend/cuda/hidden.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/stage_rows.h"
#include "backend/cuda/stripe_dispatch.h"
#include "backend/cuda/stripe_two.h"
#include "backend/cuda/weight_ring.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kMostSlots = 3;
constexpr int kStripes = 4;                     // of gate and of up, of an item
constexpr int kTurns = kWarps / kStripes;       // of warps that share a pair of stripes
constexpr int kChunkStride = 8 * kStripes + 8;  // of sums: lanes of a row write to other banks

struct PairsArgs : GateUpSizes {
  RingSize ring;
  int most_groups;
  int pairs_at_once;

  // Of sums: from gate's to up's, and from an input's to the next one's.
  __host__ __device__ constexpr int stripe_stride() const { return shape.n_chunks * kChunkStride; }
  __host__ __device__ constexpr int pair_stride() const { return 2 * stripe_stride() + 8; }
};

struct PairsPlan {
  int rows_at, sums_at, ranked_at, groups_at, barriers_at, n_bytes;
};
__host__ __device__ inline PairsPlan shared_plan(const PairsArgs& a) {
  PairsPlan s;
  s.rows_at = a.ring.slots_bytes(kWarps);
  s.sums_at = s.rows_at + a.p.n_rows * staged_row_bytes(a.shape.n_chunks);
  const ListPlan list(a.p, s.sums_at, a.pairs_at_once * a.pair_stride() * 4, a.most_groups);
  s.ranked_at = list.ranked_at, s.groups_at = list.groups_at, s.barriers_at = list.end;
  s.n_bytes = s.barriers_at + a.ring.barriers_bytes(kWarps);
  return s;
}

// The units of a warp: every second one of its pair of stripes, of each item of the block.
template <Type type>
class UnitWalk {
 public:
  __device__ __forceinline__ UnitWalk(const PairsArgs& a, const ExpertGroup* groups, int n_groups)
      : a_(a), groups_(groups), items_(a.p.shape, n_groups), unit_(warp_index() / kStripes) {}

  __device__ __forceinline__ bool is_done() const { return items_.is_done(); }
  __device__ __forceinline__ const ExpertGroup& group() const { return groups_[items_.group()]; }
  __device__ __forceinline__ int block() const { return items_.block(); }
  // data is null where another place computes the expert.
  __device__ __forceinline__ TwoUnits units() const {
    const int first = kUnitChunks * unit_, n = min(kUnitChunks, a_.shape.n_chunks - first);
    const uint8_t* const gate = group().gate;
    if (gate == nullptr) return {{nullptr, nullptr}, first, n};
    const int64_t at = (kStripes * block() + warp_index() % kStripes) * a_.stripe_bytes +
                       chunk_offset<type>(first);
    return {{gate + at, group().up + at}, first, n};
  }
  // Whether the warp has this unit of the item, or any.
  __device__ __forceinline__ bool has_unit() const { return unit_ < a_.shape.n_units(); }
  __device__ __forceinline__ void next_unit() { unit_ += kTurns; }
  __device__ __forceinline__ void next_item() { unit_ = warp_index() / kStripes, items_.next(); }

 private:
  const PairsArgs& a_;
  const ExpertGroup* groups_;
  GateUpItems items_;
  int unit_;
};

struct AreThere {
  __device__ __forceinline__ void operator()(const TwoUnits&) const {}
};

// A barrier before a warp's first sums of an item's inputs: those before have been added then.
class BeforeSums {
 public:
  __device__ __forceinline__ void operator()() {
    if (!is_done_) __syncthreads();
    is_done_ = true;
  }

 private:
  bool is_done_ = false;
};

// Slots of larger types, and eight rows, leave no room for two.
template <Type type>
constexpr int kBlocksPerSm = Stripe<type>::chunk_bytes(8) <= 1152 ? 2 : 1;

template <Type type>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(kBlocksPerSm<type>))
    gate_up_pairs_kernel(const __grid_constant__ PairsArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  const PairsPlan plan = shared_plan(a);
  const int warp = warp_index(), lane = lane_index();
  auto* const groups = reinterpret_cast<ExpertGroup*>(shared + plan.groups_at);
  uint8_t* const rows = shared + plan.rows_at;
  WeightRing ring(shared, shared + plan.barriers_at, a.ring, warp);

  GateUpList list(a.p, shared + plan.sums_at, shared + plan.ranked_at);
  list.wait();
  copy_rows(a.p.a, a.p.n_rows, a.shape.n_chunks, rows, warp, kWarps, copy_16);
  const int n_groups = list.read(a.most_groups, groups);
  UnitWalk<type> asked(a, groups, n_groups), walk(a, groups, n_groups);
  const auto request = [&] {
    const TwoUnits units = asked.units();
    ring.request(units.data, units.data[0] ? unit_bytes<type>(a.shape, units.first, units.n) : 0);
    asked.next_unit();
    if (!asked.has_unit()) asked.next_item();
  };
  const bool has_units = asked.has_unit();
#pragma unroll 1
  for (int i = 0; has_units && i < a.ring.n_slots && !asked.is_done(); ++i) request();
  wait_for_copies();
  __syncthreads();

  auto* const sums = reinterpret_cast<float*>(shared + plan.sums_at);
  float* const mine = sums + warp % kStripes * 8 + lane / 4;
  int turn = 0;  // of the warps, to end an item
#pragma unroll 1
  for (; !walk.is_done(); walk.next_item()) {
    const ExpertGroup& group = walk.group();
    const int n_pairs = group.n_pairs;
    const bool is_here = group.gate != nullptr;
    TwoUnits units{};
#pragma unroll 1
    for (int base = 0; base == 0 || base < n_pairs; base += a.pairs_at_once) {
      const int end = min(n_pairs, base + a.pairs_at_once);
      BeforeSums before;
      const AreThere ready;
#pragma unroll 1
      for (; walk.has_unit(); walk.next_unit()) {
        if (base == 0) {
          const TwoUnits from = units = walk.units();
          ring.wait(from.data, units.data);
        }
#pragma unroll 1
        for (int k = base; is_here && k < end; k += kInputsAtOnce) {
          const int n = min(kInputsAtOnce, end - k);
          const auto row = [&](int i) {
            return staged_row(rows, a.shape.n_chunks, group.row[k + i]);
          };
          const auto take = [&](int stripe, int chunk, int input, int, float sum) {
            mine[(k - base + input) * a.pair_stride() + stripe * a.stripe_stride() +
                 chunk * kChunkStride] = sum;
          };
          if (n == 1) {
            dot_two<type, StagedLoad>(units, a.shape, row(0), ready, before, take);
          } else if (n == 2) {
            dot_two<type, StagedLoad, 2>(units, a.shape, n, row, ready, before, take);
          } else {
            dot_two<type, StagedLoad, 4>(units, a.shape, n, row, ready, before, take);
          }
        }
        if (end < n_pairs) break;  // the unit's weights are needed again
        __syncwarp();
        if (!asked.is_done()) request();
      }
      before();
      __syncthreads();
#pragma unroll 1
      for (int k = base + ((warp - turn) & (kWarps - 1)); is_here && k < end; k += kWarps) {
        const float* const of_pair = sums + (k - base) * a.pair_stride();
        write_hidden_of(a.p.h, group.slot[k], walk.block(), [&](int is_up, int i) {
          float dot = 0.0f;
#pragma unroll 8
          for (int c = 0; c < a.shape.n_chunks; ++c) {
            dot = __fadd_rn(dot, of_pair[is_up * a.stripe_stride() + c * kChunkStride + i]);
          }
          return dot;
        });
      }
      turn += end - base;
    }
  }
  list.write_weights();
}

template <Type type>
PairsArgs pairs_args(const GateUp& p) {
  PairsArgs args{gate_up_sizes<type>(p), {}, most_groups(p.shape, p.n_rows), p.n_rows};
  // A warp with one unit of an item keeps its weights for more inputs.
  if (args.shape.n_units() <= kTurns) args.pairs_at_once = std::min(p.n_rows, kInputsAtOnce);
  args.ring.slot_size =
      2 * slot_bytes(static_cast<int>(kUnitChunks * Stripe<type>::chunk_bytes(8)));
  return args;
}

// As many blocks on an SM as there is room for, two at most. False where there is none for one.
template <Type type>
bool run(const GateUp& p, const Launch& how) {
  PairsArgs args = pairs_args<type>(p);
  const auto fits = [&](int n_blocks, int n_slots) {
    args.ring.n_slots = n_slots;
    return shared_plan(args).n_bytes <=
           std::min(how.shared_bytes, how.shared_per_sm / n_blocks - 1024);
  };
  if (!fits(1, 1)) return false;
  const int per_sm = kBlocksPerSm<type> == 2 && fits(2, 1) ? 2 : 1;
  int n_slots = kMostSlots;
  while (n_slots > 1 && !fits(per_sm, n_slots)) --n_slots;
  args.ring.n_slots = n_slots;
  // Not more of them on an SM, wherever the kernel before ends first.
  const int n_bytes = std::max(shared_plan(args).n_bytes, how.shared_per_sm / (per_sm + 1));
  const int n_items = args.most_groups * std::max(p.shape.d_ff, p.shape.shared_d_ff) / 32;
  const dim3 grid(static_cast<unsigned>(std::min(n_items, per_sm * how.n_sms)));
  launch(gate_up_pairs_kernel<type>, grid, kThreads, static_cast<size_t>(n_bytes), how, args);
  return true;
}

template <Type type>
constexpr bool is_taken = type != Type::q8_0&& takes_two<type>;

}  // namespace

bool gate_up_pairs(const GateUp& p, const Launch& how) {
  bool is_done = false;
  with_stripe_type(p.shape.gate_up_type, [&]<Type type>() {
    if constexpr (is_taken<type>) is_done = run<type>(p, how);
  });
  return is_done;
}

}  // namespace sluice::backend::cuda
