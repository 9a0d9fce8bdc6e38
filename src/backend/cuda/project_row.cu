// out = W norm(x) and x += W in, for a single row: what a decode step of one sequence waits for.
//
// Layout   weights: stripes (quant/stripes.h); input f32, normalised here, or int8; out f32.
// Mapping  a block has eight warps and as many stripes as have eight units of four chunks; a warp
//          takes one unit. It requests, awaits and unpacks its weights before the wait for the
//          kernel before. Chunk sums meet in shared memory, and one thread for each output adds
//          them in order. Weights of two types are one launch where files mix these types: the
//          first blocks have those of one, the others those of the other.
// Limits   at most 8,192 columns (project_row_fits); otherwise as project.cu.
// Cost     see bench/gpu_kernels and docs/decisions/0011.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/project_row.h"
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

// The weights of one type.
struct RowWeights {
  WeightParts parts;
  int64_t stripe_bytes;
  int n_blocks;
};

struct ProjectRowArgs {
  const float* x;  // null: in
  RowNorm norm;
  Int8Rows in;
  int n_cols;
  RowShape shape;
  RowWeights of[2];  // the second one may have none
  float* out;
  bool adds;  // to what stands in out
  int stripes_per_block;
};

// What a block's warps share besides weights and rows.
struct RowShared {
  alignas(16) float sums[kWarps * kUnitChunks * 8];
  float squares[NormedRow::kMostSegments];
  uint64_t barriers[kWarps];
};

template <Type type>
constexpr int kSlot = slot_bytes(kUnitChunks* Stripe<type>::chunk_bytes(8));

// Block `block` of those that have weights of this type.
template <Type type, bool has_norm>
__device__ __forceinline__ void project_block(const ProjectRowArgs& a, const RowWeights& w,
                                              int block, uint8_t* shared, RowShared& s) {
  const int warp = warp_index(), lane = lane_index();
  // The warp's unit.
  const int n_units = a.shape.n_units(), own = warp / n_units;
  const int stripe = block * a.stripes_per_block + own;
  const bool has_unit = own < a.stripes_per_block && stripe < w.parts.n_stripes;
  Unit unit{};
  unit.first = (warp - own * n_units) * kUnitChunks;
  unit.n = min(kUnitChunks, a.shape.n_chunks - unit.first);
  WeightRing ring(shared + warp * kSlot<type>, kSlot<type>, s.barriers + warp, 1);
  UnitWeights weights;
  const uint8_t* src = nullptr;
  if (has_unit) {
    const Part part = w.parts.of(stripe);
    src =
        part.data + (stripe - part.first_stripe) * w.stripe_bytes + chunk_offset<type>(unit.first);
    ring.request(src, unit_bytes<type>(a.shape, unit.first, unit.n));
  }
  let_next_kernel_begin();
  NormedRow row(a.x, a.norm, has_norm ? a.n_cols : 0, warp);
  if (has_unit) {
    unit.data = ring.wait(src);
    unpack_unit<type>(unit, a.shape, weights);
  }
  wait_for_previous_kernel();

  // The thread's output.
  const int thread = static_cast<int>(threadIdx.x);
  const int out_stripe = block * a.stripes_per_block + thread / 8;
  const bool has_output = thread < 8 * a.stripes_per_block && out_stripe < w.parts.n_stripes;
  const Part part = w.parts.of(has_output ? out_stripe : 0);
  const int out_row = 8 * (out_stripe - part.first_stripe) + lane % 8;
  float* const out = a.out + part.out_column + out_row;
  const float before = has_output && a.adds ? __ldcg(out) : 0.0f;

  uint8_t* const staged = shared + kWarps * kSlot<type>;
  if constexpr (has_norm) {
    row.add_squares(s.squares);
    __syncthreads();
    row.stage(s.squares, staged);
  } else {
    copy_row(a.in, a.shape.n_chunks, staged, warp, kWarps);
  }
  __syncthreads();
  if (has_unit) {
    PerLane<float> got;
    dot_unit<type, StagedLoad>(unit, a.shape, weights, staged_row(staged, a.shape.n_chunks, 0),
                               got);
    s.sums[(kUnitChunks * warp + lane % 4) * 8 + lane / 4] = got[lane];
  }
  __syncthreads();
  if (has_output) {
    const float* const chunk = s.sums + thread / 8 * n_units * kUnitChunks * 8 + lane % 8;
    float dot = 0.0f;
#pragma unroll 4
    for (int c = 0; c < a.shape.n_chunks; ++c) dot = __fadd_rn(dot, chunk[8 * c]);
    dot = __fadd_rn(dot, part.bias ? __ldg(part.bias + out_row) : 0.0f);
    *out = a.adds ? __fadd_rn(before, dot) : dot;
  }
}

// first and second are one where all weights are of one type.
template <Type first, Type second, bool has_norm>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(2))
    project_row_kernel(const __grid_constant__ ProjectRowArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ RowShared s;
  const int block = static_cast<int>(blockIdx.x);
  if (first == second || block < a.of[0].n_blocks) {
    project_block<first, has_norm>(a, a.of[0], block, shared, s);
  } else {
    project_block<second, has_norm>(a, a.of[1], block - a.of[0].n_blocks, shared, s);
  }
}

template <Type first, Type second, bool has_norm>
void launch_types(ProjectRowArgs args, const Launch& how) {
  args.shape = row_shape(args.n_cols);
  args.stripes_per_block = kWarps / args.shape.n_units();
  for (const auto& [of, type] : {std::pair{&args.of[0], first}, {&args.of[1], second}}) {
    of->stripe_bytes = static_cast<int64_t>(8 * quant::row_bytes(type, args.n_cols));
    of->n_blocks = (of->parts.n_stripes + args.stripes_per_block - 1) / args.stripes_per_block;
  }
  const int needed =
      kWarps * std::max(kSlot<first>, kSlot<second>) + staged_row_bytes(args.shape.n_chunks);
  CHECK(needed <= how.shared_bytes);
  // A dependent launch packs blocks where the kernel before ends first: not more than two.
  const auto bytes = static_cast<size_t>(std::max(needed, std::min(kMinShared, how.shared_bytes)));
  const dim3 grid(static_cast<unsigned>(args.of[0].n_blocks + args.of[1].n_blocks));
  launch(project_row_kernel<first, second, has_norm>, grid, kThreads, bytes, how, args);
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
    p.x ? launch_types<t, t, true>(args, how) : launch_types<t, t, false>(args, how);
  });
}

bool run_two_types(const ProjectRow& p, ProjectRowArgs args, Type a, Type b, const Launch& how) {
  if (!p.x) return false;
  return with_mixed_types(a, b, [&]<Type first, Type second>() {
    args.of[0].parts = parts_of(p, first);
    args.of[1].parts = parts_of(p, second);
    launch_types<first, second, true>(args, how);
  });
}

}  // namespace

void project_row(const ProjectRow& p, const Launch& how) {
  CHECK(project_row_fits(p.n_cols) && (p.x != nullptr) != static_cast<bool>(p.in));
  ProjectRowArgs args{};
  args.x = p.x;
  args.norm = {p.norm, p.eps};
  args.in = p.in;
  args.n_cols = p.n_cols;
  args.out = p.out;
  args.adds = p.adds;
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
