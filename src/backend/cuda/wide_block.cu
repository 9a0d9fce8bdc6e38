// Products of many rows whose sums stand in registers: see wide_gemm.h. The kernel is in
// wide_block.cuh.
//
// Layout   as wide_gemm.cu's.
// Mapping  an item is a tile of up to 128 rows times 128 rows of weights (16 stripes). A warp has
//          32 of these and half of the tile's rows, as many as it needs in steps of eight; of gate
//          and up it has two stripes each, so that SwiGLU needs no exchange. A block for each SM
//          takes every gridDim-th item. All warps copy the next chunk, also of the next item, while
//          they compute one: weights as in weight_ring.cuh, two stripes to a warp, inputs by
//          cp.async.
// Limits   n_cols % 64 (super-blocks: 256); shared memory for tiles of 48 rows, which sm_75 lacks.
// Cost     see bench/results/gpu_wide.md and docs/decisions/0018.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/wide_block.cuh"

namespace sluice::backend::cuda {
namespace {

using Tile = BlockTile<2, 8, 4, 2, 2, 1>;

// use.operator()<type>(), for the types that there are kernels for.
template <typename Use>
void with_block_type(quant::Type type, const Use& use) {
  switch (type) {
    case Type::q4_k:
      return use.template operator()<Type::q4_k>();
    case Type::q5_k:
      return use.template operator()<Type::q5_k>();
    case Type::q6_k:
      return use.template operator()<Type::q6_k>();
    case Type::q8_0:
      return use.template operator()<Type::q8_0>();
    default:
      return;
  }
}

}  // namespace

int wide_block_height(quant::Type type, int64_t n_cols, const Launch& how) {
  int height = 0;
  if (n_cols % 64 != 0) return height;
  with_block_type(type, [&]<Type t>() { height = block_height<t, Tile>(how); });
  return height;
}

void wide_block(const WideGemm& p, const Launch& how) {
  check_wide_gemm(p);
  CHECK(wide_block_height(p.type, p.n_cols, how) > 0);
  // The kernels behind must see all of this one's rows: it does not let them begin early.
  with_block_type(p.type, [&]<Type type>() { run_block<type, Tile>(p, how); });
}

}  // namespace sluice::backend::cuda
