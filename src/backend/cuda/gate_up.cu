// Gate, up, SwiGLU and the quantisation of the hidden row, for all experts of a step.
//
// Layout   weights: stripes, by the addresses in the list; a and h: int8 rows (int8_rows.h).
// Mapping  a block makes 32 hidden values (a block of h) of one group: four stripes of gate and
//          four of up, one to a warp, unit by unit. Then a warp for each pair: SwiGLU and part A of
//          the contract, a lane to a value. The weights of an expert are read once for all rows.
// Limits   d_ff % 32 == 0, d_model % 32 (super-blocks: 256), 1 to 16 rows (the launcher checks).
//          Not more than two blocks fit an SM, on purpose: a dependent launch packs blocks where
//          the kernel before ends first, and four on one SM cost 1 us (spike of these kernels).
// Cost     see bench/gpu_kernels and docs/decisions/0011.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/expert_sizes.cuh"
#include "backend/cuda/experts_row.h"
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
constexpr int kMinShared = 78 * 1024;  // keeps a third block off an SM of 228 KB

struct GateUpArgs : GateUpSizes {
  RingSize ring;
};

struct SharedPlan {
  int rows_at, dots_at, group_at, barriers_at, n_bytes;
};
__host__ __device__ inline SharedPlan shared_plan(const GateUpArgs& a) {
  SharedPlan s;
  s.rows_at = a.ring.slots_bytes(kWarps);
  s.dots_at = s.rows_at + a.p.n_rows * staged_row_bytes(a.shape.n_chunks);
  s.group_at = s.dots_at + a.p.n_rows * 2 * 32 * 4;
  s.barriers_at = s.group_at + static_cast<int>(sizeof(ExpertGroup));
  s.n_bytes = s.barriers_at + a.ring.barriers_bytes(kWarps);
  return s;
}

// The group's description, by the first warp, into shared memory.
__device__ __forceinline__ void load_group(const ExpertGroup* group, ExpertGroup* out) {
  constexpr int kWords = sizeof(ExpertGroup) / 4;
  for (int i = threadIdx.x; i < kWords; i += kWarp) {
    reinterpret_cast<uint32_t*>(out)[i] = __ldcg(reinterpret_cast<const uint32_t*>(group) + i);
  }
}

