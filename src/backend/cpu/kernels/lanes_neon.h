// Lanes of two NEON vectors of 128 bits: 8 rows at a time. How four bytes are multiplied is said by
// `Dot`, for one of the two; all bytes have signs here, so that no weight needs an offset.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arm_neon.h>

#include "backend/cpu/kernels/lanes.h"

namespace sluice::backend::cpu {

template <typename Dot>
struct LanesNeon {
  static constexpr int kRows = 8;
  static constexpr int kTokens = 4;
  static constexpr float kSignedOffset = 0.0f;

  struct U {  // rows 0..3, rows 4..7
    uint32x4_t a, b;
  };
  struct F {
    float32x4_t a, b;
  };

  SLUICE_INLINE static U from_signed(U w) { return w; }
  SLUICE_INLINE static U dot4(U acc, U w, U q) {
    return {Dot::dot4(acc.a, w.a, q.a), Dot::dot4(acc.b, w.b, q.b)};
  }
  SLUICE_INLINE static U dot4_signed(U acc, U w, U q) { return dot4(acc, w, q); }

  // A field of eight rows, side by side: words, halves as floats, bytes without a sign. Loaded as
  // bytes, because they may lie at any address.
  SLUICE_INLINE static U load_words(const std::byte* p, size_t /*gap*/) {
    return {vreinterpretq_u32_u8(load_16(p)), vreinterpretq_u32_u8(load_16(p + 16))};
  }
  SLUICE_INLINE static F load_halves(const std::byte* p, size_t /*gap*/) {
    const float16x8_t halves = vreinterpretq_f16_u8(load_16(p));
    return {vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
  }
  SLUICE_INLINE static U load_bytes(const std::byte* p, size_t /*gap*/) {
    const uint16x8_t wide = vmovl_u8(vld1_u8(reinterpret_cast<const uint8_t*>(p)));
    return {vmovl_u16(vget_low_u16(wide)), vmovl_high_u16(wide)};
  }

  SLUICE_INLINE static U splat(uint32_t x) { return {vdupq_n_u32(x), vdupq_n_u32(x)}; }
  SLUICE_INLINE static F splat(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
  SLUICE_INLINE static U splat_word(const int8_t* p) {
    uint32_t word;
    __builtin_memcpy(&word, p, sizeof(word));
    return splat(word);
  }

  SLUICE_INLINE static U bits(U x, uint32_t mask) {
    return {vandq_u32(x.a, vdupq_n_u32(mask)), vandq_u32(x.b, vdupq_n_u32(mask))};
  }
  SLUICE_INLINE static U either(U x, U y) { return {vorrq_u32(x.a, y.a), vorrq_u32(x.b, y.b)}; }
  template <int n>  // to the right, or to the left if negative
  SLUICE_INLINE static U shift(U x) {
    if constexpr (n > 0) return {vshrq_n_u32(x.a, n), vshrq_n_u32(x.b, n)};
    if constexpr (n < 0) return {vshlq_n_u32(x.a, -n), vshlq_n_u32(x.b, -n)};
    return x;
  }
  SLUICE_INLINE static U shift_right_signed_24(U x) {
    return {vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_u32(x.a), 24)),
            vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_u32(x.b), 24))};
  }
  SLUICE_INLINE static U multiply(U x, uint32_t factor) {
    return {vmulq_n_u32(x.a, factor), vmulq_n_u32(x.b, factor)};
  }
  template <typename Table>
  SLUICE_INLINE static U look_up(const Table& table, U nibbles) {
    const uint8x16_t values = load_16(reinterpret_cast<const std::byte*>(&table));
    return {vreinterpretq_u32_u8(vqtbl1q_u8(values, vreinterpretq_u8_u32(nibbles.a))),
            vreinterpretq_u32_u8(vqtbl1q_u8(values, vreinterpretq_u8_u32(nibbles.b)))};
  }

  SLUICE_INLINE static F as_floats(U x) {
    return {vreinterpretq_f32_u32(x.a), vreinterpretq_f32_u32(x.b)};
  }
  SLUICE_INLINE static U as_words(F x) {
    return {vreinterpretq_u32_f32(x.a), vreinterpretq_u32_f32(x.b)};
  }
  SLUICE_INLINE static F to_float(U x) {
    return {vcvtq_f32_s32(vreinterpretq_s32_u32(x.a)), vcvtq_f32_s32(vreinterpretq_s32_u32(x.b))};
  }
  SLUICE_INLINE static F half_to_float(U x) {
    return {vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(x.a))),
            vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(x.b)))};
  }
  SLUICE_INLINE static F e8m0_to_float(U e) { return {power_of_two(e.a), power_of_two(e.b)}; }
  SLUICE_INLINE static F fma(F x, F y, F z) {
    return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b)};
  }
  SLUICE_INLINE static F multiply(F x, F y) { return {vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b)}; }
  SLUICE_INLINE static U add(U x, U y) { return {vaddq_u32(x.a, y.a), vaddq_u32(x.b, y.b)}; }
  SLUICE_INLINE static F add(F x, F y) { return {vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b)}; }
  SLUICE_INLINE static F subtract(F x, F y) { return {vsubq_f32(x.a, y.a), vsubq_f32(x.b, y.b)}; }
  SLUICE_INLINE static F negate(F x) { return {vnegq_f32(x.a), vnegq_f32(x.b)}; }

  SLUICE_INLINE static F load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
  SLUICE_INLINE static U load(const uint32_t* p) { return {vld1q_u32(p), vld1q_u32(p + 4)}; }
  SLUICE_INLINE static void store(F x, float* p) {
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
  }
  SLUICE_INLINE static void store(U x, uint32_t* p) {
    vst1q_u32(p, x.a);
    vst1q_u32(p + 4, x.b);
  }

 private:
  SLUICE_INLINE static uint8x16_t load_16(const std::byte* p) {
    return vld1q_u8(reinterpret_cast<const uint8_t*>(p));
  }

  SLUICE_INLINE static float32x4_t power_of_two(uint32x4_t e) {  // as quant::e8m0_to_f32
    const uint32x4_t normal = vshlq_n_u32(vsubq_u32(e, vdupq_n_u32(1)), 23);
    const uint32x4_t subnormal = vshlq_u32(vdupq_n_u32(0x00200000u), vreinterpretq_s32_u32(e));
    return vreinterpretq_f32_u32(vbslq_u32(vcltq_u32(e, vdupq_n_u32(2)), subnormal, normal));
  }
};

}  // namespace sluice::backend::cpu
