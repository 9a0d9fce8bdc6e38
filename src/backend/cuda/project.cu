// out = W norm(x), x += W in, and logits: eight warps of a block share some stripes.
//
// Layout   weights: stripes (quant/stripes.h); input: int8 rows (int8_rows.h); out f32.
// Mapping  a task is as many stripes as have a unit for each warp: four chunks of a stripe for one
//          row, one or two chunks of two stripes for several (stripe_dot.h). A warp takes a unit
//          (more where a row has more), its chunk sums go to shared memory, and behind a barrier
//          one thread for each output adds them in order. A block takes every gridDim-th task: of
//          one row each has its own block, otherwise not more than the card holds at once.
//          Weights are requested, and the first unit of one input unpacked, before the wait for
//          the kernel before. f32 rows are normalised and quantised by a kernel of their own.
//          Weights of a second type are a launch of their own, which does not wait for the first
//          one's: that one lets it begin when the rows are there.
// Limits   n_cols % 32 (super-blocks: 256), weight rows % 8; rows 16-byte aligned (the launcher
//          checks). More than 16 rows, or such as do not fit into shared memory: some at a time.
// Cost     see bench/gpu_kernels and docs/decisions/0015.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/async_copy.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/project.h"
#include "backend/cuda/project_row.h"
#include "backend/cuda/quantize_rows.h"
#include "backend/cuda/stage_rows.h"
#include "backend/cuda/stripe_dispatch.h"
#include "backend/cuda/weight_parts.cuh"
#include "backend/cuda/weight_ring.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kMostWarps = 16;  // where a row has more units than eight warps
constexpr int kMostRows = 16;   // at once: so that two blocks of eight warps fit on an SM
constexpr int kMinShared = 76 * 1024;

struct ProjectArgs {
  Int8Rows in;
  int n_rows;
  int n_cols;
  RowShape shape;
  WeightParts weights;
  int64_t stripe_bytes;
  float* out;
  int out_stride;
  bool adds;  // to what stands in out
  int stripes_per_task;
  int unit_chunks;     // of one row kUnitChunks
  int n_warps;         // of a block
  int units_per_warp;  // of a task
  int n_tasks;
  bool lets_next_late;  // when its input is there, so that the next one need not wait for it
  bool waits_last;      // its input was there when it began; at its end it waits for the one before

  __host__ __device__ constexpr int n_units() const {  // of a stripe
    return (shape.n_chunks + unit_chunks - 1) / unit_chunks;
  }
  RingSize ring;
};

// Where things stand in shared memory.
struct SharedPlan {
  int rows_at, sums_at, barriers_at, n_bytes;
};

__host__ __device__ inline SharedPlan shared_plan(const ProjectArgs& a) {
  SharedPlan p;
  p.rows_at = a.ring.slots_bytes(a.n_warps);
  p.sums_at = p.rows_at + a.n_rows * staged_row_bytes(a.shape.n_chunks);
  p.barriers_at = p.sums_at + 2 * a.stripes_per_task * a.shape.n_chunks * a.n_rows * 8 * 4;
  p.n_bytes = p.barriers_at + a.ring.barriers_bytes(a.n_warps);
  return p;
}

// Stripes of a unit.
template <bool many>
constexpr int kStripes = many ? 2 : 1;

// What a warp does, item by item: unit warp + n_warps m of each of the block's tasks.
template <Type type, bool many>
class UnitWalk {
 public:
  __device__ __forceinline__ explicit UnitWalk(const ProjectArgs& a)
      : a_(a), per_task_(a.units_per_warp), first_(place_in_task(0)) {}

