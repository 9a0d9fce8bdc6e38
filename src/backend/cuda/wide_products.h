// Chunk sums of two stripes for many inputs, for the types that prompts mostly have: the same bits
// as dot_pair() (stripe_dot.h) by fewer operations, in a kernel as in g++ (lanes.h).
//
// Products start at the bits of M = 1.5 * 2^23, so that an integer sum s, read as a float, is M + s
// (all |s| < 2^22): no conversion. float(scale * s) = fma(scale, M + s, -scale * M), exactly, since
// |scale * s| < 2^24. Weights that stand higher in their byte have a scale that is smaller by that
// power of two. Scales are made floats once a chunk, for all inputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/stage_rows.h"

namespace sluice::backend::cuda {

constexpr float kProductStart = 12582912.0f;  // M
constexpr int32_t kProductStartBits = 0x4b400000;

// Rows of floats that a type makes of a chunk's scales, and what it makes of products. A lane has a
// fourth of a row's scales to prepare. kIs: whether there is such a way for the type.
template <Type type>
struct WideScales {
  static constexpr bool kIs = false;
};

constexpr int kWideScales = 20;                   // floats of a row; more than any type has
constexpr int kWarpScales = 2 * 8 * kWideScales;  // of a warp's two stripes

// Those of four blocks.
struct HalfScales {
  float s[8];
};

// float(scale * s), of a product s that started at M.
SLUICE_LANE_FN float scaled_product(float scale, int32_t product) {
  return fma_rn(scale, as_float(static_cast<uint32_t>(product)), mul_rn(scale, -kProductStart));
}
SLUICE_LANE_FN float product_value(int32_t product) {
  return sub_rn(as_float(static_cast<uint32_t>(product)), kProductStart);
}

// Q4_K and Q5_K: [8] scales, [8] minima, d, dmin.
template <Type type>
struct AffineScales {
  static constexpr bool kIs = true;
  SLUICE_LANE_FN static void prepare(const uint8_t* chunk, int row, int i, float* out) {
    const uint32_t head = word(chunk, 0, row), s0 = word(chunk, 1, row), s1 = word(chunk, 2, row),
                   s2 = word(chunk, 3, row);
    const uint32_t scale = i < 2 ? s0 & 0x3f3f3f3fu : (s2 & 0x0f0f0f0fu) | (s0 >> 2 & 0x30303030u);
    const uint32_t min =
        i < 2 ? s1 & 0x3f3f3f3fu : (s2 >> 4 & 0x0f0f0f0fu) | (s1 >> 2 & 0x30303030u);
    SLUICE_UNROLL for (int k = 0; k < 2; ++k) {
      const int byte = i % 2 * 2 + k;
      const float s = to_float(byte_of(scale, byte));
      out[2 * i + k] = type == Type::q4_k && k == 1 ? mul_rn(s, 0.0625f) : s;
      out[8 + 2 * i + k] = to_float(byte_of(min, byte));
    }
    if (i == 0) out[16] = half_bits(head & 0xffffu), out[17] = half_bits(head >> 16);
  }
  // As Stripe::unpack(), of four blocks.
  SLUICE_LANE_FN static void unpack_half(const uint8_t* chunk, int half, int lane,
                                         WeightBytes& out) {
    const int i = lane % 4, row = lane / 4;
    SLUICE_UNROLL for (int k = 0; k < 2; ++k) {
      const uint32_t top = type == Type::q5_k ? word(chunk, 4 + 4 * k + i, row) >> 4 * half : 0;
      SLUICE_UNROLL for (int p = 0; p < 2; ++p) {
        uint32_t* const a = out.a + 4 * p + 2 * k;
        const int at = 8 * (2 * half + p) + 4 * k + i;
        if constexpr (type == Type::q4_k) {
          const uint32_t w = word(chunk, 4 + at, row);
          a[0] = w & 0x0f0f0f0fu;
          a[1] = w & 0xf0f0f0f0u;  // 16 times the weights
        } else {
          const uint32_t w = word(chunk, 12 + at, row);
          a[0] = (w & 0x0f0f0f0fu) | (top >> 2 * p << 4 & 0x10101010u);
          a[1] = (w >> 4 & 0x0f0f0f0fu) | (top >> 2 * p << 3 & 0x10101010u);
        }
      }
    }
  }
  SLUICE_LANE_FN static HalfScales load(const float* row, int half) {
    HalfScales out;
    StagedLoad::four(row + 4 * half, out.s);
    StagedLoad::four(row + 8 + 4 * half, out.s + 4);
    return out;
  }
  SLUICE_LANE_FN static float add(float P, const HalfScales& scales, int b, int32_t sum, int32_t,
                                  float d) {
    return fma_rn(d, scaled_product(scales.s[b], sum), P);
  }
  SLUICE_LANE_FN static float add_min(float N, const HalfScales& scales, int b, float y) {
    return fma_rn(scales.s[4 + b], y, N);
  }
  SLUICE_LANE_FN static float end(const float* scales, float P, float N) {
    return fma_rn(scales[16], P, -mul_rn(scales[17], N));
  }
};
template <>
struct WideScales<Type::q4_k> : AffineScales<Type::q4_k> {};
template <>
struct WideScales<Type::q5_k> : AffineScales<Type::q5_k> {};

// [16] scales of groups, d. Weights are four times as large.
template <>
struct WideScales<Type::q6_k> {
  static constexpr bool kIs = true;
  SLUICE_LANE_FN static void prepare(const uint8_t* chunk, int row, int i, float* out) {
    const GroupScales all = Stripe<Type::q6_k>::scales(chunk, row);
    const uint32_t four = i == 0 ? all.s[0] : i == 1 ? all.s[1] : i == 2 ? all.s[2] : all.s[3];
    SLUICE_UNROLL for (int k = 0; k < 4; ++k) {
      out[4 * i + k] = mul_rn(to_float(static_cast<int8_t>(byte_of(four, k))), 0.25f);
    }
    if (i == 0) out[16] = half_bits(load_16(chunk + 2 * row));
  }
  SLUICE_LANE_FN static void unpack_half(const uint8_t* chunk, int half, int lane,
                                         WeightBytes& out) {
    const uint8_t* const w = Stripe<Type::q6_k>::words(chunk);
    const int i = lane % 4, row = lane / 4;
    SLUICE_UNROLL for (int group = 0; group < 2; ++group) {
      const int at = 12 * (2 * half + group) + i;
      const uint32_t x = word(w, at, row), y = word(w, at + 4, row), z = word(w, at + 8, row);
      Stripe<Type::q6_k>::unpack_words(x, y, z, out.a + group);
    }
  }
  SLUICE_LANE_FN static HalfScales load(const float* row, int half) {
    HalfScales out;
    StagedLoad::four(row + 8 * half, out.s);
    StagedLoad::four(row + 8 * half + 4, out.s + 4);
    return out;
  }
  SLUICE_LANE_FN static float add(float P, const HalfScales& scales, int b, int32_t first,
                                  int32_t second, float d) {
    const float one = scaled_product(scales.s[2 * b], first);
    return fma_rn(d, fma_rn(scales.s[2 * b + 1], product_value(second), one), P);
  }
  SLUICE_LANE_FN static float add_min(float N, const HalfScales&, int, float) { return N; }
  SLUICE_LANE_FN static float end(const float* scales, float P, float) {
    return mul_rn(scales[16], P);
  }
};

// What products start with; on a GPU four registers that the compiler does not know.
struct ProductStart {
  int32_t c[4];
};

#if defined(__CUDACC__)

SLUICE_LANE_FN ProductStart product_start() {
  ProductStart s;
  SLUICE_UNROLL for (int32_t& c : s.c) {
    c = kProductStartBits;
    asm volatile("" : "+r"(c));
  }
  return s;
}

// As multiply_pair() (tensor_core.h), from `start` on.
template <int by, bool is_signed>
__device__ __forceinline__ void products_of(PerLane<PairProducts<by>>& out, int b,
                                            const PerLane<WeightBytes>& first,
                                            const PerLane<WeightBytes>& second,
                                            const PerLane<ColumnBytes>& in,
                                            const ProductStart& start) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  multiply_pair<by, is_signed>(out, b, first, second, in);
  for (auto& c : out.value.c) {
    SLUICE_UNROLL for (int v = 0; v < 4; ++v) c[v] += start.c[v];
  }
#else
  const uint32_t* const w[2] = {first.value.a, second.value.a};
  if constexpr (by == 32) {
    const int at = b / 2 * 4 + b % 2;
    int32_t(&c)[4] = out.value.c[0];
    if constexpr (is_signed) {
      asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
          "{%10,%11,%12,%13};"
          : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
          : "r"(w[0][at]), "r"(w[1][at]), "r"(w[0][at + 2]), "r"(w[1][at + 2]),
            "r"(in.value.b[2 * b]), "r"(in.value.b[2 * b + 1]), "r"(start.c[0]), "r"(start.c[1]),
            "r"(start.c[2]), "r"(start.c[3]));
    } else {
      asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
          "{%10,%11,%12,%13};"
          : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
          : "r"(w[0][at]), "r"(w[1][at]), "r"(w[0][at + 2]), "r"(w[1][at + 2]),
            "r"(in.value.b[2 * b]), "r"(in.value.b[2 * b + 1]), "r"(start.c[0]), "r"(start.c[1]),
            "r"(start.c[2]), "r"(start.c[3]));
    }
  } else {
    static_assert(is_signed);
    SLUICE_UNROLL for (int k = 0; k < 2; ++k) {
      int32_t(&c)[4] = out.value.c[k];
      asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
          "{%7,%8,%9,%10};"
          : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
          : "r"(w[0][2 * b + k]), "r"(w[1][2 * b + k]), "r"(in.value.b[2 * b + k]), "r"(start.c[0]),
            "r"(start.c[1]), "r"(start.c[2]), "r"(start.c[3]));
    }
  }
