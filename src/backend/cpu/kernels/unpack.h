// From the blocks of a stripe (quant/stripes.h) to bytes and scales, one struct per type: where its
// fields stand, and how its bits become weights, on all rows of the lanes at once. The formulas are
// those of quant/blocks.h.
//
// An Unpack hands what it finds to `out`: out.word(i, w) for the weights of columns 4i .. 4i+3 as
// bytes (plus kOffset), out.scale(i, s) and out.min(i, m) per 32 or per 16 columns, and out.d(x),
// out.dmin(x) where quant::Form has them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cpu/kernels/lanes.h"
#include "quant/blocks.h"
#include "quant/stripes.h"
#include "quant/unpack.h"

namespace sluice::backend::cpu {

using quant::Form;

// A block of a stripe: the fields of eight rows that are no whole words, and those that are. Lanes
// for more than eight rows find those of the next stripe `gap` bytes behind.
struct Source {
  const std::byte* odd;
  const std::byte* words;
  size_t gap;
};

// Which byte of a block's words a field is, from its place in the struct.
template <typename Block>
consteval size_t word_at(size_t offset) {
  return offset - quant::Woven<sizeof(Block)>::kWordsAt;
}

// The bit operations that several types share.
template <typename Lanes>
struct Bits {
  using U = typename Lanes::U;
  using F = typename Lanes::F;

  struct Words {
    U w[4];
    SLUICE_INLINE const U& operator[](int j) const { return w[j]; }
  };

  // The word at byte `at` of a block's words; four of them.
  SLUICE_INLINE static U word(const Source& in, size_t at) {
    return Lanes::load_words(in.words + quant::kStripeRows * at, in.gap);
  }
  SLUICE_INLINE static Words words(const Source& in, size_t at) {
    return {{word(in, at), word(in, at + 4), word(in, at + 8), word(in, at + 12)}};
  }

  SLUICE_INLINE static U low_nibbles(U x) { return Lanes::bits(x, 0x0f0f0f0fu); }
  SLUICE_INLINE static U high_nibbles(U x) {
    return Lanes::bits(Lanes::template shift<4>(x), 0x0f0f0f0fu);
  }
  SLUICE_INLINE static F low_half(U x) { return Lanes::half_to_float(x); }
  SLUICE_INLINE static F high_half(U x) {
    return Lanes::half_to_float(Lanes::template shift<16>(x));
  }

  // Byte i of every lane, without and with its sign.
  template <int i>
  SLUICE_INLINE static F byte(U x) {
    return Lanes::to_float(Lanes::bits(Lanes::template shift<8 * i>(x), 0xffu));
  }
  template <int i>
  SLUICE_INLINE static F signed_byte(U x) {
    return Lanes::to_float(Lanes::shift_right_signed_24(Lanes::template shift<8 * i - 24>(x)));
  }

  // x or y, where y's bits move right by n (left if negative) and only those of the mask count.
  template <int n>
  SLUICE_INLINE static U with_bits(U x, U y, uint32_t mask) {
    return Lanes::either(x, Lanes::bits(Lanes::template shift<n>(y), mask));
  }

  // A block of 32 whose byte i holds element i below and element i + 16 above.
  template <typename Use>
  SLUICE_INLINE static void split_nibbles(const Source& in, size_t at, const Use& use) {
    const Words x = words(in, at);
    unroll<4>([&](auto j) SLUICE_INLINE { use(j, low_nibbles(x[j])); });
    unroll<4>([&](auto j) SLUICE_INLINE { use(Index<j + 4>{}, high_nibbles(x[j])); });
  }

  // Bits 4i .. 4i+3 of qh as bit 4 of the four bytes: copies of the nibble, shifted by 0, 7, 14 and
  // 21, do not meet, and every byte keeps the one bit that is its own.
  template <int i>
  SLUICE_INLINE static U fifth_bits(U qh) {
    const U nibble = Lanes::bits(Lanes::template shift<4 * i>(qh), 15u);
    return Lanes::bits(Lanes::multiply(nibble, 0x00204081u << 4), 0x10101010u);
  }
};

// A table of 16 weights as bytes without a sign: each plus `offset`, modulo 256.
struct ByteTable {
  uint8_t values[16];

