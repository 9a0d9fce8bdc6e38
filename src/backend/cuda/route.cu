// norm, router, softmax or sigmoid, the best k, their weights and addresses, and the experts' int8
// input, in one kernel.
//
// Layout   x: [n_rows, d_model] f32; weight: [n_experts, d_model] rows; the rest as in route.h.
// Mapping  a block computes the scores of one expert for all rows: score = (sum w g x) / rms(x), so
//          that squares and products are added in one pass. The blocks share the quantisation of
//          norm(x). The block that ends last ranks the experts of each row (an expert's rank is
//          the number of better ones), and groups the pairs by expert.
// Limits   1 to 16 rows, n_experts <= 1024, n_used <= 16, d_model % 32 == 0 (the launcher checks).
// Cost     see bench/gpu_kernels and docs/decisions/0011.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/launch.cuh"
#include "backend/cuda/rank.h"
#include "backend/cuda/route.h"
#include "backend/cuda/router_weights.cuh"
#include "backend/cuda/score_row.h"
#include "backend/cuda/stage_rows.h"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kTableAhead = kThreads;  // entries of the table that every block reads ahead
constexpr int kKept = 2;               // segments of a warp whose weights are read before the wait

struct Choice {  // in shared memory, of the block that ends last
  int32_t ids[kMaxRows * kMaxUsed];
  float scores[kMaxRows * kMaxUsed];
  bool starts[kMaxRows * kMaxUsed];  // a group: no earlier slot has the same expert
  const uint8_t* table[kTableAhead];
};

// ids and scores of the n_used best of each row; two threads count for an expert.
__device__ __forceinline__ void rank_experts(const Route& p, const float* scores, Choice& out) {
  const int n = p.n_experts, half = threadIdx.x % 2;
  const int n_rounds = (2 * p.n_rows * n + kThreads - 1) / kThreads;
  for (int round = 0; round < n_rounds; ++round) {
    const int i = (round * kThreads + static_cast<int>(threadIdx.x)) / 2;
    const bool is_one = i < p.n_rows * n;
    const int r = is_one ? i / n : 0, e = i - r * n;
    const float* const row = scores + r * n;
    const float own_score = is_one ? row[e] : 0.0f;
    const unsigned own = ordered(own_score);
    int rank = 0;
#pragma unroll 16
    for (int k = half; k < n; k += 2) {
      const unsigned other = ordered(row[k]);
      rank += other > own || (other == own && k < e);
    }
    rank += __shfl_xor_sync(kAllLanes, rank, 1);
    if (is_one && half == 0 && rank < p.n_used) {
      out.ids[r * p.n_used + rank] = e;
      out.scores[r * p.n_used + rank] = own_score;
    }
  }
}

// The weights of row r, by one warp; lane k has rank k's.
__device__ __forceinline__ void weigh(const Route& p, const float* row, const Choice& choice, int r,
                                      int lane) {
  const float score = lane < p.n_used ? choice.scores[r * p.n_used + lane] : 0.0f;
  const float weight =
      expert_weights({p.score, p.renormalize, p.n_used, p.n_experts}, {score}, row).value;
  if (lane < p.n_used) {
    p.experts[r * p.n_used + lane] = choice.ids[r * p.n_used + lane];
    p.weights[r * p.n_used + lane] = weight;
  }
}

__device__ __forceinline__ const uint8_t* address_of(const Route& p, int expert) {
  return reinterpret_cast<const uint8_t*>(
      __ldcg(reinterpret_cast<const unsigned long long*>(p.table + expert)));
}

// The expert of a slot, and all slots that chose it.
__device__ __forceinline__ void write_group(const Route& p, const Choice& choice, int slot,
                                            ExpertGroup& group) {
  const int id = choice.ids[slot];
  const uint8_t* const at = id < kTableAhead ? choice.table[id] : address_of(p, id);
  group.gate = at;
  group.up = at ? at + p.up_at : nullptr;
  group.down = at ? at + p.down_at : nullptr;
  int n = 0;
  const int end = p.n_rows == 1 ? slot + 1 : p.n_rows * p.n_used;
  for (int s = slot; s < end; ++s) {
    if (choice.ids[s] != id) continue;
    group.row[n] = static_cast<int16_t>(s / p.n_used);
    group.slot[n++] = static_cast<int16_t>(s);
  }
  group.n_pairs = n;
}

