// Small kernels between the large ones: see step_rows.h.
//
// Mapping  a block for each row (embed), or one block in all.
// Limits   1 to 16 rows, n_used <= 16 (the launchers check).
// Cost     a launch each, 2 to 3 us: they belong into their neighbours, once those take what they
// do.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lanes.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/step_rows.h"
#include "backend/cuda/warp.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = 256;
static_assert(kMaxRows * kMaxUsed <= kThreads, "a thread for each slot");

__global__ void __launch_bounds__(kThreads)
    wanted_rows_kernel(const __grid_constant__ WantedRows p) {
  let_next_kernel_begin();
  wait_for_previous_kernel();
  for (int i = static_cast<int>(threadIdx.x); i < p.n; i += kThreads) {
    p.out[i] = p.first + i < __ldcg(p.n_wanted) ? __ldcg(p.rows + p.first + i) : 0;
  }
}

__global__ void __launch_bounds__(kThreads)
    force_experts_kernel(const __grid_constant__ ForceExperts p) {
  let_next_kernel_begin();
  wait_for_previous_kernel();
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  const int32_t forced = i < p.n ? __ldcg(p.forced + i) : -1;
  if (forced >= 0) p.experts[i] = forced;
}

// The list's last group: every row has chosen the shared expert.
__device__ __forceinline__ void end_list(const ListExperts& p, int n_routed, int n_rows) {
  *p.list.n_groups = n_routed + (p.shared[0] != nullptr);
  if (p.shared[0] == nullptr) return;
  ExpertGroup& group = p.list.groups[n_routed];
  group.gate = p.shared[0], group.up = p.shared[1], group.down = p.shared[2];
  group.n_pairs = n_rows;
  for (int r = 0; r < n_rows; ++r) {
    group.row[r] = static_cast<int16_t>(r);
    group.slot[r] = static_cast<int16_t>(p.n_rows * p.n_used + r);
  }
}

// Groups in order of the first slot that chose their expert, a thread for each slot. A group has a
// slot for each row at most, as much as the kernels behind have room for; where a row has an expert
// twice, what is beyond begins another one. The kernels of a single row take a group for each slot.
__global__ void __launch_bounds__(kThreads)
    list_experts_kernel(const __grid_constant__ ListExperts p) {
  __shared__ int32_t ids[kThreads];
  __shared__ bool begins[kThreads];
  let_next_kernel_begin();
  wait_for_previous_kernel();
  const int n_rows = p.n_live ? min(__ldcg(p.n_live), p.n_rows) : p.n_rows;
  const int slot = static_cast<int>(threadIdx.x), n_slots = n_rows * p.n_used;
  const int32_t id = slot < n_slots ? __ldcg(p.experts + slot) : -1;
  ids[slot] = id;
  __syncthreads();
  const bool merges = p.n_rows > 1;
  int n_before = 0, n_behind = 0;
  for (int s = 0; merges && s < n_slots; ++s) {
    n_before += s < slot && ids[s] == id;
    n_behind += s > slot && ids[s] == id;
  }
  begins[slot] = slot < n_slots && n_before % p.n_rows == 0;
  __syncthreads();
  // Of all groups, and of those that began up to the one that this slot is in.
  int n_groups = 0, own = -1;
  for (int s = 0; s < n_slots; ++s) {
    if (begins[s] && ids[s] == id && s <= slot) own = n_groups;
    n_groups += begins[s];
  }
  if (slot < n_slots) {
    ExpertGroup& group = p.list.groups[own];
    group.row[n_before % p.n_rows] = static_cast<int16_t>(slot / p.n_used);
    group.slot[n_before % p.n_rows] = static_cast<int16_t>(slot);
    if (begins[slot]) {
      const auto* const at = reinterpret_cast<const uint8_t*>(
          __ldcg(reinterpret_cast<const unsigned long long*>(p.table + id)));
      group.gate = at, group.up = at ? at + p.up_at : at, group.down = at ? at + p.down_at : at;
      group.n_pairs = min(n_behind + 1, p.n_rows);
    }
  }
  if (slot == 0) end_list(p, n_groups, n_rows);
}

__device__ __forceinline__ float value_at(const Embed& p, int64_t i) {
  if (p.type == quant::Type::f32) return __ldg(static_cast<const float*>(p.table) + i);
  const uint16_t bits = __ldg(static_cast<const unsigned short*>(p.table) + i);
  return p.type == quant::Type::f16 ? half_bits(bits) : __uint_as_float(uint32_t{bits} << 16);
}

__global__ void __launch_bounds__(kThreads) embed_kernel(const __grid_constant__ Embed p) {
  let_next_kernel_begin();
  wait_for_previous_kernel();
  const int r = static_cast<int>(blockIdx.x);
  if (r >= __ldcg(p.n_live)) return;
  const int64_t from = static_cast<int64_t>(__ldcg(p.tokens + r)) * p.n_cols;
  const int64_t to = static_cast<int64_t>(r) * p.n_cols;
  for (int i = static_cast<int>(threadIdx.x); i < p.n_cols; i += kThreads) {
    p.x[to + i] = value_at(p, from + i);
  }
}

dim3 blocks(int n) { return dim3(static_cast<unsigned>(n)); }

}  // namespace

void wanted_rows(const WantedRows& p, const Launch& how) {
  CHECK(p.n >= 1 && p.first >= 0);
  launch(wanted_rows_kernel, blocks(1), kThreads, 0, how, p);
}

void force_experts(const ForceExperts& p, const Launch& how) {
  CHECK(p.n >= 1);
  launch(force_experts_kernel, blocks((p.n + kThreads - 1) / kThreads), kThreads, 0, how, p);
}

void list_experts(const ListExperts& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_rows <= kMaxRows && p.n_used >= 1 && p.n_used <= kMaxUsed);
  launch(list_experts_kernel, blocks(1), kThreads, 0, how, p);
}

void embed(const Embed& p, const Launch& how) {
  CHECK(quant::is_float(p.type) && p.n_rows >= 1);
  launch(embed_kernel, blocks(p.n_rows), kThreads, 0, how, p);
}

}  // namespace sluice::backend::cuda