  template <typename Table>
  static constexpr ByteTable of(const Table& table, int offset) {
    ByteTable out = {};
    for (size_t i = 0; i < 16; ++i) out.values[i] = static_cast<uint8_t>(table[i] + offset);
    return out;
  }
};

// Types of 32-blocks: the block `in`, as block b of the chunk.
template <typename Lanes, typename Block>
struct Unpack;

template <typename Lanes>
struct Unpack<Lanes, quant::BlockQ4_0> : Bits<Lanes> {
  using B = Bits<Lanes>;
  static constexpr Form kForm = Form::block;
  static constexpr float kOffset = 8.0f;
  template <typename Out>
  SLUICE_INLINE static void block(const Source& in, int b, Out& out) {
    out.scale(b, Lanes::load_halves(in.odd, in.gap));
    B::split_nibbles(in, word_at<quant::BlockQ4_0>(offsetof(quant::BlockQ4_0, qs)),
                     [&](auto j, auto w) SLUICE_INLINE { out.word(8 * b + j, w); });
  }
};

template <typename Lanes>
struct Unpack<Lanes, quant::BlockQ4_1> : Bits<Lanes> {
  using B = Bits<Lanes>;
  static constexpr Form kForm = Form::block_min;
  static constexpr float kOffset = 0.0f;
  template <typename Out>
  SLUICE_INLINE static void block(const Source& in, int b, Out& out) {
    const auto head = B::word(in, 0);
    out.scale(b, B::low_half(head));
    out.min(b, B::high_half(head));
    B::split_nibbles(in, word_at<quant::BlockQ4_1>(offsetof(quant::BlockQ4_1, qs)),
                     [&](auto j, auto w) SLUICE_INLINE { out.word(8 * b + j, w); });
  }
};

template <typename Lanes>
struct Unpack<Lanes, quant::BlockQ5_0> : Bits<Lanes> {
  using B = Bits<Lanes>;
  static constexpr Form kForm = Form::block;
  static constexpr float kOffset = 16.0f;
  template <typename Out>
  SLUICE_INLINE static void block(const Source& in, int b, Out& out) {
    out.scale(b, Lanes::load_halves(in.odd, in.gap));
    const auto qh = B::word(in, 0);
    B::split_nibbles(in, word_at<quant::BlockQ5_0>(offsetof(quant::BlockQ5_0, qs)),
                     [&](auto j, auto w) SLUICE_INLINE {
                       out.word(8 * b + j, Lanes::either(w, B::template fifth_bits<j>(qh)));
                     });
  }
};

template <typename Lanes>
struct Unpack<Lanes, quant::BlockQ5_1> : Bits<Lanes> {
  using B = Bits<Lanes>;
  static constexpr Form kForm = Form::block_min;
  static constexpr float kOffset = 0.0f;
  template <typename Out>
  SLUICE_INLINE static void block(const Source& in, int b, Out& out) {
    const auto head = B::word(in, 0);
    out.scale(b, B::low_half(head));
    out.min(b, B::high_half(head));
    const auto qh = B::word(in, offsetof(quant::BlockQ5_1, qh));
    B::split_nibbles(in, word_at<quant::BlockQ5_1>(offsetof(quant::BlockQ5_1, qs)),
                     [&](auto j, auto w) SLUICE_INLINE {
                       out.word(8 * b + j, Lanes::either(w, B::template fifth_bits<j>(qh)));
                     });
  }
};

template <typename Lanes>
struct Unpack<Lanes, quant::BlockQ8_0> : Bits<Lanes> {
  using B = Bits<Lanes>;
  static constexpr Form kForm = Form::block;
  static constexpr bool kSigned = true;
  static constexpr float kOffset = Lanes::kSignedOffset;
  template <typename Out>
  SLUICE_INLINE static void block(const Source& in, int b, Out& out) {
    out.scale(b, Lanes::load_halves(in.odd, in.gap));
    for (int half = 0; half < 2; ++half) {
      const auto q = B::words(in, 16 * size_t(half));
      unroll<4>([&](auto j)
                    SLUICE_INLINE { out.word(8 * b + 4 * half + j, Lanes::from_signed(q[j])); });
    }
  }
};

template <typename Lanes>
struct Unpack<Lanes, quant::BlockIQ4_NL> : Bits<Lanes> {
  using B = Bits<Lanes>;
  static constexpr Form kForm = Form::block;
  static constexpr bool kSigned = true;
  static constexpr float kOffset = Lanes::kSignedOffset;
  template <typename Out>
  SLUICE_INLINE static void block(const Source& in, int b, Out& out) {
    out.scale(b, Lanes::load_halves(in.odd, in.gap));
    B::split_nibbles(in, word_at<quant::BlockIQ4_NL>(offsetof(quant::BlockIQ4_NL, qs)),
                     [&](auto j, auto w)
                         SLUICE_INLINE { out.word(8 * b + j, Lanes::look_up(kTable, w)); });
  }

