// The best logits of rows.
//
// Layout   logits: [n_rows, n_cols] f32; picks: PickedRow, mostly in the host's memory.
// Mapping  where one is wanted, 16 blocks have a row, and the last of them joins what they found
// (one
//          block took 24 us for 151,936); else one block has it. A logit and its token are one
//          64-bit key, larger where it is better. Every thread finds its own best; of 1024 threads'
//          the n-th is a bound below which nobody is among the n best of all. What is not below it
//          is gathered and sorted: 300 or so for 256. Where more come than there is room for, the
//          gathered ones are sorted and cut in between, which raises the bound; so any order of
//          logits has its end.
// Limits   n_best <= 256, n_cols < 2^31.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/launch.cuh"
#include "backend/cuda/pick.h"
#include "backend/cuda/rank.h"
#include "backend/cuda/warp.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kRoom = 2048;  // keys: what is kept, and one of each thread
static_assert(kMaxBest + kThreads <= kRoom);

// 0 is no key. Zeros of both signs are equal.
__device__ __forceinline__ uint64_t key_of(float logit, int token) {
  return uint64_t{ordered(__fadd_rn(logit, 0.0f))} << 32 | ~static_cast<uint32_t>(token);
}
__device__ __forceinline__ int token_of(uint64_t key) {
  return static_cast<int>(~static_cast<uint32_t>(key));
}

// The largest first; n is a power of two. Begins and ends with a barrier.
__device__ __forceinline__ void sort_keys(uint64_t* keys, int n) {
  for (int size = 2; size <= n; size *= 2) {
    for (int apart = size / 2; apart > 0; apart /= 2) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < n / 2; i += kThreads) {
        const int low = i / apart * 2 * apart + i % apart, high = low + apart;
        const uint64_t a = keys[low], b = keys[high];
        if ((a < b) == ((low & size) == 0)) keys[low] = b, keys[high] = a;
      }
    }
  }
  __syncthreads();
}

__device__ __forceinline__ uint64_t largest_of_warp(uint64_t key) {
#pragma unroll
  for (int m = kWarp / 2; m > 0; m /= 2) {
    const uint64_t other = __shfl_xor_sync(kAllLanes, key, m);
    key = other > key ? other : key;
  }
  return key;
}

// The largest key of all threads, to keys[0]. Ends with a barrier.
__device__ __forceinline__ void find_largest(uint64_t key, uint64_t* keys) {
  static_assert(kThreads == kWarp * kWarp);
  key = largest_of_warp(key);
  if (lane_index() == 0) keys[warp_index()] = key;
  __syncthreads();
  if (warp_index() == 0) keys[lane_index()] = largest_of_warp(keys[lane_index()]);
  __syncthreads();
}

// Of keys that are each thread's best: all that may be among the n_best of the row, sorted.
__device__ __forceinline__ void gather_best(const Pick& p, const float* logits, int n_best,
                                            uint64_t* keys, int& n_kept) {
  const int own = static_cast<int>(threadIdx.x);
  sort_keys(keys, kThreads);
  uint64_t bound = keys[n_best - 1];
  int n = 0;
  __syncthreads();
  for (int first = 0; first < p.n_cols; first += kThreads) {
    const int i = first + own;
    const uint64_t key = i < p.n_cols ? key_of(__ldcg(logits + i), i) : 0;
    const bool is_kept = key != 0 && key >= bound;
    const int n_more = __syncthreads_count(is_kept);
    if (n_more == 0) continue;
    if (n + n_more > kRoom) {
      for (int k = n + own; k < kRoom; k += kThreads) keys[k] = 0;
      sort_keys(keys, kRoom);
      n = n_best;
      bound = keys[n_best - 1];
    }
    if (own == 0) n_kept = n;
    __syncthreads();
    if (is_kept) keys[atomicAdd(&n_kept, 1)] = key;
    __syncthreads();
    n = n_kept;
  }
  for (int k = n + own; k < kRoom; k += kThreads) keys[k] = 0;
  sort_keys(keys, kRoom);
}

// Not finite: larger than every key.
constexpr uint64_t kNotFinite = ~uint64_t{0};

// The best of columns [first, last), in all threads; or kNotFinite.
__device__ __forceinline__ uint64_t best_of(const float* logits, int first, int last,
                                            uint64_t* keys, uint64_t& own_best) {
  uint64_t best = 0;
  bool is_finite = true;
#pragma unroll 8
  for (int i = first + static_cast<int>(threadIdx.x); i < last; i += kThreads) {
    const float logit = __ldcg(logits + i);
    const uint64_t key = key_of(logit, i);
    is_finite = is_finite && isfinite(logit);
    best = key > best ? key : best;
  }
  own_best = best;
  find_largest(is_finite ? best : kNotFinite, keys);
  return keys[0];
}

__device__ __forceinline__ void write_head(PickedRow& out, bool is_finite, int n_best) {
  out.is_finite = is_finite, out.n_best = is_finite ? n_best : 0;
}

// By the block that comes last: the best of all parts of a row.
__device__ __forceinline__ void join_parts(const Pick& p, int row, PickedRow& out) {
  const int own = static_cast<int>(threadIdx.x);
  if (own >= kWarp) return;
  const uint64_t best =
      largest_of_warp(own < kPickParts ? __ldcg(p.parts + row * kPickParts + own) : 0);
  if (own != 0) return;
  write_head(out, best != kNotFinite, 1);
  const int token = token_of(best);
  if (best != kNotFinite) {
    out.best[0] = {token, __ldcg(p.logits + static_cast<int64_t>(row) * p.n_cols + token)};
  }
}

__global__ void __launch_bounds__(kThreads) pick_kernel(const __grid_constant__ Pick p) {
  __shared__ uint64_t keys[kRoom];
  __shared__ int n_kept;
  __shared__ bool is_last;
  let_next_kernel_begin();
  wait_for_previous_kernel();
  const int own = static_cast<int>(threadIdx.x), row = static_cast<int>(blockIdx.x);
  const int part = static_cast<int>(blockIdx.y);
  const int n_best = min(min(__ldcg(p.n_best), kMaxBest), p.n_cols);
  if (n_best <= 0 || p.first + row >= __ldcg(p.n_wanted)) return;
  const float* const logits = p.logits + static_cast<int64_t>(row) * p.n_cols;
  PickedRow& out = p.picks[row];
  uint64_t own_best = 0;
  if (n_best == 1) {  // the common case, by all blocks of the row
    const int n = (p.n_cols + kPickParts - 1) / kPickParts;
    const uint64_t best = best_of(logits, part * n, min((part + 1) * n, p.n_cols), keys, own_best);
    if (own == 0) {
      p.parts[row * kPickParts + part] = best;
      __threadfence();
      is_last = atomicAdd(p.n_done + row, 1u) == kPickParts - 1;
      if (is_last) p.n_done[row] = 0;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    join_parts(p, row, out);
    return;
  }
  if (part != 0) return;
  const bool is_finite = best_of(logits, 0, p.n_cols, keys, own_best) != kNotFinite;
  if (own == 0) write_head(out, is_finite, n_best);
  if (!is_finite) return;
  __syncthreads();
  keys[own] = own_best;
  gather_best(p, logits, n_best, keys, n_kept);
  if (own < n_best) {
    const int token = token_of(keys[own]);
    out.best[own] = {token, __ldcg(logits + token)};
  }
}

}  // namespace

void pick(const Pick& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_cols >= 1 && p.parts && p.n_done);
  launch(pick_kernel, dim3(static_cast<unsigned>(p.n_rows), kPickParts), kThreads, 0, how, p);
}

}  // namespace sluice::backend::cuda
