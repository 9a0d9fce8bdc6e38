// Sums, products, quotients, comparisons and choices, each lane for itself. See handlers.h.
// SPDX-License-Identifier: Apache-2.0
#include <cfenv>

#include "emulated_gpu/lanewise.h"

namespace sluice::emulated_gpu {
namespace {

__extension__ typedef __int128 Int128;

// Products of integers wrap, as sums do.
struct Subtract {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(
          static_cast<Unsigned<T>>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b)));
    } else {
      return a - b;
    }
  }
};
struct Multiply {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
struct MultiplyHigh {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>((static_cast<Int128>(a) * static_cast<Int128>(b)) >> (8 * sizeof(T)));
    } else {
      return a;
    }
  }
};
struct MultiplyAdd {
  template <typename T>
  T operator()(T a, T b, T c) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) +
                            static_cast<uint64_t>(c));
    } else {
      return std::fma(a, b, c);
    }
  }
};
// The card gives what it likes for a quotient by zero.
struct Divide {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return static_cast<T>(-1);
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Subtract()(T{0}, a);
    }
    return a / b;
  }
};
struct Remainder {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return b == 0 ? a : T{0};
      return static_cast<T>(a % b);
    } else {
      return a;
    }
  }
};
struct Negate {
  template <typename T>
  T operator()(T a) const {
    if constexpr (std::is_integral_v<T>)
      return Subtract()(T{0}, a);
    else
      return -a;
  }
};
struct Absolute {
  template <typename T>
  T operator()(T a) const {
    if constexpr (std::is_integral_v<T>)
      return a < 0 ? Subtract()(T{0}, a) : a;
    else
      return std::fabs(a);
  }
};
struct SquareRoot {
  float operator()(float a) const { return std::sqrt(a); }
};
struct Reciprocal {
  float operator()(float a) const { return 1.0f / a; }
};
struct PowerOfTwo {
  float operator()(float a) const { return std::exp2(a); }
};
struct LogOfTwo {
  float operator()(float a) const { return std::log2(a); }
};
struct ReciprocalRoot {
  float operator()(float a) const {
    return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a)));
  }
};

template <typename T, int direction>
float rounded(T compute) {
  const int before = std::fegetround();
  std::fesetround(direction);
  volatile float out = compute();
  std::fesetround(before);
  return out;
}
struct MultiplyAddDown {
  float operator()(float a, float b, float c) const {
    volatile float x = a, y = b, z = c;
    const auto compute = [&] { return std::fma(x, y, z); };
    return rounded<decltype(compute), FE_DOWNWARD>(compute);
  }
};
struct AddToZero {
  float operator()(float a, float b) const {
    volatile float x = a, y = b;
    const auto compute = [&]() -> float { return x + y; };
    return rounded<decltype(compute), FE_TOWARDZERO>(compute);
  }
};

// Products of twice the width.
template <typename T, typename Wide, bool adds>
void multiply_wide(Warp& w, const Instruction& i, Mask lanes) {
  const Source<T> a(w, w.operand(i, 1)), b(w, w.operand(i, 2));
  each(lanes, [&](int l) {
    Wide out = static_cast<Wide>(static_cast<Wide>(a[l]) * static_cast<Wide>(b[l]));
    if constexpr (adds) out = Add()(out, Lanes<Wide>(w, w.operand(i, 3))[l]);
    put(w, w.operand(i, 0), l, out);
  });
}

template <typename T>
void select(Warp& w, const Instruction& i, Mask lanes) {
  const Source<T> a(w, w.operand(i, 1)), b(w, w.operand(i, 2));
  const Mask p = w.predicate_of(w.operand(i, 3));
  using Bits = typename Source<T>::Bits;
  Bits* const to = const_cast<Bits*>(Source<T>(w, w.operand(i, 0)).from);
  each(lanes, [&](int l) { to[l] = static_cast<Bits>(bits_of_value(p >> l & 1 ? a[l] : b[l])); });
}

enum Compare { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, lo, ls, hi, hs, num, nan_ };
constexpr std::string_view kCompare[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",
                                         "equ", "neu", "ltu", "leu", "gtu", "geu",
                                         "lo",  "ls",  "hi",  "hs",  "num", "nan"};

template <typename T>
bool compare(int how, T a, T b) {
  bool unordered = false;
  if constexpr (std::is_floating_point_v<T>) unordered = std::isnan(a) || std::isnan(b);
  switch (how) {
    case eq:
      return !unordered && a == b;
    case ne:
      return !unordered && a != b;
    case lt:
    case lo:
      return a < b;
    case le:
    case ls:
      return a <= b;
    case gt:
    case hi:
      return a > b;
    case ge:
    case hs:
      return a >= b;
    case equ:
      return unordered || a == b;
    case neu:
      return unordered || a != b;
    case ltu:
      return unordered || a < b;
    case leu:
      return unordered || a <= b;
    case gtu:
      return unordered || a > b;
    case geu:
      return unordered || a >= b;
    case num:
      return !unordered;
    default:
      return unordered;
  }
}

