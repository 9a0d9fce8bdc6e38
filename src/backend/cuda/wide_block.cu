// Products of many rows whose sums stand in registers: see wide_gemm.h. The kernel is in
// wide_block.cuh.
//
// Layout   as wide_gemm.cu's.
// Mapping  an item is a tile of up to 64 rows times 128 rows of weights (16 stripes). A warp has
//          two stripes and all of the tile's rows, as many as it needs in steps of eight; of gate
//          and up it has one stripe each, so that SwiGLU needs no exchange. Each SM has two blocks:
//          one computes while the other waits, copies or writes. A block takes every gridDim-th
//          item. All warps copy the next chunk, also of the next item, while they compute one:
//          weights as in weight_ring.cuh, two stripes to a warp, inputs by cp.async.
//          Before sm_90 shared memory has room for one block: a tile of up to 64 rows, of which a
//          warp has half, and four stripes.
// Limits   n_cols % 64 (super-blocks: 256); shared memory for tiles of 48 rows, which sm_75 lacks.
// Cost     see bench/results/gpu_wide.md and docs/decisions/0018.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/wide_block.cuh"

namespace sluice::backend::cuda {
namespace {

using TwoOfAnSm = BlockTile<1, 8, 8, 1, 2, 1, 2>;
using OneOfAnSm = BlockTile<2, 8, 4, 2, 2, 1>;

// use.operator()<type, Tile>(), for the tile of this card.
template <Type type, typename Use>
void with_tile(const Launch& how, const Use& use) {
  if (block_height<type, TwoOfAnSm>(how) > 0) {
    use.template operator()<type, TwoOfAnSm>();
  } else {
    use.template operator()<type, OneOfAnSm>();
  }
}
// The same, for the types that there are kernels for.
template <typename Use>
void with_type(quant::Type type, const Launch& how, const Use& use) {
  switch (type) {
    case Type::q4_k:
      return with_tile<Type::q4_k>(how, use);
    case Type::q5_k:
      return with_tile<Type::q5_k>(how, use);
    case Type::q6_k:
      return with_tile<Type::q6_k>(how, use);
    case Type::q8_0:
      return with_tile<Type::q8_0>(how, use);
    default:
      return;
  }
}

}  // namespace

int wide_block_height(quant::Type type, int64_t n_cols, const Launch& how) {
  int height = 0;
  if (n_cols % 64 != 0) return height;
  with_type(type, how, [&]<Type t, typename Tile>() { height = block_height<t, Tile>(how); });
  return height;
}

int wide_block_rows(const Launch& how) {
  return block_height<Type::q4_k, TwoOfAnSm>(how) > 0 ? 8 : 96;
}

void wide_block(const WideGemm& p, const Launch& how) {
  check_wide_gemm(p);
  CHECK(wide_block_height(p.type, p.n_cols, how) > 0);
  with_type(p.type, how, [&]<Type type, typename Tile>() { run_block<type, Tile>(p, how); });
}

}  // namespace sluice::backend::cuda
