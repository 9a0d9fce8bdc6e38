// Sums of products of numbers of f16 or bf16, two to a word, by a tensor core: 16 rows times 8
// columns, over 16 numbers each. From sm_80 on one instruction; on sm_75 two for f16, and for bf16
// by exchanging lanes; in g++ by the definition (lanes.h). And how a float is a sum of such
// numbers.
//
// A lane is (g = lane / 4, t = lane % 4). Of the rows' numbers it holds 2 t and 2 t + 1 of rows g
// and g + 8, then 2 t + 8 and 2 t + 9 of both; of the columns' 2 t and 2 t + 1, then 2 t + 8 and 2
// t
// + 9, of column g; of the sums columns 2 t and 2 t + 1 of row g, then of row g + 8.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/lanes.h"

namespace sluice::backend::cuda {

struct RowHalves {
  uint32_t a[4];
};
struct ColumnHalves {
  uint32_t b[2];
};
template <int n>
struct FloatSums {
  float c[n][4];
};

template <bool bf16>
SLUICE_LANE_FN float half_of(uint32_t word, int which) {
  if constexpr (bf16) return as_float(which ? word & 0xffff0000u : word << 16);
  return half_bits(which ? word >> 16 : word & 0xffffu);
}

// Two floats as sums of halves, word by word. f16: what is left has 2^-22 of the float or 2^-25, so
// floats must be below 65,504, and 1 or more where they matter. bf16: exact, with three numbers.
template <bool bf16>
struct SplitPair {
  uint32_t high, low, rest;

  SLUICE_LANE_FN SplitPair(float x0, float x1) {
    if constexpr (bf16) {
      high = cut(x0, x1), low = cut(x0, x1), rest = cut(x0, x1);
    } else {
      high = rounded(x0, x1), low = rounded(x0, x1), rest = 0;
    }
  }

 private:
  // The upper halves, which are taken off.
  SLUICE_LANE_FN static uint32_t cut(float& x0, float& x1) {
    const uint32_t out = pick_bytes(bits_of(x0), bits_of(x1), 0x7632u);
    x0 = sub_rn(x0, half_of<true>(out, 0)), x1 = sub_rn(x1, half_of<true>(out, 1));
    return out;
  }
  SLUICE_LANE_FN static uint32_t rounded(float& x0, float& x1) {
    const uint32_t out = to_f16(x0) | static_cast<uint32_t>(to_f16(x1)) << 16;
    x0 = sub_rn(x0, half_of<false>(out, 0)), x1 = sub_rn(x1, half_of<false>(out, 1));
    return out;
  }
};

// sums[i] += rows times columns.
#if defined(__CUDACC__)

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
template <bool bf16, int n>
__device__ __forceinline__ void multiply_halves(PerLane<FloatSums<n>>& sums, int i,
                                                const PerLane<RowHalves>& rows,
                                                const PerLane<ColumnHalves>& columns) {
  float(&c)[4] = sums.value.c[i];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t* const a = rows.value.a + 2 * half;
    const uint32_t b = columns.value.b[half];
    if constexpr (!bf16) {
      asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
          "{%0,%1,%2,%3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a[0]), "r"(a[1]), "r"(b));
    } else {
      const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll 1  // there are many of these
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const uint32_t row = __shfl_sync(kAllLanes, a[j / 2], lane / 4 * 4 + k);
          const uint32_t column = __shfl_sync(kAllLanes, b, 4 * (lane % 4 * 2 + j % 2) + k);
          c[j] = fma_rn(half_of<true>(row, 0), half_of<true>(column, 0), c[j]);
          c[j] = fma_rn(half_of<true>(row, 1), half_of<true>(column, 1), c[j]);
        }
      }
    }
  }
}
#else
template <bool bf16, int n>
__device__ __forceinline__ void multiply_halves(PerLane<FloatSums<n>>& sums, int i,
                                                const PerLane<RowHalves>& rows,
                                                const PerLane<ColumnHalves>& columns) {
  float(&c)[4] = sums.value.c[i];
  const uint32_t(&a)[4] = rows.value.a;
  const uint32_t(&b)[2] = columns.value.b;
  if constexpr (bf16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}
#endif

#else

template <bool bf16, int n>
void multiply_halves(PerLane<FloatSums<n>>& sums, int i, const PerLane<RowHalves>& rows,
                     const PerLane<ColumnHalves>& columns) {
  EACH_LANE(lane) {
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 16; ++k) {
        const uint32_t row = rows[lane / 4 * 4 + k % 8 / 2].a[k / 8 * 2 + j / 2];
        const uint32_t column = columns[4 * (lane % 4 * 2 + j % 2) + k % 8 / 2].b[k / 8];
        sums[lane].c[i][j] =
            fma_rn(half_of<bf16>(row, k % 2), half_of<bf16>(column, k % 2), sums[lane].c[i][j]);
      }
    }
  }
}

#endif

}  // namespace sluice::backend::cuda
