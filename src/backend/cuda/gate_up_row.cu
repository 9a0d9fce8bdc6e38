// Gate, up, SwiGLU and the quantisation of the hidden row, for the experts of a single row.
//
// Layout   weights: stripes; a and h: int8 rows (int8_rows.h).
// Mapping  a block makes 32 hidden values of one expert: four stripes of gate and four of up, one
//          to a warp, unit by unit. Its expert is that of a rank, which the block finds
//          among the router's scores; or the list names it. Where there is no list, one more block
//          writes it before it lets down begin, which reads it at once.
// Limits   as gate_up.cu. Not more than two blocks fit an SM, on purpose: a dependent launch packs
//          blocks where the kernel before ends first. 80 registers (kRoomForDown), so that a block
//          of down fits beside one of these and has its weights when the hidden rows are there.
// Cost     see bench/gpu_kernels and docs/decisions/0011 and 0017.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/expert_sizes.cuh"
#include "backend/cuda/experts_row.h"
#include "backend/cuda/hidden.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/rank.h"
#include "backend/cuda/stage_row.h"
#include "backend/cuda/stripe_dispatch.h"
#include "backend/cuda/weight_ring.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kStages = 2;
constexpr int kMinShared = 78 * 1024;  // keeps a third block off an SM of 228 KB

// Whether 80 registers suffice: of Q2_K and Q5_1 some would be spilled.
template <Type type>
constexpr bool kRoomForDown = !(type == Type::q2_k || type == Type::q5_1);

// Scores of a row's experts in shared memory, and what is made of them.
struct Scored {
  alignas(16) uint32_t keys[kMostRanked];
  float scores[kMostRanked];
  float best[kMaxUsed];  // by rank
};

// The group of an expert, for down.
__device__ __forceinline__ void write_group(const GateUpSizes& a, int which, int expert,
                                            const uint8_t* address) {
  const Ranking& r = a.p.ranking;
  ExpertGroup& group = a.p.list.groups[which];
  group.gate = address;
  group.up = address ? address + r.up_at : nullptr;
  group.down = address ? address + r.down_at : nullptr;
  group.n_pairs = 1;
  group.row[0] = 0, group.slot[0] = static_cast<int16_t>(which);
  if (which == 0) *a.p.list.n_groups = a.p.shape.n_used;
  r.experts[which] = expert;
}

// By one warp.
__device__ __forceinline__ void write_weights(const GateUpSizes& a, const Scored& scored,
                                              int lane) {
  const Ranking& r = a.p.ranking;
  const int n = a.p.shape.n_used;
  const float weight = expert_weights({r.score, r.renormalize, n, r.n_experts},
                                      {lane < n ? scored.best[lane] : 0.0f}, scored.scores)
                           .value;
  if (lane < n) r.weights[lane] = weight;
}

