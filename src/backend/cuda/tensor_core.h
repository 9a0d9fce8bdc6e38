// Products of int8 matrices by tensor cores, as stripe_dot.h uses them: 8 weight rows of one block
// in the upper half of a 16-row matrix, 8 of another in its lower half, and 8 columns of inputs, of
// which the even ones belong to the upper half and the odd ones to the lower. So of the four sums a
// lane gets, [0] and [3] mean something. (row = lane / 4, column pair = lane % 4.)
// From sm_80 on one instruction; on sm_75 the same from m8n8k16; in g++ by the definition.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/lanes.h"

namespace sluice::backend::cuda {

// A chunk's weights of a lane, one byte each. By 32: [4p + h] are bytes 4i .. 4i+3 (i = lane % 4)
// of block 2p + h, [4p + 2 + h] bytes 16 + 4i on. By 16: [2b + h] bytes 16h + 4i on of block b.
struct WeightBytes {
  uint32_t a[16];
};

// Sums of two stripes' rows for a block: row (lane / 4) of the first for inputs 2 i and 2 i + 1 (i
// = lane % 4), then the same of the second; of the whole block, or of its groups of 16.
template <int by>
struct PairProducts {
  int32_t c[32 / by][4];
};

// Inputs of a lane's column, lane / 4: [2b + k] are bytes 16k + 4i on of block b.
struct ColumnBytes {
  uint32_t b[16];
};

// A chunk's inputs of a lane, whose column is lane / 4 and h = column % 2. By 32: [2p + k] are
// bytes 16k + 4i on of block 2p + h. By 16: [b] are bytes 16h + 4i on of block b.
struct InputBytes {
  uint32_t b[8];
};

// n products of two halves.
template <int n>
struct Products {
  int32_t c[n][4];
};

#if defined(__CUDACC__)

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800

template <bool is_signed>
__device__ __forceinline__ void mma_8x8x16(int32_t* c, uint32_t a, uint32_t b) {
  if constexpr (is_signed) {
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+r"(c[0]), "+r"(c[1])
        : "r"(a), "r"(b));
  } else {
    asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+r"(c[0]), "+r"(c[1])
        : "r"(a), "r"(b));
  }
}

template <bool is_signed>
__device__ __forceinline__ void mma_32(int32_t (&c)[4], const uint32_t* a, const uint32_t* b) {
  mma_8x8x16<is_signed>(c, a[0], b[0]);
  mma_8x8x16<is_signed>(c, a[2], b[1]);
  mma_8x8x16<is_signed>(c + 2, a[1], b[0]);
  mma_8x8x16<is_signed>(c + 2, a[3], b[1]);
}

template <bool is_signed>
__device__ __forceinline__ void mma_16(int32_t (&c)[4], const uint32_t* a, uint32_t b) {
  mma_8x8x16<is_signed>(c, a[0], b);
  mma_8x8x16<is_signed>(c + 2, a[1], b);
}

#else

template <bool is_signed>
__device__ __forceinline__ void mma_32(int32_t (&c)[4], const uint32_t* a, const uint32_t* b) {
  if constexpr (is_signed) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

template <bool is_signed>
__device__ __forceinline__ void mma_16(int32_t (&c)[4], const uint32_t* a, uint32_t b) {
  if constexpr (is_signed) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
  }
}

#endif

// sums += a chunk's weights times inputs. by: 32 or 16.
template <int by, bool is_signed>
__device__ __forceinline__ void multiply(PerLane<Products<by == 32 ? 4 : 8>>& sums,
                                         const PerLane<WeightBytes>& w,
                                         const PerLane<InputBytes>& in) {
  if constexpr (by == 32) {
    SLUICE_UNROLL for (int p = 0; p < 4; ++p) {
      mma_32<is_signed>(sums.value.c[p], w.value.a + 4 * p, in.value.b + 2 * p);
    }
  } else {
    SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
      mma_16<is_signed>(sums.value.c[b], w.value.a + 2 * b, in.value.b[b]);
    }
  }
}

