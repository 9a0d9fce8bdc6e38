// The experts' down projections, their weighted sum in order of rank, and the residual.
//
// Layout   weights: stripes, by the addresses in the list; h: int8 rows by slot; x: f32 rows.
// Mapping  one block an SM owns some stripes of outputs, of every expert and all rows: every block
//          has all hidden rows in its shared memory, so they are copied from L2 once an SM. A warp
//          takes every 16th (group, stripe), unit by unit. Outputs of all slots meet in shared
//          memory, and a thread for each (row, output) adds them by rank: no atomics, no second
//          kernel.
//          The list and the weights are read before the wait for gate_up: the router's writes are
//          visible, since gate_up lets this kernel begin only behind its own wait.
// Limits   d_model % 8 == 0, d_ff % 32 (super-blocks: 256), 2 to 16 rows (the launcher checks).
//          Where the hidden rows do not fit into shared memory, some rows at a time.
// Cost     see bench/gpu_kernels and docs/decisions/0015.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/combine.h"
#include "backend/cuda/expert_sizes.cuh"
#include "backend/cuda/experts_row.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/stage_rows.h"
#include "backend/cuda/stripe_dispatch.h"
#include "backend/cuda/weight_ring.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = 16;
constexpr int kThreads = kWarps * kWarp;
constexpr int kMostSlots = 3;

// p: of the rows of this launch, n_rows of them from first_row on; its pointers are theirs.
struct DownArgs : DownSizes {
  int first_row;
  int n_all_rows;
  Int8Rows shared_h;  // of the shared expert
  int n_stripes;      // of all outputs
  int stripes;        // of a block
  int most_groups;

  __host__ __device__ int n_slots() const {
    return p.n_rows * (p.shape.n_used + (p.shape.shared_d_ff > 0 ? 1 : 0));
  }
};

struct SharedPlan {
  int rows_at, groups_at, outs_at, weights_at, barriers_at, n_bytes;
};
__host__ __device__ inline SharedPlan shared_plan(const DownArgs& a) {
  SharedPlan s;
  s.rows_at = a.ring.slots_bytes(kWarps);
  s.groups_at = s.rows_at + a.n_slots() * staged_row_bytes(a.p.h.n_chunks);
  s.outs_at = s.groups_at + a.most_groups * static_cast<int>(sizeof(ExpertGroup));
  s.weights_at = s.outs_at + a.n_slots() * a.stripes * 8 * 4;
  s.barriers_at = (s.weights_at + a.n_slots() * 4 + 7) / 8 * 8;
  s.n_bytes = s.barriers_at + a.ring.barriers_bytes(kWarps);
  return s;
}

// The units of a warp: those of every 16th (group, stripe).
template <Type type>
class UnitWalk {
 public:
  __device__ __forceinline__ UnitWalk(const DownArgs& a, const ExpertGroup* groups, int n_groups)
      : a_(a),
        groups_(groups),
        n_groups_(n_groups),
        group_(warp_index() / a.stripes),
        stripe_(warp_index() % a.stripes),
        group_step_(kWarps / a.stripes),
        stripe_step_(kWarps % a.stripes) {}

  __device__ __forceinline__ bool is_done() const { return group_ >= n_groups_; }
  __device__ __forceinline__ const ExpertGroup& group() const { return groups_[group_]; }
  __device__ __forceinline__ int stripe() const { return stripe_; }
  __device__ __forceinline__ bool has_stripe() const { return global_stripe() < a_.n_stripes; }
  __device__ __forceinline__ RowShape shape() const {
    return is_shared() ? a_.shared_shape : a_.shape;
  }
  // n is 0 where another place computes the expert, and where there is nothing to do.
  __device__ __forceinline__ Unit unit() const {
    const uint8_t* const down = group().down;
    const int first = kUnitChunks * unit_;
    if (down == nullptr || group().n_pairs == 0 || !has_stripe()) return {nullptr, first, 0};
    const int64_t bytes = is_shared() ? a_.shared_stripe_bytes : a_.stripe_bytes;
    return {down + global_stripe() * bytes + chunk_offset<type>(first), first,
            min(kUnitChunks, shape().n_chunks - first)};
  }
  // True where a (group, stripe) ends. n: of the unit.
  __device__ __forceinline__ bool advance(int n) {
    if (n > 0 && ++unit_ < shape().n_units()) return false;
    unit_ = 0, stripe_ += stripe_step_, group_ += group_step_;
    if (stripe_ >= a_.stripes) stripe_ -= a_.stripes, ++group_;
    return true;
  }

