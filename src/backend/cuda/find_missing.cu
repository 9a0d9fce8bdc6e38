// See find_missing.h.
//
// Mapping  one block, a thread for each group and for each slot. Where nothing is missing, it
//          writes the log and nothing else. The request is posted before the log is written: the
//          host's time counts.
// Limits   1 to 16 rows, n_used <= 16 (the launcher checks).
// Cost     docs/decisions/0020.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/ask_host.cuh"
#include "backend/cuda/find_missing.h"
#include "backend/cuda/launch.cuh"
#include "base/check.h"
#include "base/miss_split.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
static_assert(kMaxRows * kMaxUsed <= kThreads, "a thread for each slot");

enum Place { here, staged, link, cpu, kPlaces };

struct Shared {
  int n_pairs[kPlaces];
  int in_warp[kWarps];
  bool is_cpu[kThreads];  // by slot
  bool is_aborted;
};

// How many threads before this one have it, and all of them.
struct Rank {
  int before, all;
};
__device__ __forceinline__ Rank rank_of(bool has, Shared& s) {
  const unsigned lanes = __ballot_sync(kAllLanes, has);
  if (lane_index() == 0) s.in_warp[warp_index()] = __popc(lanes);
  __syncthreads();
  Rank rank{__popc(lanes & ((1u << lane_index()) - 1)), 0};
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp_index()) rank.before += s.in_warp[w];
    rank.all += s.in_warp[w];
  }
  __syncthreads();
  return rank;
}

// As staged_key().
__device__ __forceinline__ uint64_t key_of(const FindMissing& p, int32_t expert) {
  return static_cast<uint64_t>(__ldcg(p.step)) << 32 | (p.number & 0xffff0000u) | (expert & 0xffff);
}

__device__ __forceinline__ const std::byte* staged_at(const FindMissing& p, int32_t expert) {
  const uint64_t key = key_of(p, expert);
#pragma unroll 1
  for (int i = 0; i < p.n_staged; ++i) {
    if (acquired(p.staged[i].ready) == key) return p.staged[i].data;
  }
  return nullptr;
}

__device__ __forceinline__ void set_address(const FindMissing& p, ExpertGroup& group,
                                            const uint8_t* at) {
  group.gate = at, group.up = at + p.up_at, group.down = at + p.down_at;
}

// The copy that the kernels behind leave of the layer's i-th read over the link.
__device__ __forceinline__ void land(const FindMissing& p, ExpertGroup& group, int32_t expert,
                                     int i) {
  const int place = __ldcg(p.landing.n_taken) + i;
  if (place >= p.landing.n_places) return;
  group.landing = place;
  p.landing.landed[place] = key_of(p, expert);
}

// Of a group, by its thread; whether the link takes it all threads decide together.
__device__ __forceinline__ Place find_group(const FindMissing& p, int i, int n_groups, Shared& s) {
  ExpertGroup& group = p.list.groups[i];
  const int32_t expert = i < n_groups ? __ldcg(p.experts + group.slot[0]) : 0;
  Place place = here;
  if (i < n_groups && group.gate == nullptr) {
    const std::byte* const at = staged_at(p, expert);
    place = at ? staged : cpu;
    if (at) set_address(p, group, reinterpret_cast<const uint8_t*>(at));
  }
  const Rank rank = rank_of(place == cpu, s);
  const int n_link = p.host ? link_reads(rank.all, __ldcg(p.link_share)) : 0;
  if (place == cpu && rank.before < n_link) {
    place = link;
    set_address(p, group, p.host + expert * p.stride);
    if (p.lands) land(p, group, expert, rank.before);
  }
  if (i < n_groups) atomicAdd(&s.n_pairs[place], group.n_pairs);
#pragma unroll 1
  for (int k = 0; place == cpu && k < group.n_pairs; ++k) s.is_cpu[group.slot[k]] = true;
  return place;
}

__device__ __forceinline__ void ask_for_pairs(const FindMissing& p, int n_live, Shared& s) {
  const int slot = static_cast<int>(threadIdx.x);
  const Rank rank = rank_of(s.is_cpu[slot], s);
  if (s.is_cpu[slot] && !s.is_aborted) {
    p.mailbox.pairs[rank.before] = {__ldcg(p.experts + slot), slot / p.n_used, slot};
  }
  ask_host(p, n_live, rank.all, !s.is_aborted);
}