// sums += block b of two stripes' weights times eight inputs, whose columns are all used: rows of
// the first stripe stand in the upper half of the product, those of the second in the lower.
template <int by, bool is_signed>
__device__ __forceinline__ void add_pair(PerLane<PairProducts<by>>& sums, int b,
                                         const PerLane<WeightBytes>& first,
                                         const PerLane<WeightBytes>& second,
                                         const PerLane<ColumnBytes>& in) {
  if constexpr (by == 32) {
    const int at = b / 2 * 4 + b % 2;
    const uint32_t a[4] = {first.value.a[at], second.value.a[at], first.value.a[at + 2],
                           second.value.a[at + 2]};
    mma_32<is_signed>(sums.value.c[0], a, in.value.b + 2 * b);
  } else {
    SLUICE_UNROLL for (int k = 0; k < 2; ++k) {
      const uint32_t a[2] = {first.value.a[2 * b + k], second.value.a[2 * b + k]};
      mma_16<is_signed>(sums.value.c[k], a, in.value.b[2 * b + k]);
    }
  }
}

#else

template <bool is_signed>
int32_t dot_bytes(uint32_t w, uint32_t q) {
  int32_t sum = 0;
  for (int k = 0; k < 32; k += 8) {
    const auto byte = static_cast<uint8_t>(w >> k);
    sum += (is_signed ? static_cast<int8_t>(byte) : int32_t{byte}) * static_cast<int8_t>(q >> k);
  }
  return sum;
}

template <int by, bool is_signed>
void multiply(PerLane<Products<by == 32 ? 4 : 8>>& sums, const PerLane<WeightBytes>& w,
              const PerLane<InputBytes>& in) {
  constexpr int kProducts = by == 32 ? 4 : 8, kWords = by == 32 ? 2 : 1;
  EACH_LANE(lane) {
    for (int p = 0; p < kProducts; ++p) {
      for (int half = 0; half < 2; ++half) {
        const int column = lane % 4 * 2 + half;
        for (int i = 0; i < 4; ++i) {
          for (int k = 0; k < kWords; ++k) {
            sums[lane].c[p][3 * half] +=
                dot_bytes<is_signed>(w[lane / 4 * 4 + i].a[2 * kWords * p + 2 * k + half],
                                     in[column * 4 + i].b[kWords * p + k]);
          }
        }
      }
    }
  }
}

template <int by, bool is_signed>
void add_pair(PerLane<PairProducts<by>>& sums, int b, const PerLane<WeightBytes>& first,
              const PerLane<WeightBytes>& second, const PerLane<ColumnBytes>& in) {
  EACH_LANE(lane) {
    for (int v = 0; v < 4; ++v) {
      const PerLane<WeightBytes>& w = v < 2 ? first : second;
      const int column = lane % 4 * 2 + v % 2;
      for (int i = 0; i < 4; ++i) {
        for (int half = 0; half < 2; ++half) {
          const int at = by == 32 ? b / 2 * 4 + b % 2 + 2 * half : 2 * b + half;
          sums[lane].c[by == 32 ? 0 : half][v] +=
              dot_bytes<is_signed>(w[lane / 4 * 4 + i].a[at], in[column * 4 + i].b[2 * b + half]);
        }
      }
    }
  }
}

#endif

// sums = the same.
template <int by, bool is_signed>
SLUICE_LANE_FN void multiply_pair(PerLane<PairProducts<by>>& sums, int b,
                                  const PerLane<WeightBytes>& first,
                                  const PerLane<WeightBytes>& second,
                                  const PerLane<ColumnBytes>& in) {
  EACH_LANE(lane) { SLUICE_UNROLL for (auto& c : sums[lane].c) c[0] = c[1] = c[2] = c[3] = 0; }
  add_pair<by, is_signed>(sums, b, first, second, in);
}

}  // namespace sluice::backend::cuda