 private:
  static constexpr ByteTable kTable = ByteTable::of(quant::kIq4Values, static_cast<int>(kOffset));
};

template <typename Lanes>
struct Unpack<Lanes, quant::BlockMXFP4> : Bits<Lanes> {
  using B = Bits<Lanes>;
  static constexpr Form kForm = Form::block;
  static constexpr float kOffset = 12.0f;
  template <typename Out>
  SLUICE_INLINE static void block(const Source& in, int b, Out& out) {
    out.scale(b, Lanes::e8m0_to_float(Lanes::load_bytes(in.odd, in.gap)));
    B::split_nibbles(in, word_at<quant::BlockMXFP4>(offsetof(quant::BlockMXFP4, qs)),
                     [&](auto j, auto w)
                         SLUICE_INLINE { out.word(8 * b + j, Lanes::look_up(kTable, w)); });
  }

 private:
  static constexpr ByteTable kTable = ByteTable::of(quant::kMxfp4Values, static_cast<int>(kOffset));
};

// The first 16 bytes of Q4_K and Q5_K: d, dmin, and 6-bit scales and minima.
template <typename Lanes, typename Out>
SLUICE_INLINE inline void unpack_affine(const Source& in, Out& out) {
  using B = Bits<Lanes>;
  const auto head = B::words(in, 0);
  out.d(B::low_half(head[0]));
  out.dmin(B::high_half(head[0]));
  const typename Lanes::U scale[2] = {
      Lanes::bits(head[1], 0x3f3f3f3fu),
      B::template with_bits<2>(B::low_nibbles(head[3]), head[1], 0x30303030u)};
  const typename Lanes::U min[2] = {
      Lanes::bits(head[2], 0x3f3f3f3fu),
      B::template with_bits<2>(B::high_nibbles(head[3]), head[2], 0x30303030u)};
  unroll<8>([&](auto b) SLUICE_INLINE {
    out.scale(b, B::template byte<b % 4>(scale[b / 4]));
    out.min(b, B::template byte<b % 4>(min[b / 4]));
  });
}

// 128 bytes: in each 32 of them the low nibbles are one block of 32, the high ones the next.
template <typename Lanes, typename Use>
SLUICE_INLINE inline void paired_nibbles(const Source& in, size_t at, const Use& use) {
  using B = Bits<Lanes>;
  unroll<4>([&](auto pair) SLUICE_INLINE {
    unroll<2>([&](auto half) SLUICE_INLINE {
      const auto x = B::words(in, at + 32 * pair + 16 * half);
      unroll<4>([&](auto j) SLUICE_INLINE {
        use(Index<2 * pair>{}, Index<4 * half + j>{}, B::low_nibbles(x[j]));
        use(Index<2 * pair + 1>{}, Index<4 * half + j>{}, B::high_nibbles(x[j]));
      });
    });
  });
}

template <typename Lanes>
struct Unpack<Lanes, quant::BlockQ4_K> {
  static constexpr Form kForm = Form::super_32_min;
  static constexpr float kOffset = 0.0f;
  template <typename Out>
  SLUICE_INLINE static void super_block(const Source& in, Out& out) {
    unpack_affine<Lanes>(in, out);
    paired_nibbles<Lanes>(in, offsetof(quant::BlockQ4_K, qs),
                          [&](auto b, auto j, auto w) SLUICE_INLINE { out.word(8 * b + j, w); });
  }
};

template <typename Lanes>
struct Unpack<Lanes, quant::BlockQ5_K> {
  using B = Bits<Lanes>;
  static constexpr Form kForm = Form::super_32_min;
  static constexpr float kOffset = 0.0f;
  template <typename Out>
  SLUICE_INLINE static void super_block(const Source& in, Out& out) {
    unpack_affine<Lanes>(in, out);
    constexpr size_t kHigh = offsetof(quant::BlockQ5_K, qh);
    const typename B::Words high[2] = {B::words(in, kHigh), B::words(in, kHigh + 16)};
    // Bit b of a byte of qh is bit 4 of block b.
    paired_nibbles<Lanes>(
        in, offsetof(quant::BlockQ5_K, qs), [&](auto b, auto j, auto w) SLUICE_INLINE {
          out.word(8 * b + j, B::template with_bits<b - 4>(w, high[j / 4][j % 4], 0x10101010u));
        });
  }
};

// 64 bytes: in each 32 of them, bits 2g and 2g+1 of a byte belong to block g of four.
template <typename Lanes, typename Use>
SLUICE_INLINE inline void bit_pairs(const Source& in, size_t at, const Use& use) {
  using B = Bits<Lanes>;
  unroll<2>([&](auto four) SLUICE_INLINE {
    unroll<2>([&](auto half) SLUICE_INLINE {
      const auto x = B::words(in, at + 32 * four + 16 * half);
      unroll<4>([&](auto g) SLUICE_INLINE {
        unroll<4>([&](auto j) SLUICE_INLINE {
          use(Index<4 * four + g>{}, Index<4 * half + j>{},
              Lanes::bits(Lanes::template shift<2 * g>(x[j]), 0x03030303u));
        });
      });
    });
  });
}

template <typename Lanes>
struct Unpack<Lanes, quant::BlockQ2_K> {
  using B = Bits<Lanes>;
  static constexpr Form kForm = Form::super_16_min;
  static constexpr float kOffset = 0.0f;
  template <typename Out>
  SLUICE_INLINE static void super_block(const Source& in, Out& out) {
    const auto scales = B::words(in, 0);
    unroll<16>([&](auto g) SLUICE_INLINE {
      out.scale(g, B::template byte<g % 4>(B::low_nibbles(scales[g / 4])));
      out.min(g, B::template byte<g % 4>(B::high_nibbles(scales[g / 4])));
    });
    bit_pairs<Lanes>(in, offsetof(quant::BlockQ2_K, qs),
                     [&](auto b, auto j, auto w) SLUICE_INLINE { out.word(8 * b + j, w); });
    const auto last = B::word(in, offsetof(quant::BlockQ2_K, d));
    out.d(B::low_half(last));
    out.dmin(B::high_half(last));
  }
};

template <typename Lanes>
struct Unpack<Lanes, quant::BlockQ3_K> {
  using B = Bits<Lanes>;
  static constexpr Form kForm = Form::super_16;
  static constexpr float kOffset = 4.0f;
  template <typename Out>
  SLUICE_INLINE static void super_block(const Source& in, Out& out) {
    // Bit b of a byte of hmask counts 4 in block b.
    const typename B::Words high[2] = {B::words(in, 0), B::words(in, 16)};
    bit_pairs<Lanes>(in, offsetof(quant::BlockQ3_K, qs), [&](auto b, auto j, auto w) SLUICE_INLINE {
      out.word(8 * b + j, B::template with_bits<b - 2>(w, high[j / 4][j % 4], 0x04040404u));
    });
    scales(in, out);
    out.d(Lanes::load_halves(in.odd, in.gap));
  }

