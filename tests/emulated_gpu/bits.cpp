// Bits and bytes: logic, shifts, fields, sums of bytes, moves. See handlers.h.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "emulated_gpu/lanewise.h"

namespace sluice::emulated_gpu {
namespace {

struct Xor {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <typename T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
template <typename T>
void shift(Warp& w, const Instruction& i, Mask lanes) {  // imm 1: to the right
  const Source<T> a(w, w.operand(i, 1));
  const uint32_t* const b = w.words(w.operand(i, 2));
  using Bits = typename Source<T>::Bits;
  Bits* const to = const_cast<Bits*>(Source<T>(w, w.operand(i, 0)).from);
  constexpr unsigned kBits = 8 * sizeof(T);
  const bool right = i.imm != 0;
  each(lanes, [&](int l) {
    const unsigned n = b[l];
    T out;
    if (right) {
      out = n >= kBits ? (std::is_signed_v<T> && a[l] < 0 ? static_cast<T>(-1) : T{0})
                       : static_cast<T>(a[l] >> n);
    } else {
      out = n >= kBits ? T{0} : static_cast<T>(static_cast<Unsigned<T>>(a[l]) << n);
    }
    to[l] = static_cast<Bits>(bits_of_value(out));
  });
}
template <int how>  // 0 and, 1 or, 2 xor, 3 not, 4 mov
void predicates(Warp& w, const Instruction& i, Mask lanes) {
  const auto of = [&](int k) -> Mask {
    const Operand& o = w.operand(i, k);
    if (o.bank == Bank::predicate) return w.predicate_of(o);
    Mask out = 0;
    each(kAllLanes, [&](int l) { out |= static_cast<Mask>(w.words(o)[l] != 0) << l; });
    return out;
  };
  const Mask a = of(1);
  const Mask b = how < 3 ? of(2) : 0;
  put_predicate(w, w.operand(i, 0), lanes,
                how == 0   ? a & b
                : how == 1 ? a | b
                : how == 2 ? a ^ b
                : how == 3 ? ~a
                           : a);
}

void move_word(Warp& w, const Instruction& i, Mask lanes) {
  const uint32_t* const from = w.words(w.operand(i, 1));
  uint32_t* const to = w.words(w.operand(i, 0));
  each(lanes, [&](int l) { to[l] = from[l]; });
}

// {lo, hi} = 64 bits, or two of 16 bits = 32; and back. imm 1: parts are results; 2: sources.
void move(Warp& w, const Instruction& i, Mask lanes) {
  const int n = i.n_values;
  if (i.imm == 0) {
    const Operand &to = w.operand(i, 0), &from = w.operand(i, 1);
    if (to.bank == Bank::wide && from.bank == Bank::wide) {
      const uint64_t* const a = w.wides(from);
      uint64_t* const out = w.wides(to);
      return each(lanes, [&](int l) { out[l] = a[l]; });
    }
    if (to.bank == Bank::word && from.bank == Bank::word) return move_word(w, i, lanes);
    each(lanes, [&](int l) { put(w, to, l, Lanes<uint64_t>(w, from)[l]); });
    return;
  }
  const Operand& whole = w.operand(i, i.imm == 1 ? n : 0);
  const int bits = (whole.bank == Bank::wide ? 64 : 32) / n;
  const uint64_t mask = bits == 32 ? 0xffffffffu : (uint64_t{1} << bits) - 1;
  each(lanes, [&](int l) {
    if (i.imm == 1) {
      const uint64_t value = Lanes<uint64_t>(w, whole)[l];
      for (int k = 0; k < n; ++k) put(w, w.operand(i, k), l, value >> bits * k & mask);
    } else {
      uint64_t value = 0;
      for (int k = 0; k < n; ++k) {
        value |= (Lanes<uint64_t>(w, w.operand(i, 1 + k))[l] & mask) << bits * k;
      }
      put(w, whole, l, value);
    }
  });
}

void read_clock(Warp& w, const Instruction& i, Mask lanes) {
  const auto ns = std::chrono::steady_clock::now().time_since_epoch().count();
  each(lanes, [&](int l) { put(w, w.operand(i, 0), l, static_cast<uint64_t>(ns)); });
}

void permute(Warp& w, const Instruction& i, Mask lanes) {
  const uint32_t *const a = w.words(w.operand(i, 1)), *const b = w.words(w.operand(i, 2)),
                        *const c = w.words(w.operand(i, 3));
  uint32_t* const to = w.words(w.operand(i, 0));
  each(lanes, [&](int l) {
    const uint64_t both = static_cast<uint64_t>(b[l]) << 32 | a[l];
    uint32_t out = 0;
    for (int k = 0; k < 4; ++k) {
      const uint32_t s = c[l] >> 4 * k & 15;
      uint32_t byte = static_cast<uint32_t>(both >> 8 * (s & 7) & 255);
      if (s & 8) byte = byte & 128 ? 255 : 0;
      out |= byte << 8 * k;
    }
    to[l] = out;
  });
}

void dp4a(Warp& w, const Instruction& i, Mask lanes) {  // imm: bit 0 a signed, bit 1 b signed
  const uint32_t *const a = w.words(w.operand(i, 1)), *const b = w.words(w.operand(i, 2)),
                        *const c = w.words(w.operand(i, 3));
  uint32_t* const to = w.words(w.operand(i, 0));
  each(lanes, [&](int l) {
    uint32_t sum = c[l];
    for (int k = 0; k < 32; k += 8) {
      const int x = i.imm & 1 ? static_cast<int8_t>(a[l] >> k) : static_cast<uint8_t>(a[l] >> k);
      const int y = i.imm & 2 ? static_cast<int8_t>(b[l] >> k) : static_cast<uint8_t>(b[l] >> k);
      sum += static_cast<uint32_t>(x * y);
    }
    to[l] = sum;
  });
}

void dp2a(Warp& w, const Instruction& i, Mask lanes) {  // imm 4: the upper bytes of b
  const uint32_t *const a = w.words(w.operand(i, 1)), *const b = w.words(w.operand(i, 2)),
                        *const c = w.words(w.operand(i, 3));
  uint32_t* const to = w.words(w.operand(i, 0));
  each(lanes, [&](int l) {
    uint32_t sum = c[l];
    for (int k = 0; k < 2; ++k) {
      const uint32_t byte = b[l] >> (8 * k + (i.imm & 4 ? 16 : 0)), half = a[l] >> 16 * k;
      const int x = i.imm & 1 ? static_cast<int16_t>(half) : static_cast<uint16_t>(half);
      const int y = i.imm & 2 ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
      sum += static_cast<uint32_t>(x * y);
    }
    to[l] = sum;
  });
}

template <typename T>
void count_ones(Warp& w, const Instruction& i, Mask lanes) {
  const Source<T> a(w, w.operand(i, 1));
  each(lanes,
       [&](int l) { put(w, w.operand(i, 0), l, static_cast<uint32_t>(std::popcount(a[l]))); });
}
template <typename T>
void count_zeros(Warp& w, const Instruction& i, Mask lanes) {
  const Source<T> a(w, w.operand(i, 1));
  each(lanes,
       [&](int l) { put(w, w.operand(i, 0), l, static_cast<uint32_t>(std::countl_zero(a[l]))); });
}
struct Reverse {
  uint32_t operator()(uint32_t a) const {
    uint32_t out = 0;
    for (int k = 0; k < 32; ++k) out |= (a >> k & 1) << (31 - k);
    return out;
  }
};
struct HighestBit {
  uint32_t operator()(uint32_t a) const {
    return a == 0 ? kAllLanes : 31u - static_cast<unsigned>(std::countl_zero(a));
  }
};
struct HighestShift {
  uint32_t operator()(uint32_t a) const {
    return a == 0 ? kAllLanes : static_cast<unsigned>(std::countl_zero(a));
  }
};

template <typename T>
void bit_field_insert(Warp& w, const Instruction& i, Mask lanes) {
  const Source<T> a(w, w.operand(i, 1)), b(w, w.operand(i, 2));
  each(lanes, [&](int l) {
    const uint32_t at = w.words(w.operand(i, 3))[l] & 255, n = w.words(w.operand(i, 4))[l] & 255;
    T out = b[l];
    for (uint32_t k = 0; k < n && at + k < 8 * sizeof(T); ++k) {
      const T bit = T{1} << (at + k);
      out = (a[l] >> k & 1) ? out | bit : out & ~bit;
    }
    put(w, w.operand(i, 0), l, out);
  });
}

template <typename T>
void bit_field_extract(Warp& w, const Instruction& i, Mask lanes) {
  const Source<T> a(w, w.operand(i, 1));
  each(lanes, [&](int l) {
    const uint32_t at = w.words(w.operand(i, 2))[l] & 255, n = w.words(w.operand(i, 3))[l] & 255;
    constexpr uint32_t kBits = 8 * sizeof(T);
    const auto bits = static_cast<uint64_t>(static_cast<Unsigned<T>>(a[l]));
    uint64_t out = at >= kBits ? 0 : bits >> at;
    if (n < 64) out &= (uint64_t{1} << n) - 1;
    if (std::is_signed_v<T> && n > 0) {
      const uint32_t top = std::min(at + n - 1, kBits - 1);
      if ((bits >> top & 1) && n < 64) out |= ~uint64_t{0} << n;
    }
    put(w, w.operand(i, 0), l, static_cast<T>(out));
  });
}

void logic3(Warp& w, const Instruction& i, Mask lanes) {
  const uint32_t *const a = w.words(w.operand(i, 1)), *const b = w.words(w.operand(i, 2)),
                        *const c = w.words(w.operand(i, 3));
  const uint32_t table = w.words(w.operand(i, 4))[0];
  each(lanes, [&](int l) {
    uint32_t out = 0;
    for (unsigned k = 0; k < 8; ++k) {
      if (!(table >> k & 1)) continue;
      out |= (k & 4 ? a[l] : ~a[l]) & (k & 2 ? b[l] : ~b[l]) & (k & 1 ? c[l] : ~c[l]);
    }
    put(w, w.operand(i, 0), l, out);
  });
}

template <bool left, bool wraps>
void funnel(Warp& w, const Instruction& i, Mask lanes) {
  const uint32_t *const a = w.words(w.operand(i, 1)), *const b = w.words(w.operand(i, 2)),
                        *const c = w.words(w.operand(i, 3));
  each(lanes, [&](int l) {
    const uint32_t n = wraps ? c[l] & 31 : std::min(c[l], 32u);
    const uint64_t both = static_cast<uint64_t>(b[l]) << 32 | a[l];
    put(w, w.operand(i, 0), l, static_cast<uint32_t>(left ? both << n >> 32 : both >> n));
  });
}
}  // namespace

namespace {

Handler predicate_handler(std::string_view op) {
  return op == "and"   ? Handler(predicates<0>)
         : op == "or"  ? Handler(predicates<1>)
         : op == "xor" ? Handler(predicates<2>)
         : op == "not" ? Handler(predicates<3>)
         : op == "mov" ? Handler(predicates<4>)
                       : nullptr;
}

}  // namespace

Handler bit_handler(const Name& name, Instruction& i) {
  const std::string_view op = name[0], type = name.back();
  if (type == "pred") return predicate_handler(op);
  const bool is_wide = type == "b64";
  if (op == "mov") {
    if (type == "clock") return read_clock;
    return type == "u32" || type == "f32" || type == "s32" ? move_word : move;
  }
  if (op == "and") return integer_of<And>(type);
  if (op == "or") return integer_of<Or>(type);
  if (op == "xor") return integer_of<Xor>(type);
  if (op == "not") {
    return of_integer(type, [](auto t) -> Handler { return unary<decltype(t), Not>; });
  }
  if (op == "shl" || op == "shr") {
    i.imm = op == "shr";
    return of_integer(type, [](auto t) -> Handler { return shift<decltype(t)>; });
  }
  if (op == "prmt") return permute;
  if (op == "dp4a" || op == "dp2a") {
    i.imm = (name[name.size() - 2] == "s32" ? 1 : 0) | (type == "s32" ? 2 : 0) |
            (name[1] == "hi" ? 4 : 0);
    return op == "dp4a" ? dp4a : dp2a;
  }
  if (op == "popc") return is_wide ? Handler(count_ones<uint64_t>) : count_ones<uint32_t>;
  if (op == "clz") return is_wide ? Handler(count_zeros<uint64_t>) : count_zeros<uint32_t>;
  if (op == "brev") return unary<uint32_t, Reverse>;
  if (op == "bfind" && type == "u32") {
    return name[1] == "shiftamt" ? Handler(unary<uint32_t, HighestShift>)
                                 : unary<uint32_t, HighestBit>;
  }
  if (op == "bfi")
    return is_wide ? Handler(bit_field_insert<uint64_t>) : bit_field_insert<uint32_t>;
  if (op == "bfe") {
    return of_integer(type, [](auto t) -> Handler { return bit_field_extract<decltype(t)>; });
  }
  if (op == "lop3") return logic3;
  if (op == "shf") {
    const bool wraps = name[2] == "wrap";
    if (name[1] == "l") return wraps ? Handler(funnel<true, true>) : funnel<true, false>;
    return wraps ? Handler(funnel<false, true>) : funnel<false, false>;
  }
  return nullptr;
}

}  // namespace sluice::emulated_gpu
