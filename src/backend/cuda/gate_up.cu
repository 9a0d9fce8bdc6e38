// Gate, up, SwiGLU and the quantisation of the hidden row, for all experts of a step.
//
// Layout   weights: stripes, by the addresses in the list; a and h: int8 rows (int8_rows.h).
// Mapping  an item is 32 hidden values (a block of h) of one group: four stripes of gate and four
//          of up, one to a warp, unit by unit. Then a warp for each pair: SwiGLU and part A of the
//          contract, a lane to a value. The weights of an expert are read once for all rows. As
//          many blocks as the card holds take every gridDim-th item each, and ask for the weights
//          of the next items while they compute: with a block for each item, every one of them
//          began with an empty ring (64 experts of Q4_K: 67 % of plain reads). Where a block has
//          little shared memory, units are shorter and rows are read straight from L2.
// Limits   d_ff % 32 == 0, d_model % 32 (super-blocks: 256), 2 to 16 rows (the launcher checks).
// Cost     see bench/gpu_kernels and docs/decisions/0015.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#include "backend/cuda/async_copy.cuh"
#include "backend/cuda/experts_row.h"
#include "backend/cuda/gate_up_items.cuh"
#include "backend/cuda/gate_up_pairs.h"
#include "backend/cuda/hidden.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/stage_rows.h"
#include "backend/cuda/stripe_dispatch.h"
#include "backend/cuda/weight_ring.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kMostSlots = 4;

struct GateUpArgs : GateUpSizes {
  RingSize ring;
  int most_groups;
};

struct SharedPlan {
  int rows_at, dots_at, ranked_at, groups_at, barriers_at, n_bytes;
};
template <bool is_roomy>
__host__ __device__ inline SharedPlan shared_plan(const GateUpArgs& a) {
  SharedPlan s;
  s.rows_at = a.ring.slots_bytes(kWarps);
  s.dots_at = s.rows_at + (is_roomy ? a.p.n_rows * staged_row_bytes(a.shape.n_chunks) : 0);
  const ListPlan list(a.p, s.dots_at, 2 * a.p.n_rows * 2 * 32 * 4, a.most_groups);
  s.ranked_at = list.ranked_at, s.groups_at = list.groups_at, s.barriers_at = list.end;
  s.n_bytes = s.barriers_at + a.ring.barriers_bytes(kWarps);
  return s;
}

// The units of a warp: those of its stripe of each item of the block.
template <Type type, int unit_chunks>
class UnitWalk {
 public:
  __device__ __forceinline__ UnitWalk(const GateUpArgs& a, const ExpertGroup* groups, int n_groups)
      : a_(a), groups_(groups), items_(a.p.shape, n_groups) {
    find();
  }

  __device__ __forceinline__ bool is_done() const { return items_.is_done(); }
  __device__ __forceinline__ const ExpertGroup& group() const { return groups_[items_.group()]; }
  __device__ __forceinline__ int block() const { return items_.block(); }
  // The unit in its stripe; n is 0 where another place computes the expert.
  __device__ __forceinline__ Unit unit() const {
    const int first = unit_chunks * unit_;
    if (stripe_ == nullptr) return {nullptr, first, 0};
    return {stripe_ + chunk_offset<type>(first), first,
            min(unit_chunks, a_.shape.n_chunks - first)};
  }
  // True where an item ends.
  __device__ __forceinline__ bool advance() {
    if (++unit_ * unit_chunks < a_.shape.n_chunks) return false;
    unit_ = 0, items_.next();
    find();
    return true;
  }

 private:
  __device__ __forceinline__ void find() {
    if (is_done()) return;
    const int warp = warp_index();
    const uint8_t* const at = warp < 4 ? group().gate : group().up;
    stripe_ = at ? at + (4 * block() + warp % 4) * a_.stripe_bytes : nullptr;
  }

  const GateUpArgs& a_;
  const ExpertGroup* groups_;
  GateUpItems items_;
  int unit_ = 0;
  const uint8_t* stripe_ = nullptr;
};