__device__ __forceinline__ void write_log(const FindMissing& p, int n_live, int n_link_groups,
                                          const Shared& s) {
  if (p.log.counts == nullptr) return;
  LayerLog& log = *p.log.counts;
  const int first = p.goes_on ? static_cast<volatile LayerLog&>(log).n_rows : 0;
  const int i = static_cast<int>(threadIdx.x);
  if (i < n_live * p.n_used) {
    p.log.routed[first * p.n_used + i] = {ExpertId(__ldcg(p.experts + i)), __ldcg(p.weights + i)};
  }
  __syncthreads();
  if (i != 0) return;
  if (!p.goes_on) log = {};
  log.n_rows = first + n_live;
  log.n_hits += s.n_pairs[here], log.n_staged += s.n_pairs[staged];
  log.n_link += s.n_pairs[link], log.n_cpu += s.n_pairs[cpu];
  log.link_bytes += static_cast<uint64_t>(n_link_groups) * p.expert_bytes;
}

__global__ void __launch_bounds__(kThreads)
    find_missing_kernel(const __grid_constant__ FindMissing p) {
  __shared__ Shared s;
  let_next_kernel_begin();
  const int i = static_cast<int>(threadIdx.x);
  if (i < kPlaces) s.n_pairs[i] = 0;
  s.is_cpu[i] = false;
  wait_for_previous_kernel();
  const int n_live = min(__ldcg(p.n_live), p.n_rows);
  const int n_groups = __ldcg(p.list.n_groups) - (p.has_shared ? 1 : 0);
  if (i == 0) *p.began = card_time();
  if (p.lands && i < n_groups + p.has_shared) p.list.groups[i].landing = -1;
  const bool is_missing = i < n_groups && p.list.groups[i].gate == nullptr;
  int n_link_groups = 0;
  if (__syncthreads_or(is_missing)) {
    if (i == 0) s.is_aborted = is_aborted(p);
    const Place place = find_group(p, i, n_groups, s);
    n_link_groups = __syncthreads_count(place == link);
    if (s.n_pairs[cpu] > 0) ask_for_pairs(p, n_live, s);
  } else if (i == 0) {
    s.n_pairs[here] = n_live * p.n_used;
  }
  if (i == 0 && p.landing.data) {
    const int n_taken = __ldcg(p.landing.n_taken) + (p.lands ? n_link_groups : 0);
    p.landing.n_taken[1] = min(n_taken, p.landing.n_places);
  }
  write_log(p, n_live, n_link_groups, s);
}

__global__ void tell_routed_kernel(const __grid_constant__ TellRouted p) {
  let_next_kernel_begin();
  wait_for_previous_kernel();
  p.news->is_asked = p.has_prediction && *static_cast<const volatile uint32_t*>(p.wanted) != 0;
  __threadfence_system();
  release(&p.news->told, request_of(p.step, p.number));
}

__global__ void __launch_bounds__(kThreads)
    take_answers_kernel(const __grid_constant__ TakeAnswers p) {
  let_next_kernel_begin();
  wait_for_previous_kernel();
  if (static_cast<int>(blockIdx.x) >= *p.list.n_groups) return;
  const ExpertGroup& group = p.list.groups[blockIdx.x];
  if (group.gate != nullptr) return;
  __shared__ HostTimes times;
  await_answer(p.host, times);  // by every warp
  for (int k = 0; k < group.n_pairs; ++k) {
    const int64_t at = static_cast<int64_t>(group.slot[k]) * p.n_cols;
    for (int c = static_cast<int>(threadIdx.x); c < p.n_cols; c += kThreads) {
      p.out[at + c] = __ldcv(p.host.rows + at + c);
    }
  }
}

}  // namespace

void find_missing(const FindMissing& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_rows <= kMaxRows && p.n_used >= 1 && p.n_used <= kMaxUsed);
  CHECK(p.n_staged <= kMostStaged && p.n_live && p.step && p.began);
  CHECK(p.n_rows <= p.mailbox.shape.max_rows && p.a.n_cols == p.mailbox.shape.n_cols);
  launch(find_missing_kernel, dim3(1), kThreads, 0, how, p);
}

void tell_routed(const TellRouted& p, const Launch& how) {
  launch(tell_routed_kernel, dim3(1), 1, 0, how, p);
}

void take_answers(const TakeAnswers& p, const Launch& how) {
  CHECK(p.host.step && p.out);
  const dim3 grid(static_cast<unsigned>(kMaxRows * kMaxUsed));
  launch(take_answers_kernel, grid, kThreads, 0, how, p);
}

}  // namespace sluice::backend::cuda
