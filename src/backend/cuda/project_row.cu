// out = W norm(x) and x += W in, for a single row: what a decode step of one sequence waits for.
//
// Layout   weights: stripes (quant/stripes.h); input f32, normalised here, or int8; out f32.
// Mapping  a block has eight warps and as many stripes as have eight units of four chunks; a warp
//          takes one unit. It requests, awaits and unpacks its weights before the wait for the
//          kernel before. Chunk sums meet in shared memory, and one thread for each output adds
//          them in order.
// Limits   at most 8,192 columns (project_row_fits); otherwise as project.cu.
// Cost     see bench/gpu_kernels and docs/decisions/0011.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

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

struct ProjectRowArgs {
  const float* x;  // null: in
  RowNorm norm;
  Int8Rows in;
  int n_cols;
  RowShape shape;
  WeightParts weights;
  int64_t stripe_bytes;
  float* out;
  bool adds;  // to what stands in out
  int stripes_per_block;
};

template <Type type, bool has_norm>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(2))
    project_row_kernel(const __grid_constant__ ProjectRowArgs a) {
  constexpr int kSlot = slot_bytes(kUnitChunks * Stripe<type>::chunk_bytes(8));
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ __align__(16) float sums[kWarps * kUnitChunks * 8];
  __shared__ float squares[NormedRow::kMostSegments];
  __shared__ uint64_t barriers[kWarps];
  const int warp = warp_index(), lane = lane_index();
  // The warp's unit.
  const int n_units = a.shape.n_units(), own = warp / n_units;
  const int stripe = static_cast<int>(blockIdx.x) * a.stripes_per_block + own;
  const bool has_unit = own < a.stripes_per_block && stripe < a.weights.n_stripes;
  Unit unit{};
  unit.first = (warp - own * n_units) * kUnitChunks;
  unit.n = min(kUnitChunks, a.shape.n_chunks - unit.first);
  WeightRing ring(shared + warp * kSlot, kSlot, barriers + warp, 1);
  UnitWeights weights;
  const uint8_t* src = nullptr;
  if (has_unit) {
    const Part part = a.weights.parts[a.weights.of(stripe)];
    src =
        part.data + (stripe - part.first_stripe) * a.stripe_bytes + chunk_offset<type>(unit.first);
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
  const int out_stripe =
      static_cast<int>(blockIdx.x) * a.stripes_per_block + static_cast<int>(threadIdx.x) / 8;
  const bool has_output =
      static_cast<int>(threadIdx.x) < 8 * a.stripes_per_block && out_stripe < a.weights.n_stripes;
  const int column = 8 * out_stripe + lane % 8;
  const float before = has_output && a.adds ? __ldcg(a.out + column) : 0.0f;

  uint8_t* const staged = shared + kWarps * kSlot;
  if constexpr (has_norm) {
    row.add_squares(squares);
    __syncthreads();
    row.stage(squares, staged);
  } else {
    copy_row(a.in, a.shape.n_chunks, staged, warp, kWarps);
  }
  __syncthreads();
  if (has_unit) {
    PerLane<float> got;
    dot_unit<type, StagedLoad>(unit, a.shape, weights, staged_row(staged, a.shape.n_chunks, 0),
                               got);
    sums[(kUnitChunks * warp + lane % 4) * 8 + lane / 4] = got[lane];
  }
  __syncthreads();
  if (has_output) {
    const float* const chunk = sums + threadIdx.x / 8 * n_units * kUnitChunks * 8 + lane % 8;
    float dot = 0.0f;
#pragma unroll 4
    for (int c = 0; c < a.shape.n_chunks; ++c) dot = __fadd_rn(dot, chunk[8 * c]);
    const Part part = a.weights.parts[a.weights.of(out_stripe)];
    dot = __fadd_rn(dot, part.bias ? __ldg(part.bias + column - 8 * part.first_stripe) : 0.0f);
    a.out[column] = a.adds ? __fadd_rn(before, dot) : dot;
  }
}

template <Type type>
void run(ProjectRowArgs args, const Launch& how) {
  args.shape = row_shape(args.n_cols);
  args.stripe_bytes = static_cast<int64_t>(8 * quant::row_bytes(type, args.n_cols));
  args.stripes_per_block = kWarps / args.shape.n_units();
  const int n_blocks =
      (args.weights.n_stripes + args.stripes_per_block - 1) / args.stripes_per_block;
  constexpr int kSlot = slot_bytes(kUnitChunks * Stripe<type>::chunk_bytes(8));
  const int needed = kWarps * kSlot + staged_row_bytes(args.shape.n_chunks);
  CHECK(needed <= how.shared_bytes);
  // A dependent launch packs blocks where the kernel before ends first: not more than two.
  const auto bytes = static_cast<size_t>(std::max(needed, std::min(kMinShared, how.shared_bytes)));
  const dim3 grid(static_cast<unsigned>(n_blocks));
  if (args.x) {
    launch(project_row_kernel<type, true>, grid, kThreads, bytes, how, args);
  } else {
    launch(project_row_kernel<type, false>, grid, kThreads, bytes, how, args);
  }
}

}  // namespace

void project_row(const ProjectRow& p, const Launch& how) {
  CHECK(project_row_fits(p.n_cols) && (p.x != nullptr) != static_cast<bool>(p.in));
  ProjectRowArgs args{};
  args.x = p.x;
  args.norm = {p.norm, p.eps};
  args.in = p.in;
  args.n_cols = p.n_cols;
  args.weights = weight_parts(p.weights, p.n_weights, 0);
  args.out = p.out;
  args.adds = p.adds;
  with_stripe_type(p.weights[0].type, [&]<Type type>() { run<type>(args, how); });
}

}  // namespace sluice::backend::cuda