  struct Place {
    int stripe_in_task, first_chunk, n_chunks;
    const uint8_t* src[kStripes<many>];
    int n_bytes;  // of each; 0: no unit here
  };
  __device__ __forceinline__ int n_items() const {
    const int first = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x);
    return first < a_.n_tasks ? ((a_.n_tasks - 1 - first) / step + 1) * per_task_ : 0;
  }
  __device__ __forceinline__ int per_task() const { return per_task_; }
  __device__ __forceinline__ int task(int item) const {
    return static_cast<int>(blockIdx.x) +
           (per_task_ == 1 ? item : item / per_task_) * static_cast<int>(gridDim.x);
  }
  __device__ __forceinline__ Place at(int item) const {
    Place place = per_task_ == 1 ? first_ : place_in_task(item % per_task_);
    const int stripe = task(item) * a_.stripes_per_task + place.stripe_in_task;
    if (place.stripe_in_task >= a_.stripes_per_task || stripe >= a_.weights.n_stripes) {
      place.n_bytes = 0;
      return place;
    }
    // Where the number of stripes is odd the last stands for two; write_task() asks for one.
#pragma unroll
    for (int k = 0; k < kStripes<many>; ++k) {
      place.src[k] = data_of(min(stripe + k, a_.weights.n_stripes - 1)) +
                     chunk_offset<type>(place.first_chunk);
    }
    return place;
  }

 private:
  // The warp's m-th unit of a task; its address is still to come. Divisions are dear: once a warp.
  __device__ __forceinline__ Place place_in_task(int m) const {
    const int unit = warp_index() + m * a_.n_warps, n_units = a_.n_units();
    const int stripe = unit / n_units * kStripes<many>, first = unit % n_units * a_.unit_chunks;
    const int n = min(a_.unit_chunks, a_.shape.n_chunks - first);
    return {stripe, first, n, {}, unit_bytes<type>(a_.shape, first, n)};
  }
  __device__ __forceinline__ const uint8_t* data_of(int stripe) const {
    const Part& part = a_.weights.of(stripe);
    return part.data + (stripe - part.first_stripe) * a_.stripe_bytes;
  }

  const ProjectArgs& a_;
  int per_task_;
  Place first_;
};

// Output i of a task (by row, then by stripe): where it goes, and what is added to it.
struct Output {
  float* at;  // null: there is none
  float bias, before;
  int sums_at;
};
__device__ __forceinline__ Output output_of(const ProjectArgs& a, int task, int i) {
  const int n_rows = a.n_rows, per_row = 8 * a.stripes_per_task;
  const int r = n_rows == 1 ? 0 : i / per_row, in_task = i - r * per_row, stripe = in_task / 8;
  const int global = task * a.stripes_per_task + stripe;
  if (i >= n_rows * per_row || global >= a.weights.n_stripes) return {nullptr, 0.0f, 0.0f, 0};
  const Part& part = a.weights.of(global);
  const int row = 8 * (global - part.first_stripe) + in_task % 8;
  float* const out = a.out + static_cast<int64_t>(r) * a.out_stride + part.out_column + row;
  return {out, part.bias ? __ldg(part.bias + row) : 0.0f, a.adds ? __ldcg(out) : 0.0f,
          (stripe * n_rows + r) * a.shape.n_chunks * 8 + in_task % 8};
}

// Adds the chunk sums of a task's outputs, and writes them. first: the thread's first.
__device__ __forceinline__ void write_task(const ProjectArgs& a, int task, const Output& first,
                                           const float* sums) {
  const int n = a.n_rows * 8 * a.stripes_per_task, n_threads = a.n_warps * kWarp;
  for (int i = threadIdx.x; i < n; i += n_threads) {
    const auto [out, bias, before, sums_at] = i < n_threads ? first : output_of(a, task, i);
    if (!out) continue;
    float dot = 0.0f;
#pragma unroll 8
    for (int c = 0; c < a.shape.n_chunks; ++c) dot = __fadd_rn(dot, sums[sums_at + 8 * c]);
    dot = __fadd_rn(dot, bias);
    *out = a.adds ? __fadd_rn(before, dot) : dot;
  }
}

// Some take more registers than half of an SM's.
template <Type type, bool many>
constexpr int kBlocksPerSm = type == Type::q2_k || type == (many ? Type::mxfp4 : Type::iq4_nl) ? 1
                                                                                               : 2;

// Warps that a block may have: the same registers for a thread, in one block instead of two.
template <Type type, bool many>
constexpr int most_warps(bool is_sm_90) {
  return is_sm_90 && many && kBlocksPerSm<type, many> == 2 ? kMostWarps : kWarps;
}
template <Type type, bool many>
__host__ __device__ constexpr int most_threads() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return kWarp * most_warps<type, many>(false);
#else
  return kWarp * most_warps<type, many>(true);
