// Ranks of experts by their scores, and the weights of the best ones: by the last block of the
// router, or by gate_up and down of a single row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/contract.h"
#include "backend/cuda/experts.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

// Order as integers: a total one, so that ranks are a permutation whatever the scores are.
__device__ __forceinline__ unsigned ordered(float score) {
  const unsigned bits = __float_as_uint(score);
  return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}

// The weight of rank `lane`, by one warp; score: that of rank `lane`. scores: of all experts.
__device__ __forceinline__ float expert_weight(RouterScore kind, bool renormalize, float score,
                                               int n_used, int lane, int n_experts,
                                               const float* scores) {
  float weight;
  if (kind == RouterScore::softmax) {
    const float peak = __shfl_sync(kAllLanes, score, 0);
    float sum = 0.0f;
#pragma unroll 1
    for (int e = lane; e < n_experts; e += kWarp) {
      sum = __fadd_rn(sum, contract_exp(__fsub_rn(scores[e], peak)));
    }
    weight = __fdiv_rn(contract_exp(__fsub_rn(score, peak)), warp_sum(sum));
  } else {
    weight = __fdiv_rn(1.0f, __fadd_rn(1.0f, contract_exp(-score)));
  }
  if (renormalize) {
    float total = 0.0f;
#pragma unroll 1
    for (int k = 0; k < n_used; ++k) {
      total = __fadd_rn(total, __shfl_sync(kAllLanes, weight, k));
    }
    weight = __fdiv_rn(weight, fmaxf(total, 0x1p-14f));
  }
  return weight;
}

// Ranks of up to 128 experts of a row, ties to the lower one, by 256 threads: two to an expert, who
// count the better ones. (Taking the best eight times, by one warp, cost 0.1 us for each.)
class Ranks {
 public:
  // All threads; `keys` in shared memory, 16-aligned. A barrier is to follow.
  __device__ __forceinline__ Ranks(float score, int n_experts, unsigned* keys)
      : keys_(reinterpret_cast<const uint4*>(keys)) {
    const int i = static_cast<int>(threadIdx.x);
    // Ordered scores are 1 at least, so that one less is lower.
    if (i < kMostRanked) keys[i] = i < n_experts ? max(ordered(score), 1u) : 0u;
  }

  static __device__ __forceinline__ int expert() { return static_cast<int>(threadIdx.x) / 2; }

  // The rank of expert(), in both of its threads.
  __device__ __forceinline__ int rank() const {
    constexpr int kWords = kMostRanked / 4;
    const int e = expert(), half = static_cast<int>(threadIdx.x) % 2;
    const unsigned own = reinterpret_cast<const unsigned*>(keys_)[e];
    int n = 0;
#pragma unroll 4
    for (int w = half; w < kWords; w += 2) {
      const uint4 other = keys_[w];
      // A lower expert is better if its key is not less; the expert's own four: see below.
      const unsigned bound = 4 * w + 3 < e ? own - 1 : own;
      n += (other.x > bound) + (other.y > bound) + (other.z > bound) + (other.w > bound);
    }
    n += __shfl_xor_sync(kAllLanes, n, 1);
    const uint4 near = keys_[e / 4];
    n += (near.x == own && e % 4 > 0) + (near.y == own && e % 4 > 1) + (near.z == own && e % 4 > 2);
    return own == 0 ? kMostRanked : n;  // no expert
  }
  __device__ __forceinline__ float score() const {
    const unsigned key = reinterpret_cast<const unsigned*>(keys_)[expert()];
    return __uint_as_float(key ^ (key >> 31 ? 0x80000000u : 0xffffffffu));
  }

 private:
  const uint4* keys_;
};

}  // namespace sluice::backend::cuda