template <Type type, bool is_roomy>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(2))
    gate_up_kernel(const __grid_constant__ GateUpArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  const SharedPlan plan = shared_plan<is_roomy>(a);
  const int warp = warp_index(), lane = lane_index();
  auto* const groups = reinterpret_cast<ExpertGroup*>(shared + plan.groups_at);
  uint8_t* const rows = shared + plan.rows_at;
  WeightRing ring(shared, shared + plan.barriers_at, a.ring, warp);

  GateUpList list(a.p, shared + plan.dots_at, shared + plan.ranked_at);
  list.wait();
  if constexpr (is_roomy) {
    copy_rows(a.p.a, a.p.n_rows, a.shape.n_chunks, rows, warp, kWarps, copy_16);
  }
  const int n_groups = list.read(a.most_groups, groups);
  using Walk = UnitWalk<type, kChunksOfUnit<is_roomy>>;
  Walk asked(a, groups, n_groups), walk(a, groups, n_groups);
  const auto request = [&] {
    const Unit unit = asked.unit();
    ring.request(unit.data, unit.n ? unit_bytes<type>(a.shape, unit.first, unit.n) : 0);
    asked.advance();
  };
#pragma unroll 1
  for (int i = 0; i < a.ring.n_slots && !asked.is_done(); ++i) request();
  wait_for_copies();
  __syncthreads();

  auto* dots = reinterpret_cast<float*>(shared + plan.dots_at);  // [pair][gate or up][32]
  int other = a.p.n_rows * 2 * 32;                               // to the other one of two
  int turn = 0;                                                  // of the warps, to end an item
  while (!walk.is_done()) {
    const ExpertGroup& group = walk.group();
    const int n_pairs = group.n_pairs, block = walk.block();
    PairSets acc = {};
    bool is_here = false, ends = false;
#pragma unroll 1
    while (!ends) {
      Unit unit = walk.unit();
      is_here = unit.n > 0;
      unit.data = ring.wait(unit.data);
      if (is_here) {
        const auto row = [&](int k) {
          if constexpr (is_roomy) {
            return staged_row(rows, a.shape.n_chunks, group.row[k]);
          } else {
            return input_row(a.p.a, group.row[k]);
          }
        };
        using Load = std::conditional_t<is_roomy, StagedLoad, PastL1Load>;
        add_pairs<type, Load>(unit, a.shape, n_pairs, acc, row, Ready{});
      }
      __syncwarp();
      if (!asked.is_done()) request();
      ends = walk.advance();
    }
    float* const mine = dots + warp / 4 * 32 + warp % 4 * 8 + lane / 4;
    acc.each(n_pairs, lane, [&](int pair, float sum) { mine[64 * pair] = sum; });
    __syncthreads();
#pragma unroll 1
    for (int pair = (warp - turn) & (kWarps - 1); is_here && pair < n_pairs; pair += kWarps) {
      write_hidden(a.p.h, group.slot[pair], block, dots + 64 * pair);
    }
    turn += n_pairs;
    dots += other;
    other = -other;
  }
  list.write_weights();
}

// As many blocks on an SM, two at most, as leave each two slots to a warp. False where a block has
// not the shared memory for one.
template <Type type, bool is_roomy>
bool run(const GateUp& p, const Launch& how) {
  GateUpArgs args{gate_up_sizes<type>(p), {}, most_groups(p.shape, p.n_rows)};
  args.ring.slot_size =
      slot_bytes(static_cast<int>(kChunksOfUnit<is_roomy> * Stripe<type>::chunk_bytes(8)));
  const auto fits = [&](int n_blocks, int n_slots) {
    args.ring.n_slots = n_slots;
    return shared_plan<is_roomy>(args).n_bytes <=
           std::min(how.shared_bytes, how.shared_per_sm / n_blocks - 1024);
  };
  if (!fits(1, 1)) return false;
  const int per_sm = fits(2, 2) ? 2 : 1;
  int n_slots = kMostSlots;
  while (n_slots > 1 && !fits(per_sm, n_slots)) --n_slots;
  args.ring.n_slots = n_slots;
  // Not more of them on an SM, wherever the kernel before ends first.
  const int n_bytes =
      std::max(shared_plan<is_roomy>(args).n_bytes, how.shared_per_sm / (per_sm + 1));
  const int n_items = args.most_groups * std::max(p.shape.d_ff, p.shape.shared_d_ff) / 32;
  const dim3 grid(static_cast<unsigned>(std::min(n_items, per_sm * how.n_sms)));
  launch(gate_up_kernel<type, is_roomy>, grid, kThreads, static_cast<size_t>(n_bytes), how, args);
  return true;
}

}  // namespace

void gate_up(const GateUp& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_rows <= kMaxRows && p.shape.n_used <= kMaxUsed);
  CHECK(p.shape.d_model % 32 == 0 && p.shape.d_ff % 32 == 0 && p.shape.shared_d_ff % 32 == 0);
  CHECK(p.a.n_chunks == row_shape(p.shape.d_model).n_chunks);
  if (p.n_rows == 1) return gate_up_row(p, how);
  const Ranking& r = p.ranking;
  CHECK(!r.scores || (r.n_experts <= kMostRanked && !r.forced && !r.missing));
  CHECK(!r.scores || (p.list.groups && (p.shape.shared_d_ff == 0 || r.shared[0])));
  if (gate_up_pairs(p, how)) return;
  with_stripe_type(p.shape.gate_up_type, [&]<Type type>() {
    CHECK((run<type, true>(p, how) || run<type, false>(p, how)));
  });
}

}  // namespace sluice::backend::cuda