#endif
}

template <Type type, bool many>
__global__ void __launch_bounds__(most_threads<type, many>(),
                                  most_threads<type, many>() > kWarps * kWarp
                                      ? 1
                                      : blocks_per_sm(kBlocksPerSm<type, many>))
    project_kernel(const __grid_constant__ ProjectArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  const SharedPlan plan = shared_plan(a);
  const int warp = warp_index(), lane = lane_index();
  uint8_t* const rows = shared + plan.rows_at;
  auto* const all_sums = reinterpret_cast<float*>(shared + plan.sums_at);
  const int sums_size = a.stripes_per_task * a.shape.n_chunks * a.n_rows * 8;

  WeightRing ring(shared, shared + plan.barriers_at, a.ring, warp);
  const UnitWalk<type, many> walk(a);
  const int n_items = walk.n_items();
  for (int i = 0; i < min(a.ring.n_slots, n_items); ++i) {
    const auto place = walk.at(i);
    ring.request(place.src, place.n_bytes);
  }
  if (!a.lets_next_late) let_next_kernel_begin();

  auto place = walk.at(0);
  const uint8_t* data[kStripes<many>];
  UnitWeights weights;
  const auto take_next = [&](int i) {
    place = walk.at(i);
    ring.wait(place.src, data);
    if constexpr (!many) {
      const Unit unit{data[0], place.first_chunk, place.n_chunks};
      if (place.n_bytes) unpack_unit<type>(unit, a.shape, weights);
    }
  };
  if (n_items > 0) take_next(0);
  if (!a.waits_last) wait_for_previous_kernel();
  if (a.lets_next_late) let_next_kernel_begin();
  copy_rows(a.in, a.n_rows, a.shape.n_chunks, rows, warp, a.n_warps, copy_16);
  wait_for_copies();
  __syncthreads();

  const int n_rows = a.n_rows;
  int in_task = 0, buffer = 0;
  for (int i = 0; i < n_items; ++i) {
    Output output{};
    if (in_task == 0) output = output_of(a, walk.task(i), static_cast<int>(threadIdx.x));
    float* const sums = all_sums + buffer * sums_size;
    float* const mine = sums + place.stripe_in_task * n_rows * a.shape.n_chunks * 8;
    if (place.n_bytes) {
      if constexpr (many) {
#pragma unroll 1
        for (int c = 0; c < place.n_chunks; ++c) {
          const int chunk = place.first_chunk + c;
          const uint8_t* const chunks[2] = {data[0] + chunk_offset<type>(c),
                                            data[1] + chunk_offset<type>(c)};
          dot_pair<type, StagedLoad>(
              chunks, chunk, blocks_of<type>(a.shape, chunk), n_rows,
              [&](int r) { return staged_row(rows, a.shape.n_chunks, r); },
              [&](int k, int stripe, const PerLane<float>& got) {
                const int r = k + 2 * (lane % 4);
                if (r < n_rows) {
                  mine[((stripe * n_rows + r) * a.shape.n_chunks + chunk) * 8 + lane / 4] =
                      got[lane];
                }
              });
        }
      } else {
        PerLane<float> got;
        dot_unit<type, StagedLoad>({data[0], place.first_chunk, place.n_chunks}, a.shape, weights,
                                   staged_row(rows, a.shape.n_chunks, 0), got);
        if (lane % 4 < place.n_chunks) {
          mine[(place.first_chunk + lane % 4) * 8 + lane / 4] = got[lane];
        }
      }
    }
    __syncwarp();
    if (i + a.ring.n_slots < n_items) {
      const auto next = walk.at(i + a.ring.n_slots);
      ring.request(next.src, next.n_bytes);
    }
    if (++in_task == walk.per_task()) {
      __syncthreads();
      if (walk.per_task() > 1) output = output_of(a, walk.task(i), static_cast<int>(threadIdx.x));
      write_task(a, walk.task(i), output, sums);
      in_task = 0, buffer ^= 1;
    }
    if (i + 1 < n_items) take_next(i + 1);
  }
  if (a.waits_last) wait_for_previous_kernel();
}