 private:
  __device__ __forceinline__ bool is_shared() const {
    return a_.p.shape.shared_d_ff > 0 && group_ == n_groups_ - 1;
  }
  __device__ __forceinline__ int global_stripe() const {
    return static_cast<int>(blockIdx.x) * a_.stripes + stripe_;
  }

  const DownArgs& a_;
  const ExpertGroup* groups_;
  int n_groups_, group_, stripe_, group_step_, stripe_step_, unit_ = 0;
};

// Pairs of a group that are of this launch's rows, with the slots that they have here.
__device__ __forceinline__ void keep_rows(const DownArgs& a, ExpertGroup& group) {
  const int n_used = a.p.shape.n_used, n_routed = a.n_all_rows * n_used;
  int n = 0;
  for (int k = 0; k < group.n_pairs; ++k) {
    const int r = group.row[k] - a.first_row, slot = group.slot[k];
    if (r < 0 || r >= a.p.n_rows) continue;
    group.slot[n++] = static_cast<int16_t>(slot < n_routed ? slot - a.first_row * n_used
                                                           : a.p.n_rows * n_used + r);
  }
  group.n_pairs = n;
}

// x + the sum over ranks of a row's output, and the shared expert's. i: of the block's outputs, by
// row; weights: [n_rows, n_used], then [n_rows] of the shared expert; outs in the same order.
__device__ __forceinline__ void combine(const DownArgs& a, const float* weights, const float* outs,
                                        int i) {
  const int per_row = 8 * a.stripes, r = i / per_row, column = i % per_row;
  const int output = static_cast<int>(blockIdx.x) * per_row + column;
  if (output >= a.p.shape.d_model) return;
  float* const x = a.p.x + static_cast<int64_t>(r) * a.p.shape.d_model + output;
  const float before = __ldcg(x);
  const int n_used = a.p.shape.n_used, first = r * n_used;
  const float* const own = outs + first * per_row + column;
  float v = sum_by_rank(weights + first, own, n_used, per_row);
  if (a.p.shape.shared_d_ff > 0) {
    const int k = a.p.n_rows * n_used + r;
    v = __fmaf_rn(weights[k], outs[k * per_row + column], v);
  }
  *x = __fadd_rn(before, v);
}