#endif
}

// The first n_bytes of a chunk of inputs `base` .. base + 7, of which those behind `last` are the
// last again; rows in shared memory, `stride` apart, 16-aligned.
template <int n_bytes = kChunk>
SLUICE_LANE_FN void load_columns(const uint8_t* inputs, int stride, int base, int last,
                                 PerLane<ColumnBytes>& in) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const uint8_t* const row = inputs + min(base + lane % 8, last) * stride + 16 * (lane / 8);
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  SLUICE_UNROLL for (int j = 0; j < n_bytes / 64; ++j) {
    uint32_t* const b = in.value.b + 4 * j;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(at + 64 * j)
                 : "memory");
  }
}

#else

inline ProductStart product_start() {
  return {{kProductStartBits, kProductStartBits, kProductStartBits, kProductStartBits}};
}

template <int by, bool is_signed>
void products_of(PerLane<PairProducts<by>>& out, int b, const PerLane<WeightBytes>& first,
                 const PerLane<WeightBytes>& second, const PerLane<ColumnBytes>& in,
                 const ProductStart& start) {
  multiply_pair<by, is_signed>(out, b, first, second, in);
  EACH_LANE(lane) {
    for (auto& c : out[lane].c) {
      for (int v = 0; v < 4; ++v) c[v] += start.c[v];
    }
  }
}

template <int n_bytes = kChunk>
void load_columns(const uint8_t* inputs, int stride, int base, int last, PerLane<ColumnBytes>& in) {
  EACH_LANE(lane) {
    const int k = base + lane / 4 < last ? base + lane / 4 : last;
    for (int w = 0; w < n_bytes / 16; ++w) {
      std::memcpy(in[lane].b + w, inputs + k * stride + 16 * w + 4 * (lane % 4), 4);
    }
  }
}

#endif

}  // namespace sluice::backend::cuda
