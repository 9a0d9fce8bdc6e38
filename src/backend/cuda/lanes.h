// What a kernel body needs of a warp, with two meanings: on a GPU a value of PerLane is a register
// of each thread, and EACH_LANE runs once, for the thread's own lane; compiled by g++ a PerLane is
// 32 values and EACH_LANE a loop over them. So bodies that are written with it run, and are
// checked, where there is no GPU. Every float operation here rounds once (the numeric contract).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#define SLUICE_LANE_FN __device__ __forceinline__
#define SLUICE_UNROLL _Pragma("unroll")
#define SLUICE_UNROLL_4 _Pragma("unroll 4")
#define SLUICE_ROLLED _Pragma("unroll 1")
#define EACH_LANE(lane) if (const int lane = static_cast<int>(threadIdx.x % 32); lane >= 0)
#else
#include <bit>
#include <cmath>

#include "quant/half.h"
#define SLUICE_LANE_FN inline
#define SLUICE_UNROLL
#define SLUICE_UNROLL_4
#define SLUICE_ROLLED
#define EACH_LANE(lane) for (int lane = 0; lane < 32; ++lane)
#endif

namespace sluice::backend::cuda {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

#if defined(__CUDACC__)

template <typename T>
struct PerLane {
  T value;
  SLUICE_LANE_FN T& operator[](int) { return value; }
  SLUICE_LANE_FN const T& operator[](int) const { return value; }
};

SLUICE_LANE_FN float fma_rn(float a, float b, float c) { return __fmaf_rn(a, b, c); }
SLUICE_LANE_FN float mul_rn(float a, float b) { return __fmul_rn(a, b); }
SLUICE_LANE_FN float add_rn(float a, float b) { return __fadd_rn(a, b); }
SLUICE_LANE_FN float sub_rn(float a, float b) { return __fsub_rn(a, b); }
SLUICE_LANE_FN float div_rn(float a, float b) { return __fdiv_rn(a, b); }
SLUICE_LANE_FN float sqrt_rn(float x) { return __fsqrt_rn(x); }
SLUICE_LANE_FN float less_of(float a, float b) { return fminf(a, b); }
SLUICE_LANE_FN float more_of(float a, float b) { return fmaxf(a, b); }
SLUICE_LANE_FN float to_float(int i) { return __int2float_rn(i); }
SLUICE_LANE_FN float to_float(int64_t i) { return __ll2float_rn(i); }
SLUICE_LANE_FN int to_nearest(float x) { return __float2int_rn(x); }  // ties to even
SLUICE_LANE_FN int64_t to_nearest_64(float x) { return __float2ll_rn(x); }
SLUICE_LANE_FN float as_float(uint32_t bits) { return __uint_as_float(bits); }
SLUICE_LANE_FN uint32_t bits_of(float x) { return __float_as_uint(x); }
SLUICE_LANE_FN float half_bits(uint32_t bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

SLUICE_LANE_FN uint16_t to_f16(float x) { return __half_as_ushort(__float2half_rn(x)); }

// Byte k of the result is byte (selector >> 4k & 7) of hi:lo, or that byte's sign eight times where
// bit 3 of the selector is set.
SLUICE_LANE_FN uint32_t pick_bytes(uint32_t lo, uint32_t hi, uint32_t selector) {
  uint32_t out;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(lo), "r"(hi), "r"(selector));
  return out;
}

// The same number, in a register: the compiler would rather make a constant anew for each use, so
// it is made of something that the compiler does not know.
SLUICE_LANE_FN uint32_t kept(uint32_t constant) {
  uint32_t sm;  // below 2^24
  asm("mov.u32 %0, %%smid;" : "=r"(sm));
  return constant + (sm >> 24);
}

// Of four signed bytes.
SLUICE_LANE_FN int sum_of_bytes(uint32_t bytes) {
  return __dp4a(static_cast<int>(bytes), 0x01010101, 0);
}

// Two signed numbers of 16 bits times the first two bytes of four signed ones, or the last two.
SLUICE_LANE_FN int dot_of_two(uint32_t two, uint32_t bytes, bool last) {
  const int a = static_cast<int>(two), b = static_cast<int>(bytes);
  return last ? __dp2a_hi(a, b, 0) : __dp2a_lo(a, b, 0);
}

// Memory that the kernel before wrote: never through L1, which a kernel that began early may have
// filled with what stood there before. And memory that no kernel writes.
SLUICE_LANE_FN float4 load_past_l1(const float* p) {
  return __ldcg(reinterpret_cast<const float4*>(p));
}
template <typename T>
SLUICE_LANE_FN T word_past_l1(const T* p) {
  return __ldcg(p);
}
SLUICE_LANE_FN uint4 load_16_past_l1(const void* p) { return __ldcg(static_cast<const uint4*>(p)); }
template <typename T>
SLUICE_LANE_FN T word_constant(const T* p) {
  return __ldg(p);
}
SLUICE_LANE_FN float4 load_constant(const float* p) {
  return __ldg(reinterpret_cast<const float4*>(p));
}
SLUICE_LANE_FN uint2 load_8_constant(const void* p) { return __ldg(static_cast<const uint2*>(p)); }

// What lanes wrote to shared memory is there for the others.
SLUICE_LANE_FN void sync_lanes() { __syncwarp(); }

// The lanes that say so, bit by bit.
SLUICE_LANE_FN uint32_t lanes_that(const PerLane<bool>& says) {
  return __ballot_sync(kAllLanes, says.value);
}
SLUICE_LANE_FN int count_bits(uint32_t bits) { return __popc(bits); }
SLUICE_LANE_FN int first_bit(uint32_t bits) { return __ffs(static_cast<int>(bits)) - 1; }

// The value of another lane of the warp; of the lane whose number differs in the bits of `mask`.
template <typename T>
SLUICE_LANE_FN T from_lane(const PerLane<T>& values, int lane) {
  return __shfl_sync(kAllLanes, values.value, lane);
}
template <typename T>
SLUICE_LANE_FN T from_other(const PerLane<T>& values, int, int mask) {
  return __shfl_xor_sync(kAllLanes, values.value, mask);
}

#else

template <typename T>
struct PerLane {
  T value[32];
  T& operator[](int lane) { return value[lane]; }
  const T& operator[](int lane) const { return value[lane]; }
};

inline float fma_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float mul_rn(float a, float b) { return a * b; }
inline float add_rn(float a, float b) { return a + b; }
inline float sub_rn(float a, float b) { return a - b; }
inline float div_rn(float a, float b) { return a / b; }
inline float sqrt_rn(float x) { return std::sqrt(x); }
inline float less_of(float a, float b) { return std::fmin(a, b); }
inline float more_of(float a, float b) { return std::fmax(a, b); }
inline float to_float(int i) { return static_cast<float>(i); }
inline float to_float(int64_t i) { return static_cast<float>(i); }
inline int to_nearest(float x) { return static_cast<int>(std::nearbyint(x)); }
inline int64_t to_nearest_64(float x) { return std::llrint(x); }
inline float as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
inline float half_bits(uint32_t bits) { return quant::f16_to_f32(static_cast<uint16_t>(bits)); }

inline uint16_t to_f16(float x) { return quant::f32_to_f16(x); }

inline uint32_t pick_bytes(uint32_t lo, uint32_t hi, uint32_t selector) {
  const uint64_t bytes = static_cast<uint64_t>(hi) << 32 | lo;
  uint32_t out = 0;
  for (unsigned k = 0; k < 4; ++k) {
    const uint32_t one = selector >> 4 * k & 15;
    const auto byte = static_cast<uint32_t>(bytes >> 8 * (one & 7) & 255);
    out |= (one & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * k;
  }
  return out;
}

inline uint32_t kept(uint32_t constant) { return constant; }

inline int sum_of_bytes(uint32_t bytes) {
  int sum = 0;
  for (int k = 0; k < 32; k += 8) sum += static_cast<int8_t>(bytes >> k);
  return sum;
}

inline int dot_of_two(uint32_t two, uint32_t bytes, bool last) {
  const uint32_t b = last ? bytes >> 16 : bytes;
  return static_cast<int16_t>(two) * static_cast<int8_t>(b) +
         static_cast<int16_t>(two >> 16) * static_cast<int8_t>(b >> 8);
}

struct float4 {
  float x, y, z, w;
};
struct uint2 {
  uint32_t x, y;
};
struct uint4 {
  uint32_t x, y, z, w;
};
inline float4 load_past_l1(const float* p) { return {p[0], p[1], p[2], p[3]}; }
template <typename T>
T word_past_l1(const T* p) {
  return *p;
}
inline uint4 load_16_past_l1(const void* p) {
  uint4 four;
  std::memcpy(&four, p, 16);
  return four;
}
template <typename T>
T word_constant(const T* p) {
  return *p;
}
inline float4 load_constant(const float* p) { return load_past_l1(p); }
inline uint2 load_8_constant(const void* p) {
  uint2 two;
  std::memcpy(&two, p, 8);
  return two;
}

inline void sync_lanes() {}

inline uint32_t lanes_that(const PerLane<bool>& says) {
  uint32_t bits = 0;
  for (int lane = 0; lane < 32; ++lane) bits |= uint32_t{says[lane]} << lane;
  return bits;
}
inline int count_bits(uint32_t bits) { return std::popcount(bits); }
inline int first_bit(uint32_t bits) { return std::countr_zero(bits); }

template <typename T>
T from_lane(const PerLane<T>& values, int lane) {
  return values[lane];
}
template <typename T>
T from_other(const PerLane<T>& values, int lane, int mask) {
  return values[lane ^ mask];
}

#endif

// All values of each group of `group` lanes, folded as a tree whose order is the same for every
// lane: all get the same bits, if op(a, b) is op(b, a).
template <int group, typename T, typename Op>
SLUICE_LANE_FN PerLane<T> fold_lanes(PerLane<T> values, const Op& op) {
  SLUICE_UNROLL for (int mask = group / 2; mask > 0; mask >>= 1) {
    const PerLane<T> before = values;
    EACH_LANE(lane) { values[lane] = op(before[lane], from_other(before, lane, mask)); }
  }
  return values;
}

SLUICE_LANE_FN PerLane<float> sum_of_lanes(const PerLane<float>& values) {
  return fold_lanes<kWarp>(values, [](float a, float b) { return add_rn(a, b); });
}

// Of integers the order does not matter, and from sm_80 on there is an instruction.
SLUICE_LANE_FN PerLane<uint32_t> most_of_lanes(const PerLane<uint32_t>& values) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return {__reduce_max_sync(kAllLanes, values.value)};
#else
  return fold_lanes<kWarp>(values, [](uint32_t a, uint32_t b) { return a > b ? a : b; });
#endif
}
SLUICE_LANE_FN PerLane<int> sum_of_lanes(const PerLane<int>& values) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return {__reduce_add_sync(kAllLanes, values.value)};
#else
  return fold_lanes<kWarp>(values, [](int a, int b) { return a + b; });
#endif
}

}  // namespace sluice::backend::cuda