// The shared expert, which every row has chosen, and the number of groups.
__device__ __forceinline__ void end_list(const Route& p, int n_routed) {
  *p.list.n_groups = n_routed + (p.shared[0] != nullptr);
  if (p.shared[0] == nullptr) return;
  ExpertGroup& group = p.list.groups[n_routed];
  group.gate = p.shared[0], group.up = p.shared[1], group.down = p.shared[2];
  group.n_pairs = p.n_rows;
  for (int r = 0; r < p.n_rows; ++r) {
    group.row[r] = static_cast<int16_t>(r);
    group.slot[r] = static_cast<int16_t>(p.n_rows * p.n_used + r);
  }
}

// One group for each expert that a row chose, in order of the first slot that did.
__device__ __forceinline__ void group_pairs(const Route& p, Choice& choice) {
  const int n_slots = p.n_rows * p.n_used;
  if (p.n_rows == 1) {  // all different
    const int slot = static_cast<int>(threadIdx.x);
    if (slot < n_slots) write_group(p, choice, slot, p.list.groups[slot]);
    if (slot == n_slots) end_list(p, n_slots);
    return;
  }
  for (int slot = threadIdx.x; slot < n_slots; slot += kThreads) {
    bool starts = true;
    for (int s = 0; s < slot; ++s) starts = starts && choice.ids[s] != choice.ids[slot];
    choice.starts[slot] = starts;
  }
  __syncthreads();
  for (int slot = threadIdx.x; slot < n_slots; slot += kThreads) {
    int n_before = 0;
    for (int s = 0; s < slot; ++s) n_before += choice.starts[s];
    if (choice.starts[slot]) write_group(p, choice, slot, p.list.groups[n_before]);
    if (slot == n_slots - 1) end_list(p, n_before + choice.starts[slot]);
  }
}

// What the last block does: all scores are written. staged: [n_rows, n_experts] floats.
__device__ __forceinline__ void choose(const Route& p, float* staged, Choice& choice) {
  const int n_scores = p.n_experts + 1;
  for (int i = threadIdx.x; i < p.n_rows * p.n_experts; i += kThreads) {
    staged[i] = __ldcg(p.scores + i / p.n_experts * n_scores + i % p.n_experts);
  }
  __syncthreads();
  rank_experts(p, staged, choice);
  __syncthreads();
  const int lane = lane_index();
  for (int r = warp_index(); r < p.n_rows; r += kWarps) {
    weigh(p, staged + r * p.n_experts, choice, r, lane);
    if (lane == 0 && p.shared_weights) {
      const float gate = p.shared_gate ? __ldcg(p.scores + r * n_scores + p.n_experts) : 0.0f;
      p.shared_weights[r] = p.shared_gate ? sigmoid(gate) : 1.0f;
    }
  }
  group_pairs(p, choice);
}

