// out = W norm(x) and x += W in, for a single row: what a decode step of one sequence waits for.
//
// Layout   weights: stripes (quant/stripes.h); input f32, normalised here, or int8; out f32.
// Mapping  a block has eight warps and as many stripes as have eight units of four chunks; a warp
//          takes one unit. It requests, awaits and unpacks its weights before the wait for the
//          kernel before. Chunk sums meet in shared memory, and one thread for each output adds
//          them in order. Weights of two types are one launch where files mix these types: the
//          first blocks have those of one, the others those of the other. Where there are more
//          stripes than blocks on the card have so, each block has some of the rest as well,
//          requested with the first and multiplied behind them. Where a router's scores are wanted,
//          a thread adds the block's part of an expert's, when its columns of x are there.
// Limits   at most 8,192 columns, and a unit for each warp fits into shared memory
//          (project_row_fits); otherwise as project.cu.
// Cost     see bench/gpu_kernels and docs/decisions/0011.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>
#include <utility>

#include "backend/cuda/added_scores.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/project_row.h"
#include "backend/cuda/row_room.h"
#include "backend/cuda/stage_row.h"
#include "backend/cuda/stripe_dispatch.h"
#include "backend/cuda/weight_parts.cuh"
#include "backend/cuda/weight_ring.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = NormedRow::kWarps;
constexpr int kThreads = kWarps * kWarp;
constexpr int kMinShared = 76 * 1024;
constexpr int kRoomBehind = 12 * 1024;  // on an SM, for a block of the kernel behind

// The weights of one type.
struct RowWeights {
  WeightParts parts;
  int64_t stripe_bytes;
};

// Stripes of one type that a block takes at a time, a unit to a warp.
struct TakenStripes {
  int first, n;
};

struct ProjectRowArgs {
  const float* x;  // null: in
  RowNorm norm;
  Int8Rows in;
  int n_cols;
  RowShape shape;
  RowWeights of[2];  // the second one may have none
  float* out;
  bool adds;    // to what stands in out
  int n_first;  // blocks that begin with the first type
  int per_block;
  // What blocks take besides: stripes of the last type, from `rest` on.
  int rest, rest_per_block;
  int share;  // of a unit in its stripe, of 2^16: weights are asked for behind no division
  AddedScores scores;

  // Which of a block's stripes a warp's unit is of.
  __device__ __forceinline__ int stripe_of(int warp) const { return warp * share >> 16; }
};

// What a block's warps share besides weights and rows: of the first stripes, then of the rest.
struct RowShared {
  alignas(16) float sums[2][kWarps * kUnitChunks * 8];
  float squares[NormedRow::kMostSegments];
  uint64_t barriers[2][kWarps];
};

template <Type type>
constexpr int kSlot = unit_slot_bytes<type>(kUnitChunks);

// Where things stand in a block's memory: slots, the row, slots of the rest.
template <Type first, Type second>
struct RowPlan {
  static constexpr int kFirstSlot = kSlot<first> > kSlot<second> ? kSlot<first> : kSlot<second>;
  static constexpr int kRowAt = kWarps * kFirstSlot;
  static constexpr int kRestSlot = kSlot<second>;

  static __host__ __device__ constexpr int rest_at(const RowShape& shape) {
    return (kRowAt + staged_row_bytes(shape.n_chunks) + kLine - 1) / kLine * kLine;
  }
  static constexpr int n_bytes(const RowShape& shape, bool has_rest) {
    return has_rest ? rest_at(shape) + kWarps * kRestSlot
                    : kRowAt + staged_row_bytes(shape.n_chunks);
  }
};

// A warp's unit of a block's stripes, on its way into a ring of one slot.
class AskedUnit {
 public:
  __device__ __forceinline__ AskedUnit(uint8_t* slots, int slot_size, uint64_t* barriers)
      : ring_(slots + warp_index() * slot_size, slot_size, barriers + warp_index(), 1) {}

