// Gate, up, SwiGLU and the quantisation of the hidden row, for all experts of a step.
//
// Layout   weights: stripes, by the addresses in the list; a and h: int8 rows (int8_rows.h).
// Mapping  an item is 32 hidden values (a block of h) of one group: four stripes of gate and four
// of
//          up, one to a warp, unit by unit. Then a warp for each pair: SwiGLU and part A of the
//          contract, a lane to a value. The weights of an expert are read once for all rows. As
//          many blocks as the card holds take every gridDim-th item each, and ask for the weights
//          of the next items while they compute: with a block for each item, every one of them
//          began with an empty ring (64 experts of Q4_K: 67 % of plain reads).
// Limits   d_ff % 32 == 0, d_model % 32 (super-blocks: 256), 2 to 16 rows (the launcher checks).
// Cost     see bench/gpu_kernels and docs/decisions/0015.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/async_copy.cuh"
#include "backend/cuda/expert_sizes.cuh"
#include "backend/cuda/experts_row.h"
#include "backend/cuda/gate_up_pairs.h"
#include "backend/cuda/hidden.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/rank_rows.cuh"
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

// The choice of experts is over before there are dots.
struct SharedPlan {
  int rows_at, dots_at, ranked_at, groups_at, barriers_at, n_bytes;
};
__host__ __device__ constexpr int max_of(int a, size_t b) {
  return a > static_cast<int>(b) ? a : static_cast<int>(b);
}
__host__ __device__ inline SharedPlan shared_plan(const GateUpArgs& a) {
  SharedPlan s;
  s.rows_at = a.ring.slots_bytes(kWarps);
  s.dots_at = s.rows_at + a.p.n_rows * staged_row_bytes(a.shape.n_chunks);
  const int dots_bytes = 2 * a.p.n_rows * 2 * 32 * 4;
  const bool ranks = a.p.ranking.scores != nullptr;
  s.ranked_at = s.dots_at + (ranks ? max_of(dots_bytes, sizeof(RankedChoice)) : dots_bytes);
  s.groups_at = s.ranked_at + (ranks ? static_cast<int>(sizeof(RankedRows)) : 0);
  s.barriers_at = s.groups_at + a.most_groups * static_cast<int>(sizeof(ExpertGroup));
  s.n_bytes = s.barriers_at + a.ring.barriers_bytes(kWarps);
  return s;
}

// The units of a warp: those of its stripe of each item of the block.
template <Type type>
class UnitWalk {
 public:
  __device__ __forceinline__ UnitWalk(const GateUpArgs& a, const ExpertGroup* groups, int n_groups)
      : a_(a),
        groups_(groups),
        n_routed_(n_groups - (a.p.shape.shared_d_ff > 0 ? 1 : 0)),
        per_group_(a.p.shape.d_ff / 32),
        n_items_(n_routed_ * per_group_ + a.p.shape.shared_d_ff / 32),
        item_(static_cast<int>(blockIdx.x)),
        group_step_(static_cast<int>(gridDim.x) / per_group_),
        block_step_(static_cast<int>(gridDim.x) % per_group_),
        group_(min(item_ / per_group_, n_routed_)),
        block_(item_ - group_ * per_group_) {
    find();
  }

  __device__ __forceinline__ bool is_done() const { return item_ >= n_items_; }
  __device__ __forceinline__ const ExpertGroup& group() const { return groups_[group_]; }
  __device__ __forceinline__ int block() const { return block_; }
  // The unit in its stripe; n is 0 where another place computes the expert.
  __device__ __forceinline__ Unit unit() const {
    const int first = kUnitChunks * unit_;
    if (stripe_ == nullptr) return {nullptr, first, 0};
    return {stripe_ + chunk_offset<type>(first), first,
            min(kUnitChunks, a_.shape.n_chunks - first)};
  }
  // True where an item ends.
  __device__ __forceinline__ bool advance() {
    if (++unit_ < a_.shape.n_units()) return false;
    unit_ = 0, item_ += static_cast<int>(gridDim.x);
    group_ += group_step_, block_ += block_step_;
    if (block_ >= per_group_) block_ -= per_group_, ++group_;
    if (group_ > n_routed_) block_ += (group_ - n_routed_) * per_group_, group_ = n_routed_;
    find();
    return true;
  }