// A launch among those of one projection.
struct Turn {
  bool fills_card;
  int n_stripes_behind;  // of launches that begin beside this one
};

// The launches of args.n_rows, in units of so many chunks; the sizes that they share are set here.
// False where a block has not the shared memory for one row.
template <Type type, bool many>
bool run_units(ProjectArgs args, int unit_chunks, const Turn& turn, const Launch& how) {
  args.shape = row_shape(args.n_cols);
  args.stripe_bytes = static_cast<int64_t>(8 * quant::row_bytes(type, args.n_cols));
  args.unit_chunks = unit_chunks;
  args.ring.slot_size =
      kStripes<many> *
      slot_bytes(static_cast<int>(args.unit_chunks * Stripe<type>::chunk_bytes(8)));
  const int n_units = args.n_units();
  args.n_warps =
      n_units > kWarps && !turn.fills_card ? most_warps<type, many>(how.overlaps) : kWarps;
  args.stripes_per_task = kStripes<many> * std::max(1, args.n_warps / n_units);
  args.n_tasks = (args.weights.n_stripes + args.stripes_per_task - 1) / args.stripes_per_task;
  args.units_per_warp =
      (args.stripes_per_task / kStripes<many> * n_units + args.n_warps - 1) / args.n_warps;
  const int n_behind = (turn.n_stripes_behind + args.stripes_per_task - 1) / args.stripes_per_task;
  const int at_most = !many && !turn.fills_card ? args.n_tasks
                      : args.n_warps > kWarps   ? how.n_sms
                                                : std::max(how.n_sms, 2 * how.n_sms - n_behind);
  const int n_blocks = std::min(args.n_tasks, at_most);
  const int n_all = args.n_rows;
  args.n_rows = std::min(n_all, kMostRows);
  const int n_items = (args.n_tasks + n_blocks - 1) / n_blocks * args.units_per_warp;
  args.ring.n_slots = std::min(n_items, 3);
  const int half = (how.shared_per_sm / 2 - 1024) / 128 * 128;  // two blocks an SM
  while (args.n_warps == kWarps && args.ring.n_slots > 1 && shared_plan(args).n_bytes > half)
    --args.ring.n_slots;
  while (shared_plan(args).n_bytes > how.shared_bytes) {
    if (args.ring.n_slots > 1) {
      --args.ring.n_slots;
    } else if (args.n_rows > 1) {
      args.n_rows = (args.n_rows + 1) / 2;
    } else {
      return false;
    }
  }
  const int at_once = args.n_rows;
  for (int first = 0; first < n_all; first += at_once) {
    ProjectArgs some = args;
    some.n_rows = std::min(at_once, n_all - first);
    some.in = args.in.from(first);
    some.out += static_cast<int64_t>(first) * args.out_stride;
    // A dependent launch packs blocks where the kernel before ends first: not more than two.
    const auto bytes = static_cast<size_t>(
        std::max(shared_plan(some).n_bytes, std::min(kMinShared, how.shared_bytes)));
    launch(project_kernel<type, many>, dim3(static_cast<unsigned>(n_blocks)), kWarp * args.n_warps,
           bytes, how, some);
  }
  return true;
}

// Small units share the work evenly; of the logits each has its cost.
template <Type type, bool many>
bool run(const ProjectArgs& args, const Turn& turn, const Launch& how) {
  const int unit_chunks = !many ? kUnitChunks : turn.fills_card ? 2 : 1;
  return run_units<type, many>(args, unit_chunks, turn, how) ||
         (unit_chunks == 2 && run_units<type, many>(args, 1, turn, how));
}

// Whether a grid as large as the card takes several tasks each.
bool is_large(const StripeWeight* weights, int n, int n_cols, const Launch& how) {
  int n_stripes = 0;
  for (int i = 0; i < n; ++i) n_stripes += weights[i].n_rows / 8;
  return n_stripes * row_shape(n_cols).n_units() > 64 * how.n_sms;
}

void check_sizes(int n_rows, int n_cols) {
  CHECK(n_rows >= 1 && n_rows <= kMostRows);
  CHECK(n_cols > 0 && n_cols % 32 == 0);
}

}  // namespace