  template <Type type>
  __device__ __forceinline__ void request(const ProjectRowArgs& a, const RowWeights& w,
                                          const TakenStripes& taken) {
    const int warp = warp_index(), own = a.stripe_of(warp);
    const int stripe = taken.first + own;
    unit_.first = (warp - own * a.shape.n_units()) * kUnitChunks;
    unit_.n = min(kUnitChunks, a.shape.n_chunks - unit_.first);
    exists_ = own < taken.n && stripe < w.parts.n_stripes;
    if (!exists_) return;
    const Part part = w.parts.of(stripe);
    src_ =
        part.data + (stripe - part.first_stripe) * w.stripe_bytes + chunk_offset<type>(unit_.first);
    ring_.request(src_, unit_bytes<type>(a.shape, unit_.first, unit_.n));
  }
  __device__ __forceinline__ bool exists() const { return exists_; }
  __device__ __forceinline__ void await() { unit_.data = ring_.wait(src_); }
  __device__ __forceinline__ const Unit& unit() const { return unit_; }

 private:
  WeightRing ring_;
  Unit unit_{};
  const uint8_t* src_ = nullptr;
  bool exists_ = false;
};

// Chunk sums of the warp's unit to where the outputs are added up.
__device__ __forceinline__ void leave_sums(const PerLane<float>& got, float* sums) {
  const int lane = lane_index();
  sums[(kUnitChunks * warp_index() + lane % 4) * 8 + lane / 4] = got[lane];
}

// The dot product of a stripe's row: its chunk sums in order, 8 apart.
__device__ __forceinline__ float sum_of_chunks(const float* chunk, int n_chunks) {
  float dot = 0.0f;
#pragma unroll 4
  for (int c = 0; c < n_chunks; ++c) dot = __fadd_rn(dot, chunk[8 * c]);
  return dot;
}

// The row, normalised or as it came, in the memory of the block, behind a barrier.
template <bool has_norm>
__device__ __forceinline__ InputRow stage_input(const ProjectRowArgs& a, NormedRow& row,
                                                float* squares, uint8_t* staged) {
  if constexpr (has_norm) {
    row.add_squares(squares);
    __syncthreads();
    row.stage(squares, staged);
  } else {
    copy_row(a.in, a.shape.n_chunks, staged, warp_index(), kWarps);
  }
  __syncthreads();
  return staged_row(staged, a.shape.n_chunks, 0);
}

// What the kernel does with a row besides multiplying: normalises it, nothing, or adds the router's
// scores.
enum class RowWork { norm, none, scores };