// What a block computes before anybody chooses.
class Scorer {
 public:
  // dots: [n_rows, kWarps]; squares: [n_rows, n_segments]; in shared memory.
  __device__ __forceinline__ Scorer(const Route& p, float* dots, float* squares)
      : p_(p),
        dots_(dots),
        squares_(squares),
        warp_(warp_index()),
        lane_(lane_index()),
        expert_(static_cast<int>(blockIdx.x)),
        n_segments_((p.d_model + kSegment - 1) / kSegment) {
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      w_[k] = router_weights(p_, expert_, column(k));
      g_[k] = norm_at(column(k));
    }
  }

  // Products and squares of all rows, some rows at a time; ends with a barrier.
  __device__ __forceinline__ void add_rows() {
    constexpr int kAtOnce = 4;
    for (int first = 0; first < p_.n_rows; first += kAtOnce) {
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
#pragma unroll
        for (int k = 0; k < kKept; ++k) x_[j][k] = values(min(first + j, p_.n_rows - 1), k);
        if (p_.n_rows == 1) break;
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (first + j < p_.n_rows) add_row(first + j, x_[j]);
      }
    }
    __syncthreads();
  }

  // The expert's scores.
  __device__ __forceinline__ void write_scores() const {
    for (int r = warp_; r < p_.n_rows; r += kWarps) {
      const float scale = row_scale(squares_ + r * n_segments_, p_.d_model, p_.eps).value;
      float dot = 0.0f;
#pragma unroll
      for (int k = 0; k < kWarps; ++k) dot = __fadd_rn(dot, dots_[r * kWarps + k]);
      if (lane_ == 0) p_.scores[r * (p_.n_experts + 1) + expert_] = __fmul_rn(dot, scale);
    }
  }

  // The block's share of a = int8(norm(x)): segment blockIdx of a single row by the warp that has
  // it in its registers; of several rows every gridDim-th.
  __device__ __forceinline__ void write_input() const {
    if (p_.n_rows == 1 && n_segments_ <= kKept * kWarps) {
      if (expert_ < n_segments_ && expert_ % kWarps == warp_) {
        write_segment(0, expert_, expert_ < kWarps ? x_[0][0] : x_[0][1]);
      }
      if (static_cast<int>(gridDim.x) >= n_segments_) return;
    }
    const int step = static_cast<int>(gridDim.x) * kWarps;
    for (int i = expert_ + static_cast<int>(gridDim.x) * warp_; i < p_.n_rows * n_segments_;
         i += step) {
      const int r = i / n_segments_, segment = i % n_segments_;
      write_segment(
          r, segment,
          segment_values(p_.x + static_cast<int64_t>(r) * p_.d_model, segment, p_.d_model, lane_));
    }
  }

 private:
  __device__ __forceinline__ int column(int k) const {
    return kSegment * (warp_ + kWarps * k) + 4 * lane_;
  }
  __device__ __forceinline__ float4 norm_at(int at) const {
    return at < p_.d_model ? __ldg(reinterpret_cast<const float4*>(p_.norm + at))
                           : float4{0, 0, 0, 0};
  }
  __device__ __forceinline__ float4 values(int r, int k) const {
    return segment_values(p_.x + static_cast<int64_t>(r) * p_.d_model, warp_ + kWarps * k,
                          p_.d_model, lane_);
  }
  __device__ __forceinline__ void add_row(int r, const float4 (&kept)[kKept]) {
    float dot = 0.0f;
    const auto add = [&](int k, float4 weights, float4 norm, float4 x) {
      const int segment = warp_ + kWarps * k;
      const float sum = segment_squares({x}).value;
      if (lane_ == 0 && segment < n_segments_) squares_[r * n_segments_ + segment] = sum;
      dot = multiply_add(weights, norm, x, dot);
    };
#pragma unroll
    for (int k = 0; k < kKept; ++k) add(k, w_[k], g_[k], kept[k]);
    for (int k = kKept; warp_ + kWarps * k < n_segments_; ++k) {
      add(k, router_weights(p_, expert_, column(k)), norm_at(column(k)), values(r, k));
    }
    dot = warp_sum(dot);
    if (lane_ == 0) dots_[r * kWarps + warp_] = dot;
  }
  __device__ __forceinline__ void write_segment(int r, int segment, float4 x) const {
    const int at = kSegment * segment + 4 * lane_;
    const float scale = row_scale(squares_ + r * n_segments_, p_.d_model, p_.eps).value;
    const int64_t block = static_cast<int64_t>(r) * p_.a.n_chunks * 8 + 4 * segment + lane_ / 8;
    quantize_segment(
        {normalized(x, scale, norm_at(at))},
        {{p_.a.q + 32 * block + 4 * (lane_ % 8), p_.a.d + block, p_.a.y + block, at < p_.d_model}});
  }

  const Route& p_;
  float* dots_;
  float* squares_;
  int warp_, lane_, expert_, n_segments_;
  float4 w_[kKept], g_[kKept], x_[4][kKept];
};

__global__ void __launch_bounds__(kThreads) route_kernel(const __grid_constant__ Route p) {
  extern __shared__ __align__(16) float shared[];
  __shared__ Choice choice;
  __shared__ bool is_last;
  let_next_kernel_begin();
  Scorer scorer(p, shared, shared + p.n_rows * kWarps);
  const int own = static_cast<int>(threadIdx.x);
  const uint8_t* const address = own < p.n_experts ? address_of(p, own) : nullptr;
  wait_for_previous_kernel();
  scorer.add_rows();
  scorer.write_scores();
  scorer.write_input();
  choice.table[own] = address;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(p.n_done, 1u) == gridDim.x - 1;
    if (is_last) *p.n_done = 0;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  choose(p, shared, choice);
}

}  // namespace

void route(const Route& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_rows <= kMaxRows && p.n_used >= 1 && p.n_used <= kMaxUsed);
  CHECK(p.n_experts >= p.n_used && p.n_experts <= 1024 && p.d_model % 32 == 0);
  CHECK(p.type == quant::Type::f32 || p.type == quant::Type::f16 || p.type == quant::Type::bf16);
  CHECK(p.a.n_chunks == row_shape(p.d_model).n_chunks);
  CHECK(p.ranks || can_rank_later(p));
  const int n_segments = (p.d_model + kSegment - 1) / kSegment;
  const int n_floats = p.n_rows * std::max(kWarps + n_segments, p.n_experts);
  const dim3 grid(static_cast<unsigned>(p.n_experts + (p.shared_gate ? 1 : 0)));
  if (!p.ranks) return score_row(p, how);
  launch(route_kernel, grid, kThreads, 4 * static_cast<size_t>(n_floats), how, p);
}

}  // namespace sluice::backend::cuda