 private:
  // 6 bits less 32: nibbles in the first 8 of 12 bytes, upper pairs in the last 4.
  template <typename Out>
  SLUICE_INLINE static void scales(const Source& in, Out& out) {
    constexpr size_t kAt = offsetof(quant::BlockQ3_K, scales);
    const auto low = B::word(in, kAt), high = B::word(in, kAt + 4), upper = B::word(in, kAt + 8);
    const typename Lanes::U s[4] = {
        B::template with_bits<-4>(B::low_nibbles(low), upper, 0x30303030u),
        B::template with_bits<-2>(B::low_nibbles(high), upper, 0x30303030u),
        B::template with_bits<0>(B::high_nibbles(low), upper, 0x30303030u),
        B::template with_bits<2>(B::high_nibbles(high), upper, 0x30303030u)};
    unroll<16>([&](auto g) SLUICE_INLINE {
      out.scale(g, Lanes::subtract(B::template byte<g % 4>(s[g / 4]), Lanes::splat(32.0f)));
    });
  }
};

template <typename Lanes>
struct Unpack<Lanes, quant::BlockQ6_K> {
  using B = Bits<Lanes>;
  static constexpr Form kForm = Form::super_16;
  static constexpr float kOffset = 32.0f;
  template <typename Out>
  SLUICE_INLINE static void super_block(const Source& in, Out& out) {
    unroll<4>([&](auto i) SLUICE_INLINE { quarters<i>(in, out); });
    const auto scales = B::words(in, 192);
    unroll<16>([&](auto g)
                   SLUICE_INLINE { out.scale(g, B::template signed_byte<g % 4>(scales[g / 4])); });
    out.d(Lanes::load_halves(in.odd, in.gap));
  }