// first and second are one where all weights are of one type.
template <Type first, Type second, RowWork work>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(2))
    project_row_kernel(const __grid_constant__ ProjectRowArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ RowShared s;
  using Plan = RowPlan<first, second>;
  constexpr bool mixes = first != second, has_norm = work == RowWork::norm;
  const int block = static_cast<int>(blockIdx.x), warp = warp_index(), lane = lane_index();
  const bool is_first = !mixes || block < a.n_first;
  // call.operator()<type>(), the type of the block's first stripes.
  const auto with_own_type = [&](const auto& call) {
    if constexpr (mixes) {
      if (!is_first) return call.template operator()<second>();
    }
    call.template operator()<first>();
  };
  const TakenStripes taken{(is_first ? block : block - a.n_first) * a.per_block, a.per_block};
  const TakenStripes rest{a.rest + block * a.rest_per_block, has_norm ? a.rest_per_block : 0};
  const RowWeights& own = a.of[is_first ? 0 : 1];
  const RowWeights& last = a.of[mixes ? 1 : 0];
  AskedUnit asked(shared, Plan::kFirstSlot, s.barriers[0]);
  with_own_type([&]<Type type>() { asked.request<type>(a, own, taken); });
  uint8_t* const rest_slots = shared + Plan::rest_at(a.shape);
  AskedUnit more(rest_slots, Plan::kRestSlot, s.barriers[1]);
  if constexpr (has_norm) more.request<second>(a, last, rest);
  let_next_kernel_begin();
  NormedRow row(a.x, a.norm, has_norm ? a.n_cols : 0, warp);
  UnitWeights weights;
  if (asked.exists()) {
    asked.await();
    with_own_type([&]<Type type>() { unpack_unit<type>(asked.unit(), a.shape, weights); });
  }
  // The thread's output: of the first stripes by the first half of them.
  const int thread = static_cast<int>(threadIdx.x) % (kThreads / 2);
  const bool of_rest = static_cast<int>(threadIdx.x) >= kThreads / 2;
  const RowWeights& w = of_rest ? last : own;
  const TakenStripes& outputs = of_rest ? rest : taken;
  const int stripe = outputs.first + thread / 8;
  const bool has_output = thread / 8 < outputs.n && stripe < w.parts.n_stripes;
  const Part part = w.parts.of(has_output ? stripe : 0);
  const int out_row = 8 * (stripe - part.first_stripe) + lane % 8;
  float* const out = a.out + part.out_column + out_row;
  using Scores = std::conditional_t<work == RowWork::scores, BlockScores<kThreads>, NoScores>;
  const Scores scores(a.scores, 8 * taken.first, 8 * a.per_block);
  const float norm = work == RowWork::scores && has_output ? __ldg(a.scores.norm + out_row) : 0.0f;
  wait_for_previous_kernel();
  const float before = has_output && a.adds ? __ldcg(out) : 0.0f;

  const InputRow in = stage_input<has_norm>(a, row, s.squares, shared + Plan::kRowAt);
  if (asked.exists()) {
    PerLane<float> got;
    with_own_type(
        [&]<Type type>() { dot_unit<type, StagedLoad>(asked.unit(), a.shape, weights, in, got); });
    leave_sums(got, s.sums[0]);
  }
  if (has_norm && more.exists()) {
    more.await();
    PerLane<float> got;
    dot_unit<second, StagedLoad, 0>(more.unit(), a.shape, weights, in, got);
    leave_sums(got, s.sums[1]);
  }
  __syncthreads();
  float gx = 0.0f;
  if (has_output) {
    const float* const chunk =
        s.sums[of_rest ? 1 : 0] + thread / 8 * a.shape.n_units() * kUnitChunks * 8 + lane % 8;
    float dot = sum_of_chunks(chunk, a.shape.n_chunks);
    dot = __fadd_rn(dot, part.bias ? __ldg(part.bias + out_row) : 0.0f);
    if (a.adds) dot = __fadd_rn(before, dot);
    *out = dot;
    gx = __fmul_rn(norm, dot);
  }
  if constexpr (work == RowWork::scores) {
    __shared__ __align__(16) float weighted[8 * kWarps];
    if (static_cast<int>(threadIdx.x) < 8 * a.per_block) weighted[threadIdx.x] = gx;
    __syncthreads();
    scores.add(weighted);
  }
}

// Where there are more blocks than are on the card at once, those that are share out what is left:
// so the weights of all are on their way before the row is there, which is normalised by so many
// blocks alone, and none begins when the others end. False: there are not, or their memory would
// leave no room for the kernel behind.
template <typename Plan>
bool share_rest(ProjectRowArgs& a, const int (&n_blocks)[2], const Launch& how) {
  const int at_once = 2 * how.n_sms,
            n_stripes[2] = {a.of[0].parts.n_stripes, a.of[1].parts.n_stripes};
  const int last = n_stripes[1] > 0 ? 1 : 0;
  if (n_blocks[0] + n_blocks[1] <= at_once || n_blocks[0] * last > at_once) return false;
  const int rest = (at_once - n_blocks[0] * last) * a.per_block;
  const int per_block = (n_stripes[last] - rest + at_once - 1) / at_once;
  const int n_bytes = Plan::n_bytes(a.shape, true) + static_cast<int>(sizeof(RowShared)) + 1024;
  if (per_block > a.per_block || 2 * n_bytes + kRoomBehind > how.shared_per_sm) return false;
  a.rest = rest, a.rest_per_block = per_block;
  return true;
}

