// Conversions between numbers, by way of the widest of each kind. See handlers.h.
// SPDX-License-Identifier: Apache-2.0
#include "emulated_gpu/lanewise.h"

namespace sluice::emulated_gpu {
namespace {

__extension__ typedef __int128 Int128;

enum class Number : uint8_t { u8, u16, u32, u64, s8, s16, s32, s64, f16, bf16, f32, none };
Number number_of(std::string_view s) {
  constexpr std::string_view kNames[] = {"u8",  "u16", "u32", "u64",  "s8", "s16",
                                         "s32", "s64", "f16", "bf16", "f32"};
  for (size_t k = 0; k < std::size(kNames); ++k) {
    if (s == kNames[k]) return static_cast<Number>(k);
  }
  return Number::none;
}
bool is_float(Number n) { return n >= Number::f16; }
bool is_signed(Number n) { return n >= Number::s8 && n <= Number::s64; }
int bits_in(Number n) {
  return is_float(n) ? (n == Number::f32 ? 32 : 16) : 8 << (static_cast<int>(n) % 4);
}

enum Rounding { nearest, toward_zero, down, up };

Int128 integer_of(uint64_t bits, Number n) {
  const int k = bits_in(n);
  if (is_signed(n)) return static_cast<int64_t>(bits << (64 - k)) >> (64 - k);
  return k == 64 ? bits : bits & ((uint64_t{1} << k) - 1);
}
float float_of(uint64_t bits, Number n) {
  return n == Number::f32   ? std::bit_cast<float>(static_cast<uint32_t>(bits))
         : n == Number::f16 ? half_to_float(static_cast<uint16_t>(bits))
                            : bf16_to_float(static_cast<uint16_t>(bits));
}
uint64_t float_bits(float x, Number n) {
  return n == Number::f32   ? std::bit_cast<uint32_t>(x)
         : n == Number::f16 ? float_to_half(x)
                            : float_to_bf16(x);
}

// imm: to | from << 4 | rounding << 8 | saturates << 12 | of an integer's value << 13.
void convert(Warp& w, const Instruction& i, Mask lanes) {
  const auto to = static_cast<Number>(i.imm & 15), from = static_cast<Number>(i.imm >> 4 & 15);
  const auto rounding = static_cast<Rounding>(i.imm >> 8 & 15);
  const bool saturates = i.imm >> 12 & 1;
  const Lanes<uint64_t> a(w, w.operand(i, 1));
  each(lanes, [&](int l) {
    uint64_t out = 0;
    if (is_float(from)) {
      float x = float_of(a[l], from);
      if (is_float(to)) {
        if (i.imm >> 13 & 1) {
          x = rounding == nearest ? std::nearbyint(x)
              : rounding == down  ? std::floor(x)
              : rounding == up    ? std::ceil(x)
                                  : std::trunc(x);
        }
        if (saturates) x = std::isnan(x) ? 0.0f : std::min(std::max(x, 0.0f), 1.0f);
        out = float_bits(x, to);
      } else {
        const double whole = rounding == nearest ? std::nearbyint(static_cast<double>(x))
                             : rounding == down  ? std::floor(x)
                             : rounding == up    ? std::ceil(x)
                                                 : std::trunc(x);
        const int k = bits_in(to);
        const Int128 least = is_signed(to) ? -(Int128{1} << (k - 1)) : 0;
        const Int128 most = is_signed(to) ? (Int128{1} << (k - 1)) - 1 : (Int128{1} << k) - 1;
        Int128 n = std::isnan(whole) ? (k == 64 ? least : 0)
                   : whole >= 2e19   ? most
                   : whole <= -2e19  ? least
                                     : static_cast<Int128>(whole);
        out = static_cast<uint64_t>(std::min(std::max(n, least), most));
      }
    } else {
      const Int128 n = integer_of(a[l], from);
      if (is_float(to)) {
        out = float_bits(is_signed(from) ? static_cast<float>(static_cast<int64_t>(n))
                                         : static_cast<float>(static_cast<uint64_t>(n)),
                         to);
      } else if (saturates) {
        const int k = bits_in(to);
        const Int128 least = is_signed(to) ? -(Int128{1} << (k - 1)) : 0;
        const Int128 most = is_signed(to) ? (Int128{1} << (k - 1)) - 1 : (Int128{1} << k) - 1;
        out = static_cast<uint64_t>(std::min(std::max(n, least), most));
      } else {  // what is cut off, and the sign of what is left
        out = static_cast<uint64_t>(integer_of(static_cast<uint64_t>(n), to));
      }
    }
    put(w, w.operand(i, 0), l, out);
  });
}

// Two floats to the halves of a word; the first operand is the upper one.
template <bool bf16>
void convert_two(Warp& w, const Instruction& i, Mask lanes) {
  const Source<float> hi(w, w.operand(i, 1)), lo(w, w.operand(i, 2));
  each(lanes, [&](int l) {
    const auto half = [](float x) -> uint32_t {
      return bf16 ? float_to_bf16(x) : float_to_half(x);
    };
    put(w, w.operand(i, 0), l, half(hi[l]) << 16 | half(lo[l]));
  });
}

// The frequent ones, without a choice for each lane.
template <typename To, typename From, To (*of)(From)>
void convert_as(Warp& w, const Instruction& i, Mask lanes) {
  const Source<From> a(w, w.operand(i, 1));
  using Bits = typename Source<To>::Bits;
  Bits* const to = const_cast<Bits*>(Source<To>(w, w.operand(i, 0)).from);
  each(lanes, [&](int l) { to[l] = static_cast<Bits>(bits_of_value(of(a[l]))); });
}
template <typename To, typename From>
To plain(From x) {
  return static_cast<To>(x);
}
int32_t whole_number(float x) {  // of what is in range; else as convert() has it
  if (std::isnan(x)) return 0;
  return x >= 0x1p31f ? INT32_MAX : x < -0x1p31f ? INT32_MIN : static_cast<int32_t>(x);
}
int32_t nearest_number(float x) { return whole_number(std::nearbyint(x)); }

int64_t nearest_long(float x) {
  if (std::isnan(x)) return INT64_MIN;
  return x >= 0x1p63f   ? INT64_MAX
         : x < -0x1p63f ? INT64_MIN
                        : static_cast<int64_t>(std::nearbyint(x));
}

Handler frequent(const Name& name) {
  const std::string_view to = name[name.size() - 2], from = name.back();
  const std::string_view how = name.size() == 4 ? name[1] : name.size() == 3 ? "" : "other";
  if (to == "f32" && from == "s32" && how == "rn") {
    return convert_as<float, int32_t, plain<float, int32_t>>;
  }
  if (to == "s32" && from == "f32" && how == "rni") {
    return convert_as<int32_t, float, nearest_number>;
  }
  if (to == "s32" && from == "f32" && how == "rzi") return convert_as<int32_t, float, whole_number>;
  if (to == "s64" && from == "f32" && how == "rni") return convert_as<int64_t, float, nearest_long>;
  if (to == "f32" && from == "s64" && how == "rn") {
    return convert_as<float, int64_t, plain<float, int64_t>>;
  }
  if (!how.empty()) return nullptr;
  if (to == "s64" && from == "s32") return convert_as<int64_t, int32_t, plain<int64_t, int32_t>>;
  if (to == "u64" && from == "u32")
    return convert_as<uint64_t, uint32_t, plain<uint64_t, uint32_t>>;
  if (to == "u32" && from == "u64")
    return convert_as<uint32_t, uint64_t, plain<uint32_t, uint64_t>>;
  if (to == "s32" && from == "s8") return convert_as<int32_t, int8_t, plain<int32_t, int8_t>>;
  if (to == "s32" && from == "s16") return convert_as<int32_t, int16_t, plain<int32_t, int16_t>>;
  return nullptr;
}

}  // namespace

Handler conversion_handler(const Name& name, Instruction& i) {
  if (name[0] != "cvt") return nullptr;
  if (const Handler found = frequent(name)) return found;
  const std::string_view to = name[name.size() - 2], from = name.back();
  if (to == "f16x2" && from == "f32") return convert_two<false>;
  if (to == "bf16x2" && from == "f32") return convert_two<true>;
  const Number t = number_of(to), f = number_of(from);
  if (t == Number::none || f == Number::none) return nullptr;
  i.imm = static_cast<int>(t) | static_cast<int>(f) << 4;
  for (size_t k = 1; k + 2 < name.size(); ++k) {
    const std::string_view m = name[k];
    if (m == "rn" || m == "rni")
      i.imm |= nearest << 8;
    else if (m == "rz" || m == "rzi")
      i.imm |= toward_zero << 8;
    else if (m == "rm" || m == "rmi")
      i.imm |= down << 8;
    else if (m == "rp" || m == "rpi")
      i.imm |= up << 8;
    else if (m == "sat")
      i.imm |= 1 << 12;
    else if (m != "ftz")
      return nullptr;
    if (m.size() == 3 && m != "sat" && m != "ftz" && is_float(t)) i.imm |= 1 << 13;
  }
  return convert;
}

}  // namespace sluice::emulated_gpu