 private:
  // 16 columns of four blocks, as quant::kWovenQ6K has put them together: nibbles of the first and
  // the third, of the second and the fourth, and the upper bits of all four.
  template <int i, typename Out>
  SLUICE_INLINE static void quarters(const Source& in, Out& out) {
    const auto even = B::words(in, 48 * i);
    const auto odd = B::words(in, 48 * i + 16);
    const auto high = B::words(in, 48 * i + 32);
    unroll<4>([&](auto j) SLUICE_INLINE {
      constexpr int word = 32 * (i / 2) + 4 * (i % 2) + j;
      constexpr uint32_t kUpper = 0x30303030u;
      out.word(word, B::template with_bits<-4>(B::low_nibbles(even[j]), high[j], kUpper));
      out.word(word + 8, B::template with_bits<-2>(B::low_nibbles(odd[j]), high[j], kUpper));
      out.word(word + 16, B::template with_bits<0>(B::high_nibbles(even[j]), high[j], kUpper));
      out.word(word + 24, B::template with_bits<2>(B::high_nibbles(odd[j]), high[j], kUpper));
    });
  }
};

template <typename Lanes>
struct Unpack<Lanes, quant::BlockIQ4_XS> {
  using B = Bits<Lanes>;
  static constexpr Form kForm = Form::super_32;
  static constexpr bool kSigned = true;
  static constexpr float kOffset = Lanes::kSignedOffset;
  template <typename Out>
  SLUICE_INLINE static void super_block(const Source& in, Out& out) {
    const auto head = B::word(in, 0);  // d, and the scales' upper pairs
    const auto low = B::word(in, offsetof(quant::BlockIQ4_XS, scales_l));
    out.d(B::low_half(head));
    unroll<8>([&](auto b) SLUICE_INLINE {
      const auto nibble = Lanes::bits(Lanes::template shift<4 * b>(low), 0x0fu);
      const auto s = B::template with_bits<16 + 2 * b - 4>(nibble, head, 0x30u);
      out.scale(b, Lanes::subtract(Lanes::to_float(s), Lanes::splat(32.0f)));
      B::split_nibbles(in, offsetof(quant::BlockIQ4_XS, qs) + 16 * b,
                       [&](auto j, auto w)
                           SLUICE_INLINE { out.word(8 * b + j, Lanes::look_up(kTable, w)); });
    });
  }

 private:
  static constexpr ByteTable kTable = ByteTable::of(quant::kIq4Values, static_cast<int>(kOffset));
};

}  // namespace sluice::backend::cpu