template <Type type, bool ranks>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(kRoomForDown<type> ? 3 : 2))
    gate_up_row_kernel(const __grid_constant__ GateUpSizes a) {
  constexpr int kSlot = slot_bytes(kUnitChunks * Stripe<type>::chunk_bytes(8));
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ Scored scored;
  __shared__ const uint8_t* chosen[2];  // gate, up
  __shared__ int chosen_slot;
  __shared__ float dots[2 * 32];  // gate, up
  __shared__ uint64_t barriers[kWarps * kStages];
  const int warp = warp_index(), lane = lane_index();
  const int per_expert = max(a.p.shape.d_ff, a.p.shape.shared_d_ff) / 32;
  const int which = static_cast<int>(blockIdx.x) / per_expert;
  const int block = static_cast<int>(blockIdx.x) - which * per_expert;
  const bool writes_list = ranks && which == a.p.shape.n_used;  // and computes nothing
  uint8_t* const row = shared + kWarps * kStages * kSlot;
  WeightRing ring(shared + warp * kStages * kSlot, kSlot, barriers + warp * kStages, kStages);
  const Ranking& r = a.p.ranking;
  const uint8_t* address = nullptr;  // of the expert it ranks: cold memory, so before the wait
  const int expert = Ranks::expert(warp, lane);
  if (ranks && expert < r.n_experts) address = r.table[expert];
  wait_for_previous_kernel();
  if (!writes_list) let_next_kernel_begin();

  if constexpr (ranks) {
    const int own = static_cast<int>(threadIdx.x);
    const float score = own < r.n_experts ? __ldcg(r.scores + own) : 0.0f;
    const Ranks all({score}, r.n_experts, scored.keys, warp);
    if (own < kMostRanked) scored.scores[own] = score;
    if (!writes_list) copy_row(a.p.a, a.shape.n_chunks, row, warp, kWarps);
    __syncthreads();
    const int rank = all.rank().value;
    if (rank == which && own % 2 == 0) {
      chosen[0] = address, chosen[1] = address ? address + r.up_at : nullptr, chosen_slot = which;
    }
    if (writes_list) {
      if (rank < which && own % 2 == 0) {
        write_group(a, rank, expert, address);
        scored.best[rank] = all.score(lane);
        __threadfence();
      }
      __syncthreads();
      let_next_kernel_begin();
      if (warp == 0) write_weights(a, scored, lane);
      return;
    }
  } else {
    copy_row(a.p.a, a.shape.n_chunks, row, warp, kWarps);
    if (threadIdx.x == 0) {
      const ExpertGroup* const group = a.p.list.groups + which;
      const auto read = [](const uint8_t* const* p) {
        return reinterpret_cast<const uint8_t*>(
            __ldcg(reinterpret_cast<const unsigned long long*>(p)));
      };
      chosen[0] = read(&group->gate), chosen[1] = read(&group->up);
      chosen_slot = __ldcg(group->slot);
    }
  }
  __syncthreads();
  const bool is_shared = a.p.shape.shared_d_ff > 0 && which == a.p.shape.n_used;
  if (chosen[0] == nullptr || 32 * block >= (is_shared ? a.p.shape.shared_d_ff : a.p.shape.d_ff)) {
    return;
  }
  const uint8_t* const stripe = chosen[warp / 4] + (4 * block + warp % 4) * a.stripe_bytes;
  const int n_units = a.shape.n_units();
  const auto unit_at = [&](int u) {
    return Unit{stripe + chunk_offset<type>(kUnitChunks * u), kUnitChunks * u,
                min(kUnitChunks, a.shape.n_chunks - kUnitChunks * u)};
  };
  const auto request = [&](int u) {
    const Unit unit = unit_at(u);
    ring.request(unit.data, unit_bytes<type>(a.shape, unit.first, unit.n));
  };
#pragma unroll 1
  for (int u = 0; u < min(kStages, n_units); ++u) request(u);

  PerLane<float> acc = {};
#pragma unroll 1
  for (int u = 0; u < n_units; ++u) {
    Unit unit = unit_at(u);
    unit.data = ring.wait(unit.data);
    UnitWeights weights;
    PerLane<float> sums;
    dot_unit<type, StagedLoad, 0>(unit, a.shape, weights, staged_row(row, a.shape.n_chunks, 0),
                                  sums);
    add_in_order(sums, unit.n, acc);
    __syncwarp();
    if (u + kStages < n_units) request(u + kStages);
  }
  if (lane % 4 == 0) dots[8 * warp + lane / 4] = acc.value;
  __syncthreads();
  if (warp == 0) write_hidden(a.p.h, chosen_slot, block, dots);
}

template <Type type>
void run(const GateUp& p, const Launch& how) {
  const GateUpSizes args = gate_up_sizes<type>(p);
  constexpr int kSlot = slot_bytes(kUnitChunks * Stripe<type>::chunk_bytes(8));
  const int needed = kWarps * kStages * kSlot + staged_row_bytes(args.shape.n_chunks);
  CHECK(needed <= how.shared_bytes);
  const auto bytes = static_cast<size_t>(std::max(needed, std::min(kMinShared, how.shared_bytes)));
  // A block for each 32 hidden values of each expert, and one to write the list.
  const int n_blocks = std::max(p.shape.d_ff, p.shape.shared_d_ff) / 32 * most_groups(p.shape, 1);
  const dim3 grid(static_cast<unsigned>(n_blocks + (p.ranking.scores ? 1 : 0)));
  if (p.ranking.scores) {
    launch(gate_up_row_kernel<type, true>, grid, kThreads, bytes, how, args);
  } else {
    launch(gate_up_row_kernel<type, false>, grid, kThreads, bytes, how, args);
  }
}

}  // namespace

void gate_up_row(const GateUp& p, const Launch& how) {
  CHECK(p.n_rows == 1);
  CHECK(!p.ranking.scores || (p.ranking.n_experts <= kMostRanked && p.shape.shared_d_ff == 0));
  CHECK(!p.ranking.scores || (p.list.groups && p.list.n_groups));
  with_stripe_type(p.shape.gate_up_type, [&]<Type type>() { run<type>(p, how); });
}

}  // namespace sluice::backend::cuda
