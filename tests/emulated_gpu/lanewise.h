// What handlers of lane-by-lane instructions share: a function of one, two or three values for each
// lane, and the choice by a type's name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "emulated_gpu/handlers.h"
#include "emulated_gpu/values.h"

namespace sluice::emulated_gpu {

using Name = std::vector<std::string_view>;

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

// Sums of integers wrap; of floats the least and the most are numbers, where one is none.
struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(
          static_cast<Unsigned<T>>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b)));
    } else {
      return a + b;
    }
  }
};
struct Least {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (a == b) return std::signbit(a) ? a : b;
      return std::fmin(a, b);
    } else {
      return a < b ? a : b;
    }
  }
};
struct Most {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (a == b) return std::signbit(a) ? b : a;
      return std::fmax(a, b);
    } else {
      return a > b ? a : b;
    }
  }
};
struct And {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};

template <typename T, typename F>
void unary(Warp& w, const Instruction& i, Mask lanes) {
  const Source<T> a(w, w.operand(i, 1));
  using Bits = typename Source<T>::Bits;
  Bits* const to = const_cast<Bits*>(Source<T>(w, w.operand(i, 0)).from);
  each(lanes, [&](int l) { to[l] = static_cast<Bits>(bits_of_value(T(F()(a[l])))); });
}

template <typename T, typename F>
void binary(Warp& w, const Instruction& i, Mask lanes) {
  const Source<T> a(w, w.operand(i, 1)), b(w, w.operand(i, 2));
  using Bits = typename Source<T>::Bits;
  Bits* const to = const_cast<Bits*>(Source<T>(w, w.operand(i, 0)).from);
  each(lanes, [&](int l) { to[l] = static_cast<Bits>(bits_of_value(T(F()(a[l], b[l])))); });
}

template <typename T, typename F>
void ternary(Warp& w, const Instruction& i, Mask lanes) {
  const Source<T> a(w, w.operand(i, 1)), b(w, w.operand(i, 2)), c(w, w.operand(i, 3));
  using Bits = typename Source<T>::Bits;
  Bits* const to = const_cast<Bits*>(Source<T>(w, w.operand(i, 0)).from);
  each(lanes, [&](int l) { to[l] = static_cast<Bits>(bits_of_value(T(F()(a[l], b[l], c[l])))); });
}

// A handler by the type that a name ends with.
template <typename F>
Handler of_type(std::string_view type, const F& make) {
  if (type == "u32" || type == "b32") return make(uint32_t{});
  if (type == "s32") return make(int32_t{});
  if (type == "u64" || type == "b64") return make(uint64_t{});
  if (type == "s64") return make(int64_t{});
  if (type == "f32") return make(float{});
  if (type == "u16" || type == "b16") return make(uint16_t{});
  if (type == "s16") return make(int16_t{});
  return nullptr;
}
template <typename F>
Handler of_integer(std::string_view type, const F& make) {
  return type == "f32" ? nullptr : of_type(type, [&](auto t) -> Handler {
    if constexpr (std::is_integral_v<decltype(t)>)
      return make(t);
    else
      return nullptr;
  });
}

template <typename F>
Handler binary_of(std::string_view type) {
  return of_type(type, [](auto t) -> Handler { return binary<decltype(t), F>; });
}
template <typename F>
Handler integer_of(std::string_view type) {
  return of_integer(type, [](auto t) -> Handler { return binary<decltype(t), F>; });
}

template <typename F>
Handler unary_of(std::string_view type) {
  return of_type(type, [](auto t) -> Handler { return unary<decltype(t), F>; });
}

}  // namespace sluice::emulated_gpu