template <Type type>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(type == Type::q2_k ? 1 : 2))
    gate_up_kernel(const __grid_constant__ GateUpArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  const SharedPlan plan = shared_plan(a);
  const int warp = warp_index(), lane = lane_index();
  const int block = static_cast<int>(blockIdx.x);
  auto& group = *reinterpret_cast<ExpertGroup*>(shared + plan.group_at);
  uint8_t* const rows = shared + plan.rows_at;
  auto* const dots = reinterpret_cast<float*>(shared + plan.dots_at);
  WeightRing ring(shared, shared + plan.barriers_at, a.ring, warp);

  wait_for_previous_kernel();
  let_next_kernel_begin();
  const int n_groups = __ldcg(a.p.list.n_groups);
  const int which = static_cast<int>(blockIdx.y);
  if (which >= n_groups) return;
  if (warp == 0) load_group(a.p.list.groups + which, &group);
  __syncthreads();
  const bool is_shared = a.p.shape.shared_d_ff > 0 && which == n_groups - 1;
  const int d_ff = is_shared ? a.p.shape.shared_d_ff : a.p.shape.d_ff;
  if (group.gate == nullptr || 32 * block >= d_ff) return;

  const uint8_t* const stripe =
      (warp < 4 ? group.gate : group.up) + (4 * block + warp % 4) * a.stripe_bytes;
  const int n_units = a.shape.n_units();
  const auto chunks_of = [&](int u) {
    return min(kUnitChunks, a.shape.n_chunks - kUnitChunks * u);
  };
  const auto source_of = [&](int u) { return stripe + chunk_offset<type>(kUnitChunks * u); };
  const auto request = [&](int u) {
    ring.request(source_of(u), unit_bytes<type>(a.shape, kUnitChunks * u, chunks_of(u)));
  };
  for (int u = 0; u < min(a.ring.n_slots, n_units); ++u) request(u);

  RowSource source;
  source.int8 = a.p.a;
  source.n_cols = a.p.shape.d_model;
  source.n_rows = 1;
  for (int k = 0; k < group.n_pairs; ++k) {  // a row at a time: they are not neighbours
    RowSource one = source;
    one.int8.q += static_cast<int64_t>(group.row[k]) * kChunk * a.shape.n_chunks;
    one.int8.d += static_cast<int64_t>(group.row[k]) * 8 * a.shape.n_chunks;
    one.int8.y += static_cast<int64_t>(group.row[k]) * 8 * a.shape.n_chunks;
    RowStager(one, rows + k * staged_row_bytes(a.shape.n_chunks), nullptr, warp, kWarps).copy();
  }
  __syncthreads();

  constexpr int kGroups = kMaxRows / kInputsAtOnce;
  PerLane<float> acc[kGroups] = {};
  for (int u = 0; u < n_units; ++u) {
    const Unit unit{ring.wait(source_of(u)), kUnitChunks * u, chunks_of(u)};
    if (group.n_pairs > 1) {
      dot_unit_4<type, StagedLoad>(
          unit, a.shape, group.n_pairs,
          [&](int r) { return staged_row(rows, a.shape.n_chunks, r); },
          [&](int, int at, const PerLane<float>& sums) {
#pragma unroll
            for (int k = 0; k < kGroups; ++k) {
              if (k == at) acc[k].value = add_rn(acc[k].value, sums.value);
            }
          });
    } else {
      UnitWeights weights;
      PerLane<float> sums;
      unpack_unit<type>(unit, a.shape, weights);
      dot_unit<type, StagedLoad>(unit, a.shape, weights, staged_row(rows, a.shape.n_chunks, 0),
                                 sums);
      add_in_order(sums, unit.n, acc[0]);
    }
    __syncwarp();
    if (u + a.ring.n_slots < n_units) request(u + a.ring.n_slots);
  }
  // dots[pair][gate or up][32]
  float* const mine = dots + warp / 4 * 32 + warp % 4 * 8 + lane / 4;
#pragma unroll
  for (int k = 0; k < kGroups; ++k) {
    // A single pair's sum is the same in the four lanes of a row.
    const int pair = kInputsAtOnce * k + lane % 4;
    if (pair < group.n_pairs) {
      mine[64 * pair] = acc[k].value;
    }
  }
  __syncthreads();
  for (int pair = warp; pair < group.n_pairs; pair += kWarps) {
    write_hidden(a.p.h, group.slot[pair], block, dots + 64 * pair);
  }
}

template <Type type>
void run(const GateUp& p, const Launch& how) {
  GateUpArgs args{gate_up_sizes<type>(p), {}};
  args.ring.slot_size = slot_bytes(static_cast<int>(kUnitChunks * Stripe<type>::chunk_bytes(8)));
  args.ring.n_slots = std::min(args.shape.n_units(), 2);
  if (shared_plan(args).n_bytes > how.shared_bytes) args.ring.n_slots = 1;
  const int n_bytes = std::max(shared_plan(args).n_bytes, std::min(kMinShared, how.shared_bytes));
  CHECK(n_bytes <= how.shared_bytes);
  launch(gate_up_kernel<type>, gate_up_grid(p), kThreads, static_cast<size_t>(n_bytes), how, args);
}

}  // namespace

void gate_up(const GateUp& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_rows <= kMaxRows && p.shape.n_used <= kMaxUsed);
  CHECK(p.shape.d_model % 32 == 0 && p.shape.d_ff % 32 == 0 && p.shape.shared_d_ff % 32 == 0);
  CHECK(p.a.n_chunks == row_shape(p.shape.d_model).n_chunks);
  if (p.n_rows == 1) return gate_up_row(p, how);
  CHECK(p.ranking.scores == nullptr);
  with_stripe_type(p.shape.gate_up_type, [&]<Type type>() { run<type>(p, how); });
}

}  // namespace sluice::backend::cuda