template <Type type>
__global__ void __launch_bounds__(kThreads, 1) down_kernel(const __grid_constant__ DownArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  const SharedPlan plan = shared_plan(a);
  const int warp = warp_index(), lane = lane_index();
  uint8_t* const rows = shared + plan.rows_at;
  auto* const groups = reinterpret_cast<ExpertGroup*>(shared + plan.groups_at);
  auto* const outs = reinterpret_cast<float*>(shared + plan.outs_at);  // [slot][stripe][8]
  auto* const weights = reinterpret_cast<float*>(shared + plan.weights_at);
  WeightRing ring(shared, shared + plan.barriers_at, a.ring, warp);
  let_next_kernel_begin();
  const int n_groups = __ldcg(a.p.list.n_groups), n_routed = a.p.n_rows * a.p.shape.n_used;
  const int n_live = a.p.n_live ? __ldcg(a.p.n_live) - a.first_row : a.p.n_rows;
  load_groups(a.p.list.groups, a.most_groups, groups);
  for (int i = threadIdx.x; i < a.n_slots(); i += kThreads) {
    weights[i] = __ldcg(i < n_routed ? a.p.weights + i : a.p.shared_weights + i - n_routed);
  }
  __syncthreads();
  if (a.p.n_rows < a.n_all_rows) {
    for (int i = threadIdx.x; i < n_groups; i += kThreads) keep_rows(a, groups[i]);
    __syncthreads();
  }
  UnitWalk<type> asked(a, groups, n_groups), walk(a, groups, n_groups);
  const auto request = [&] {
    const Unit unit = asked.unit();
    ring.request(unit.data, unit.n ? unit_bytes<type>(asked.shape(), unit.first, unit.n) : 0);
    asked.advance(unit.n);
  };
#pragma unroll 1
  for (int i = 0; i < a.ring.n_slots && !asked.is_done(); ++i) request();
  wait_for_previous_kernel();

  const int n_chunks = a.p.h.n_chunks;
  copy_rows<4>(a.p.h, n_routed, n_chunks, rows, warp, kWarps);
  if (a.p.shape.shared_d_ff > 0) {
    copy_rows<4>(a.shared_h, a.p.n_rows, n_chunks, rows + n_routed * staged_row_bytes(n_chunks),
                 warp, kWarps);
  }
  __syncthreads();
  PairSets acc = {};
#pragma unroll 1
  while (!walk.is_done()) {
    const ExpertGroup& group = walk.group();
    const RowShape shape = walk.shape();
    const Unit asked_for = walk.unit();
    const int n_pairs = group.n_pairs, stripe = walk.stripe();
    const bool has_stripe = walk.has_stripe();
    const Unit unit{ring.wait(asked_for.data), asked_for.first, asked_for.n};
    if (unit.n > 0) {
      add_pairs<type>(unit, shape, n_pairs, acc,
                      [&](int k) { return staged_row(rows, n_chunks, group.slot[k]); });
    }
    __syncwarp();
    if (!asked.is_done()) request();
    if (!walk.advance(unit.n) || !has_stripe) continue;
    if (unit.n > 0) {
      acc.each(n_pairs, lane, [&](int pair, float sum) {
        outs[(group.slot[pair] * a.stripes + stripe) * 8 + lane / 4] = sum;
      });
      acc = {};
    } else {
      const int column = 8 * (static_cast<int>(blockIdx.x) * a.stripes + stripe);
      for (int i = lane; i < 8 * n_pairs; i += kWarp) {
        const int slot = group.slot[i / 8];
        outs[(slot * a.stripes + stripe) * 8 + i % 8] =
            __ldcg(a.p.outside + static_cast<int64_t>(slot) * a.p.shape.d_model + column + i % 8);
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < min(n_live, a.p.n_rows) * 8 * a.stripes; i += kThreads) {
    combine(a, weights, outs, i);
  }
}

// Rows first .. first + n - 1.
DownArgs args_of(const DownSizes& sizes, int first, int n, const Launch& how) {
  DownArgs args{sizes, first, sizes.p.n_rows, {}, sizes.p.shape.d_model / 8, 0, 0};
  Down& p = args.p;
  const ExpertShape& shape = p.shape;
  args.most_groups = most_groups(shape, p.n_rows);
  args.stripes = (args.n_stripes + how.n_sms - 1) / how.n_sms;
  args.shared_h = p.h.from(p.n_rows * shape.n_used + first);
  p.h = p.h.from(first * shape.n_used);
  p.weights += first * shape.n_used;
  if (p.shared_weights) p.shared_weights += first;
  if (p.outside) p.outside += static_cast<int64_t>(first) * shape.n_used * shape.d_model;
  p.x += static_cast<int64_t>(first) * shape.d_model;
  p.n_rows = n;
  return args;
}

template <Type type>
void run(const Down& p, const Launch& how) {
  const DownSizes sizes = down_sizes<type>(p, kWarps, kMostSlots);
  const auto fits = [&](const DownArgs& args) {
    return shared_plan(args).n_bytes <= how.shared_bytes;
  };
  int at_once = p.n_rows, n_slots = sizes.ring.n_slots;
  const auto args_from = [&](int first) {
    DownArgs args = args_of(sizes, first, std::min(at_once, p.n_rows - first), how);
    args.ring.n_slots = n_slots;
    return args;
  };
  while (!fits(args_from(0))) {
    CHECK(n_slots > 1 || at_once > 1);
    n_slots > 1 ? --n_slots : at_once = (at_once + 1) / 2;
  }
  for (int first = 0; first < p.n_rows; first += at_once) {
    const DownArgs args = args_from(first);
    const auto n_blocks = static_cast<unsigned>((args.n_stripes + args.stripes - 1) / args.stripes);
    launch(down_kernel<type>, dim3(n_blocks), kThreads,
           static_cast<size_t>(shared_plan(args).n_bytes), how, args);
  }
}

}  // namespace

void down(const Down& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_rows <= kMaxRows && p.shape.n_used <= kMaxUsed);
  CHECK(p.shape.d_model % 8 == 0 && p.shape.d_ff % 32 == 0 && p.shape.shared_d_ff % 32 == 0);
  CHECK(p.h.n_chunks == row_shape(std::max(p.shape.d_ff, p.shape.shared_d_ff)).n_chunks);
  if (p.n_rows == 1) return down_row(p, how);
  CHECK(p.ranking.scores == nullptr);
  with_stripe_type(p.shape.down_type, [&]<Type type>() { run<type>(p, how); });
}

}  // namespace sluice::backend::cuda