template <Type first, Type second, RowWork work>
void launch_types(ProjectRowArgs args, const Launch& how) {
  using Plan = RowPlan<first, second>;
  args.shape = row_shape(args.n_cols);
  const int n_units = args.shape.n_units();
  args.per_block = kWarps / n_units;
  args.share = ((1 << 16) + n_units - 1) / n_units;
  int n_blocks[2];
  for (int i = 0; i < 2; ++i) {
    args.of[i].stripe_bytes =
        static_cast<int64_t>(8 * quant::row_bytes(i == 0 ? first : second, args.n_cols));
    n_blocks[i] = (args.of[i].parts.n_stripes + args.per_block - 1) / args.per_block;
  }
  args.n_first = n_blocks[0];
  const bool has_rest = work == RowWork::norm && share_rest<Plan>(args, n_blocks, how);
  const int needed = Plan::n_bytes(args.shape, has_rest), room = row_room(how.shared_bytes);
  CHECK(needed <= room);
  // A dependent launch packs blocks where the kernel before ends first: not more than two.
  const auto bytes = static_cast<size_t>(std::max(needed, std::min(kMinShared, room)));
  const dim3 grid(static_cast<unsigned>(has_rest ? 2 * how.n_sms : n_blocks[0] + n_blocks[1]));
  launch(project_row_kernel<first, second, work>, grid, kThreads, bytes, how, args);
}

// call.operator()<first, second>() for types that files mix in one layer's projections, in either
// order; others are a launch each. The first type's blocks begin first: those with more to do.
template <typename Call>
bool with_mixed_types(Type a, Type b, const Call& call) {
  bool found = false;
  const auto is = [&]<Type first, Type second>() {
    if (found || !((a == first && b == second) || (a == second && b == first))) return;
    found = true;
    call.template operator()<first, second>();
  };
  is.template operator()<Type::q6_k, Type::q4_k>();
  is.template operator()<Type::q6_k, Type::q5_k>();
  is.template operator()<Type::q5_k, Type::q4_k>();
  is.template operator()<Type::q5_k, Type::q3_k>();
  is.template operator()<Type::q8_0, Type::q4_k>();
  is.template operator()<Type::q6_k, Type::q8_0>();
  return found;
}

WeightParts parts_of(const ProjectRow& p, Type type) {
  WeightParts parts{};
  for (int i = 0; i < p.n_weights; ++i) {
    if (p.weights[i].type == type) add_part(parts, p.weights[i]);
  }
  return parts;
}

void run_one_type(const ProjectRow& p, ProjectRowArgs args, Type type, const Launch& how) {
  args.of[0].parts = parts_of(p, type);
  with_stripe_type(type, [&]<Type t>() {
    p.x             ? launch_types<t, t, RowWork::norm>(args, how)
    : p.scores.sums ? launch_types<t, t, RowWork::scores>(args, how)
                    : launch_types<t, t, RowWork::none>(args, how);
  });
}

bool run_two_types(const ProjectRow& p, ProjectRowArgs args, Type a, Type b, const Launch& how) {
  if (!p.x) return false;
  return with_mixed_types(a, b, [&]<Type first, Type second>() {
    args.of[0].parts = parts_of(p, first);
    args.of[1].parts = parts_of(p, second);
    launch_types<first, second, RowWork::norm>(args, how);
  });
}

}  // namespace

bool project_row_fits(const StripeWeight* weights, int n_weights, int n_cols, const Launch& how) {
  return n_cols <= kMostRowColumns && std::all_of(weights, weights + n_weights, [&](const auto& w) {
           return project_row_bytes(w.type, n_cols) <= row_room(how.shared_bytes);
         });
}

void project_row(const ProjectRow& p, const Launch& how) {
  CHECK(project_row_fits(p.weights, p.n_weights, p.n_cols, how));
  CHECK((p.x != nullptr) != static_cast<bool>(p.in));
  CHECK(!p.scores.sums || (p.adds && p.in && p.n_weights == 1 && p.scores.n_experts <= kThreads &&
                           p.scores.d_model == p.weights->n_rows));
  ProjectRowArgs args{};
  args.x = p.x;
  args.norm = {p.norm, p.eps};
  args.in = p.in;
  args.n_cols = p.n_cols;
  args.out = p.out;
  args.adds = p.adds;
  args.scores = p.scores;
  Type types[kMaxProjections];
  int n_types = 0;
  for (int i = 0; i < p.n_weights; ++i) {
    if (std::find(types, types + n_types, p.weights[i].type) == types + n_types) {
      types[n_types++] = p.weights[i].type;
    }
  }
  if (n_types == 2 && run_two_types(p, args, types[0], types[1], how)) return;
  for (int i = 0; i < n_types; ++i) run_one_type(p, args, types[i], how);
}

}  // namespace sluice::backend::cuda
