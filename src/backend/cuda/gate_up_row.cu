// Gate, up, SwiGLU and the quantisation of the hidden row, for the experts of a single row.
//
// Layout   weights: stripes; a and h: int8 rows (int8_rows.h).
// Mapping  a block makes 32 hidden values of one expert: four stripes of gate and four of up, one
//          to a warp, unit by unit. Its expert is that of rank blockIdx.y, which the block finds
//          among the router's scores; or the list names it.
// Limits   as gate_up.cu. Not more than two blocks fit an SM, on purpose: a dependent launch packs
//          blocks where the kernel before ends first. 80 registers (kRoomForDown), so that a block
//          of down fits beside one of these and has its weights when the hidden rows are there.
// Cost     see bench/gpu_kernels and docs/decisions/0011.
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

template <Type type, bool ranks>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(kRoomForDown<type> ? 3 : 2))
    gate_up_row_kernel(const __grid_constant__ GateUpSizes a) {
  constexpr int kSlot = slot_bytes(kUnitChunks * Stripe<type>::chunk_bytes(8));
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ __align__(16) uint32_t keys[kMostRanked];
  __shared__ const uint8_t* chosen[2];  // gate, up
  __shared__ int chosen_slot;
  __shared__ float dots[2 * 32];  // gate, up
  __shared__ uint64_t barriers[kWarps * kStages];
  const int warp = warp_index(), lane = lane_index();
  const int block = static_cast<int>(blockIdx.x), which = static_cast<int>(blockIdx.y);
  uint8_t* const row = shared + kWarps * kStages * kSlot;
  WeightRing ring(shared + warp * kStages * kSlot, kSlot, barriers + warp * kStages, kStages);
  const Ranking& r = a.p.ranking;
  const uint8_t* address = nullptr;  // of the expert it ranks: cold memory, so before the wait
  const int expert = Ranks::expert(warp, lane);
  if (ranks && expert < r.n_experts) address = r.table[expert];
  wait_for_previous_kernel();
  let_next_kernel_begin();

  if constexpr (ranks) {
    const int own = static_cast<int>(threadIdx.x);
    const Ranks all({own < r.n_experts ? __ldcg(r.scores + own) : 0.0f}, r.n_experts, keys, warp);
    copy_row(a.p.a, a.shape.n_chunks, row, warp, kWarps);
    __syncthreads();
    if (all.rank().value == which && threadIdx.x % 2 == 0) {
      chosen[0] = address, chosen[1] = address ? address + r.up_at : nullptr, chosen_slot = which;
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
  const bool is_shared = a.p.shape.shared_d_ff > 0 && which == static_cast<int>(gridDim.y) - 1;
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
  // A block for each 32 hidden values of each expert.
  const dim3 grid(static_cast<unsigned>(std::max(p.shape.d_ff, p.shape.shared_d_ff) / 32),
                  static_cast<unsigned>(most_groups(p.shape, 1)));
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
  with_stripe_type(p.shape.gate_up_type, [&]<Type type>() { run<type>(p, how); });
}

}  // namespace sluice::backend::cuda
