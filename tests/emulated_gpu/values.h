// How handlers read and write values of a type: 16 bits and fewer stand in the low bits of a word.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstring>

#include "emulated_gpu/warp.h"

namespace sluice::emulated_gpu {

template <typename T>
struct Lanes {
  static_assert(sizeof(T) <= 8);
  const uint32_t* words = nullptr;
  const uint64_t* wides = nullptr;
  Lanes(Warp& w, const Operand& o) {
    if (o.bank == Bank::wide) {
      wides = w.wides(o);
    } else {
      words = w.words(o);
    }
  }
  T operator[](int lane) const {
    const uint64_t bits = words ? words[lane] : wides[lane];
    T out;
    std::memcpy(&out, &bits, sizeof(T));
    return out;
  }
};

// Of 32 bits and fewer in words, of 64 in wides: the common case, without a choice in the loop.
template <typename T>
struct Source {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  const Bits* from;
  Source(Warp& w, const Operand& o) {
    if constexpr (sizeof(T) == 8) {
      from = w.wides(o);
    } else {
      from = w.words(o);
    }
  }
  T operator[](int lane) const {
    if constexpr (sizeof(T) == sizeof(Bits)) {
      return std::bit_cast<T>(from[lane]);
    } else {
      T out;
      std::memcpy(&out, from + lane, sizeof(T));
      return out;
    }
  }
};

template <typename T>
uint64_t bits_of_value(T value) {
  if constexpr (std::is_floating_point_v<T> && sizeof(T) == 4) {
    return std::bit_cast<uint32_t>(value);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(value);  // signed ones keep their sign above
  } else {
    return std::bit_cast<uint64_t>(value);
  }
}

template <typename T>
void put(Warp& w, const Operand& o, int lane, T value) {
  if (o.bank == Bank::none) return;
  if (o.bank == Bank::wide) {
    w.wides(o)[lane] = bits_of_value(value);
  } else {
    w.words(o)[lane] = static_cast<uint32_t>(bits_of_value(value));
  }
}

inline void put_predicate(Warp& w, const Operand& o, Mask lanes, Mask value) {
  if (o.bank == Bank::none) return;
  Mask& p = w.predicate(o);
  p = (p & ~lanes) | (value & lanes);
}

inline float half_to_float(uint16_t bits) {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}
inline uint16_t float_to_half(float x) { return std::bit_cast<uint16_t>(static_cast<_Float16>(x)); }
inline float bf16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
inline uint16_t float_to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace sluice::emulated_gpu