void project_rows(const ProjectRows& p, const Launch& how) {
  CHECK(p.in && p.n_rows >= 1 && p.n_cols > 0 && p.n_cols % 32 == 0);
  CHECK(p.n_weights >= 1 && p.n_weights <= kMaxProjections && p.out_stride > 0);
  const bool fills_card = is_large(p.weights, p.n_weights, p.n_cols, how);
  if (p.n_rows == 1 && !fills_card && project_row_fits(p.weights, p.n_weights, p.n_cols, how)) {
    return project_row(
        {nullptr, nullptr, 0.0f, p.in, p.n_cols, p.weights, p.n_weights, p.out, p.adds}, how);
  }
  ProjectArgs args{};
  args.in = p.in;
  args.n_rows = p.n_rows;
  args.n_cols = p.n_cols;
  args.out = p.out;
  args.out_stride = p.out_stride;
  args.adds = p.adds;
  Turn turn{fills_card, 0};
  for (int i = 0; i < p.n_weights; ++i) turn.n_stripes_behind += p.weights[i].n_rows / 8;
  const int n_all_stripes = turn.n_stripes_behind;
  uint32_t done = 0;  // weights that were launched
  for (int first = 0; first < p.n_weights; ++first) {
    if (done >> first & 1u) continue;
    const Type type = p.weights[first].type;
    args.weights = {};
    for (int i = first; i < p.n_weights; ++i) {
      if (p.weights[i].type == type) add_part(args.weights, p.weights[i]), done |= 1u << i;
    }
    args.waits_last = turn.n_stripes_behind < n_all_stripes;
    turn.n_stripes_behind -= args.weights.n_stripes;
    args.lets_next_late = turn.n_stripes_behind > 0;
    // A single row as if it were several, where its units do not fit into shared memory.
    with_stripe_type(type, [&]<Type t>() {
      if (p.n_rows == 1 && run<t, false>(args, turn, how)) return;
      CHECK((run<t, true>(args, turn, how)));
    });
  }
}

void project_in(const ProjectIn& p, const Launch& how) {
  check_sizes(p.n_rows, p.n_cols);
  CHECK(p.n_weights >= 1 && p.n_weights <= kMaxProjections && p.out_stride > 0);
  if (project_in_is_one_kernel(p, how)) {
    return project_row({p.x, p.norm, p.eps, {}, p.n_cols, p.weights, p.n_weights, p.out, false},
                       how);
  }
  quantize_rows({p.x, nullptr, p.norm, p.eps, p.n_rows, p.n_cols, p.a}, how);
  ProjectRows rows{p.a, p.n_rows, p.n_cols, {}, p.n_weights, p.out, p.out_stride};
  std::copy_n(p.weights, p.n_weights, rows.weights);
  project_rows(rows, how);
}

bool project_in_is_one_kernel(const ProjectIn& p, const Launch& how) {
  return p.n_rows == 1 && project_row_fits(p.weights, p.n_weights, p.n_cols, how);
}

void project_add(const ProjectAdd& p, const Launch& how) {
  check_sizes(p.n_rows, p.n_cols);
  CHECK(p.in && p.weight.out_column == 0);
  if (p.scores.sums) {
    CHECK(can_add_scores(p, how));
    return project_row({nullptr, nullptr, 0.0f, p.in, p.n_cols, &p.weight, 1, p.x, true, p.scores},
                       how);
  }
  project_rows({p.in, p.n_rows, p.n_cols, {p.weight}, 1, p.x, p.weight.n_rows, true}, how);
}

bool can_add_scores(const ProjectAdd& p, const Launch& how) {
  return p.n_rows == 1 && project_row_fits(&p.weight, 1, p.n_cols, how) &&
         !is_large(&p.weight, 1, p.n_cols, how);
}

void logits(const Logits& p, const Launch& how) {
  check_sizes(p.n_rows, p.n_cols);
  CHECK(p.weight.out_column == 0);
  quantize_rows({p.x, p.rows, p.norm, p.eps, p.n_rows, p.n_cols, p.a}, how);
  project_rows({p.a, p.n_rows, p.n_cols, {p.weight}, 1, p.logits, p.weight.n_rows, false}, how);
}

}  // namespace sluice::backend::cuda