 private:
  __device__ __forceinline__ void find() {
    if (is_done()) return;
    const int warp = warp_index();
    const uint8_t* const at = warp < 4 ? group().gate : group().up;
    stripe_ = at ? at + (4 * block_ + warp % 4) * a_.stripe_bytes : nullptr;
  }

  const GateUpArgs& a_;
  const ExpertGroup* groups_;
  int n_routed_, per_group_, n_items_, item_;
  int group_step_, block_step_;  // from an item to the block's next
  int group_, block_, unit_ = 0;
  const uint8_t* stripe_ = nullptr;
};

template <Type type>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(2))
    gate_up_kernel(const __grid_constant__ GateUpArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  const SharedPlan plan = shared_plan(a);
  const int warp = warp_index(), lane = lane_index();
  auto* const groups = reinterpret_cast<ExpertGroup*>(shared + plan.groups_at);
  uint8_t* const rows = shared + plan.rows_at;
  WeightRing ring(shared, shared + plan.barriers_at, a.ring, warp);

  // The last block has not more items than others; it writes the list where nobody else did.
  const bool ranks = a.p.ranking.scores != nullptr;
  const bool writes_list = ranks && blockIdx.x == gridDim.x - 1;
  RowsRanking ranking(a.p, *reinterpret_cast<RankedChoice*>(shared + plan.dots_at),
                      *reinterpret_cast<RankedRows*>(shared + plan.ranked_at));
  if (ranks) ranking.begin();
  wait_for_previous_kernel();
  if (!writes_list) let_next_kernel_begin();
  copy_rows(a.p.a, a.p.n_rows, a.shape.n_chunks, rows, warp, kWarps, copy_16);
  int n_groups = 0;
  if (ranks) {
    n_groups = ranking.choose(groups);
  } else {
    n_groups = __ldcg(a.p.list.n_groups);
    load_groups(a.p.list.groups, a.most_groups, groups);
  }
  __syncthreads();
  if (writes_list) {
    ranking.write_list(a.p.list, groups, n_groups);
    __syncthreads();
    let_next_kernel_begin();
  }
  UnitWalk<type> asked(a, groups, n_groups), walk(a, groups, n_groups);
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
        add_pairs<type, StagedLoad>(
            unit, a.shape, n_pairs, acc,
            [&](int k) { return staged_row(rows, a.shape.n_chunks, group.row[k]); }, Ready{});
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
  if (writes_list) ranking.write_weights();
}

// As many blocks on an SM, two at most, as leave each two slots to a warp.
template <Type type>
void run(const GateUp& p, const Launch& how) {
  GateUpArgs args{gate_up_sizes<type>(p), {}, most_groups(p.shape, p.n_rows)};
  args.ring.slot_size = slot_bytes(static_cast<int>(kUnitChunks * Stripe<type>::chunk_bytes(8)));
  const auto fits = [&](int n_blocks, int n_slots) {
    args.ring.n_slots = n_slots;
    return shared_plan(args).n_bytes <=
           std::min(how.shared_bytes, how.shared_per_sm / n_blocks - 1024);
  };
  const int per_sm = fits(2, 2) ? 2 : 1;
  int n_slots = kMostSlots;
  while (n_slots > 1 && !fits(per_sm, n_slots)) --n_slots;
  CHECK(fits(per_sm, n_slots));
  // Not more of them on an SM, wherever the kernel before ends first.
  const int n_bytes = std::max(shared_plan(args).n_bytes, how.shared_per_sm / (per_sm + 1));
  const int n_items = args.most_groups * std::max(p.shape.d_ff, p.shape.shared_d_ff) / 32;
  const dim3 grid(static_cast<unsigned>(std::min(n_items, per_sm * how.n_sms)));
  launch(gate_up_kernel<type>, grid, kThreads, static_cast<size_t>(n_bytes), how, args);
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
  with_stripe_type(p.shape.gate_up_type, [&]<Type type>() { run<type>(p, how); });
}

}  // namespace sluice::backend::cuda