// imm: how, and 32 x how to join a third predicate (1 and, 2 or, 3 xor).
template <typename T>
void set_predicate(Warp& w, const Instruction& i, Mask lanes) {
  const Source<T> a(w, w.operand(i, 2)), b(w, w.operand(i, 3));
  const int how = static_cast<int>(i.imm % 32), join = static_cast<int>(i.imm / 32);
  Mask out = 0;
  each(lanes, [&](int l) { out |= static_cast<Mask>(compare<T>(how, a[l], b[l])) << l; });
  Mask other = ~out;
  if (join > 0) {
    const Mask c = w.predicate_of(w.operand(i, 4));
    other = join == 1 ? ~out & c : join == 2 ? ~out | c : ~out ^ c;
    out = join == 1 ? out & c : join == 2 ? out | c : out ^ c;
  }
  put_predicate(w, w.operand(i, 0), lanes, out);
  put_predicate(w, w.operand(i, 1), lanes, other);
}

Handler product(const Name& name) {
  const bool adds = name[0] == "mad";
  const std::string_view how = name[1], type = name.back();
  if (how == "wide") {
    if (type == "s32")
      return adds ? multiply_wide<int32_t, int64_t, true> : multiply_wide<int32_t, int64_t, false>;
    if (type == "u32")
      return adds ? multiply_wide<uint32_t, uint64_t, true>
                  : multiply_wide<uint32_t, uint64_t, false>;
    if (type == "s16")
      return adds ? multiply_wide<int16_t, int32_t, true> : multiply_wide<int16_t, int32_t, false>;
    if (type == "u16")
      return adds ? multiply_wide<uint16_t, uint32_t, true>
                  : multiply_wide<uint16_t, uint32_t, false>;
    return nullptr;
  }
  if (how == "hi" && !adds) return integer_of<MultiplyHigh>(type);
  if (how == "lo") {
    if (!adds) return integer_of<Multiply>(type);
    return of_integer(type, [](auto t) -> Handler { return ternary<decltype(t), MultiplyAdd>; });
  }
  if (!adds && type == "f32" && (how == "rn" || how == "f32")) return binary<float, Multiply>;
  return nullptr;
}
}  // namespace

Handler number_handler(const Name& name, Instruction& i) {
  const std::string_view op = name[0], type = name.back();
  const std::string_view how = name.size() > 1 ? name[1] : type;
  const bool is_nearest = how == "rn" || how == "f32";
  if (op == "add" && type == "f32") {
    return how == "rz"  ? Handler(binary<float, AddToZero>)
           : is_nearest ? Handler(binary<float, Add>)
                        : nullptr;
  }
  if (op == "fma") {
    return how == "rn"   ? Handler(ternary<float, MultiplyAdd>)
           : how == "rm" ? Handler(ternary<float, MultiplyAddDown>)
                         : nullptr;
  }
  if (op == "div" && type == "f32") return is_nearest ? Handler(binary<float, Divide>) : nullptr;
  if (op == "sqrt") return is_nearest ? Handler(unary<float, SquareRoot>) : nullptr;
  if (op == "add") return binary_of<Add>(type);
  if (op == "sub") return binary_of<Subtract>(type);
  if (op == "mul" || op == "mad") return product(name);
  if (op == "div") return integer_of<Divide>(type);
  if (op == "rem") return integer_of<Remainder>(type);
  if (op == "min") return binary_of<Least>(type);
  if (op == "max") return binary_of<Most>(type);
  if (op == "neg") return unary_of<Negate>(type);
  if (op == "abs") return unary_of<Absolute>(type);
  if (op == "rcp") return unary<float, Reciprocal>;
  if (op == "ex2") return unary<float, PowerOfTwo>;
  if (op == "lg2") return unary<float, LogOfTwo>;
  if (op == "rsqrt") return unary<float, ReciprocalRoot>;
  if (op == "selp") return of_type(type, [](auto t) -> Handler { return select<decltype(t)>; });
  if (op == "setp") {
    const auto* const found = std::find(std::begin(kCompare), std::end(kCompare), how);
    if (found == std::end(kCompare)) return nullptr;
    i.imm = found - kCompare;
    if (name.size() > 3) i.imm += 32 * (name[2] == "and" ? 1 : name[2] == "or" ? 2 : 3);
    return of_type(type, [](auto t) -> Handler { return set_predicate<decltype(t)>; });
  }
  return nullptr;
}

}  // namespace sluice::emulated_gpu
