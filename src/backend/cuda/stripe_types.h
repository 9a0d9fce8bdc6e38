// How each quantised type stands in a chunk of a stripe (quant/stripes.h), for kernels: its weights
// as bytes for tensor cores (tensor_core.h), and the float chain of the numeric contract, part B,
// that ends in the chunk's sum. No CUDA in here; lanes.h says what an operation is. (The kernels of
// few inputs take some types' weights apart in other ways: stripe_sums.h.)
//
// Weights that are signed in the contract are made signed by moving them to the top of their byte
// and flipping the sign bit: that multiplies them by a power of two (kShift), which the integer sum
// loses again by an exact shift.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/tensor_core.h"
#include "quant/type.h"

namespace sluice::backend::cuda {

using quant::Type;

// Scales of an input's chunk: of its eight blocks of 32.
struct InputScales {
  float d[8];
  float y[8];
};

SLUICE_LANE_FN uint32_t load_32(const uint8_t* p) { return *reinterpret_cast<const uint32_t*>(p); }
SLUICE_LANE_FN uint32_t load_16(const uint8_t* p) { return *reinterpret_cast<const uint16_t*>(p); }

// Word i of all rows stands in 32 bytes.
SLUICE_LANE_FN uint32_t word(const uint8_t* words, int i, int row) {
  return load_32(words + 32 * i + 4 * row);
}

// Bits 0..3 of x as bit `to` of four bytes, whose other bits mean nothing.
template <int to>
SLUICE_LANE_FN uint32_t spread_bits(uint32_t x) {
  return (x & 15u) * (0x00204081u << to);
}

// Eight nibbles by a table of 16 bytes: plus[n & 7] where bit 3 is clear, -minus[n & 7] where it is
// set; all entries 0..127. out: low nibbles, then high ones.
struct NibbleTable {
  uint32_t plus[2];
  uint32_t minus[2];
};
SLUICE_LANE_FN NibbleTable mxfp4_table() {
  return {{0x03020100u, 0x0c080604u}, {0x03020100u, 0x0c080604u}};
}
// The values of IQ4_NL and IQ4_XS by bit 3 of the nibble: -127 .. -10, then 1 .. 113. The sense of
// bit 3 is the opposite of NibbleTable's, so nibbles come with it flipped.
SLUICE_LANE_FN NibbleTable iq4_table() {
  return {{0x26190d01u, 0x71594535u}, {0x4153687fu, 0x0a162331u}};
}
SLUICE_LANE_FN void look_up(const NibbleTable& t, uint32_t w, uint32_t& low, uint32_t& high) {
  uint32_t mixed[2];  // elements 0, 16, 1, 17 and 2, 18, 3, 19
  SLUICE_UNROLL for (int k = 0; k < 2; ++k) {
    const uint32_t n = w >> 16 * k;
    const uint32_t plus = pick_bytes(t.plus[0], t.plus[1], n);
    const uint32_t minus = pick_bytes(t.minus[0], t.minus[1], n ^ 0x8888u);
    mixed[k] = ((plus | 0x80808080u) - minus) ^ 0x80808080u;  // bit 7 takes the borrow
  }
  low = pick_bytes(mixed[0], mixed[1], 0x6420u);
  high = pick_bytes(mixed[0], mixed[1], 0x7531u);
}

// ---- Blocks of 32: `odd` bytes of each block first, then its words. Derived says where its
// nibbles begin (kNibbles, in words) and what their bytes are.

template <typename Derived, int block_bytes>
struct BlockStripe {
  static constexpr bool kIsSuper = false;
  static constexpr int kBy = 32;
  static constexpr int kOdd = block_bytes % 4;
  static constexpr int kWords = block_bytes / 4;

  static constexpr int chunk_bytes(int n_blocks) { return 8 * block_bytes * n_blocks; }
  SLUICE_LANE_FN static const uint8_t* words(const uint8_t* chunk, int n_blocks, int block) {
    return chunk + 8 * kOdd * n_blocks + 32 * kWords * block;
  }

  // Blocks that a short chunk does not have are whatever stands behind it: nobody uses their sums,
  // and there is no branch. Where memory ends with the chunk (not `whole`), its last block stands
  // for them.
  template <bool whole>
  SLUICE_LANE_FN static int readable(int b, int n_blocks) {
    return whole || b < n_blocks ? b : n_blocks - 1;
  }
  template <bool whole = true>
  SLUICE_LANE_FN static void unpack(const uint8_t* chunk, int n_blocks, int lane,
                                    WeightBytes& out) {
    SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
      uint32_t* const a = out.a + 4 * (b / 2) + b % 2;
      Derived::unpack_block(words(chunk, n_blocks, readable<whole>(b, n_blocks)), lane / 4,
                            lane % 4, a[0], a[2]);
    }
  }

  // P = fma(d_b D_b, float(I), P), N = fma(M_b, y_b, N); P + N
  template <bool whole = true>
  SLUICE_LANE_FN static float chunk_sum(const uint8_t* chunk, int n_blocks, int row,
                                        const int32_t (&sums)[8], const InputScales& in) {
    float P = 0.0f, N = 0.0f;
    SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
      const bool exists = b < n_blocks;
      const int at = readable<whole>(b, n_blocks);
      const uint32_t head = Derived::kHasMin ? word(words(chunk, n_blocks, at), 0, row)
                            : kOdd == 1      ? chunk[8 * at + row]
                                             : load_16(chunk + 2 * (8 * at + row));
      const float more =
          fma_rn(mul_rn(in.d[b], Derived::scale(head)), to_float(sums[b] >> Derived::kShift), P);
      P = exists ? more : P;
      if constexpr (Derived::kHasMin) {
        const float more_min = fma_rn(half_bits(head >> 16), in.y[b], N);
        N = exists ? more_min : N;
      }
    }
    if constexpr (Derived::kHasMin) return add_rn(P, N);
    return P;
  }
};

template <Type type>
struct Stripe;

template <>
struct Stripe<Type::q4_0> : BlockStripe<Stripe<Type::q4_0>, 18> {
  static constexpr bool kIsSigned = true, kHasMin = false;
  static constexpr int kShift = 4;
  SLUICE_LANE_FN static float scale(uint32_t head) { return half_bits(head); }
  SLUICE_LANE_FN static void unpack_block(const uint8_t* words, int row, int i, uint32_t& low,
                                          uint32_t& high) {
    const uint32_t w = word(words, i, row), sign = kept(0x80808080u);
    low = (w << 4 & 0xf0f0f0f0u) ^ sign;
    high = (w & 0xf0f0f0f0u) ^ sign;
  }
};

template <>
struct Stripe<Type::q4_1> : BlockStripe<Stripe<Type::q4_1>, 20> {
  static constexpr bool kIsSigned = false, kHasMin = true;
  static constexpr int kShift = 0;
  SLUICE_LANE_FN static float scale(uint32_t head) { return half_bits(head & 0xffffu); }
  SLUICE_LANE_FN static void unpack_block(const uint8_t* words, int row, int i, uint32_t& low,
                                          uint32_t& high) {
    const uint32_t w = word(words, 1 + i, row);
    low = w & 0x0f0f0f0fu;
    high = w >> 4 & 0x0f0f0f0fu;
  }
};

template <>
struct Stripe<Type::q5_0> : BlockStripe<Stripe<Type::q5_0>, 22> {
  static constexpr bool kIsSigned = true, kHasMin = false;
  static constexpr int kShift = 3;
  SLUICE_LANE_FN static float scale(uint32_t head) { return half_bits(head); }
  SLUICE_LANE_FN static void unpack_block(const uint8_t* words, int row, int i, uint32_t& low,
                                          uint32_t& high) {
    const uint32_t top = word(words, 0, row) >> 4 * i, w = word(words, 1 + i, row);
    low = (w << 3 & 0x78787878u) | (~spread_bits<7>(top) & 0x80808080u);
    high = (w >> 1 & 0x78787878u) | (~spread_bits<7>(top >> 16) & 0x80808080u);
  }
};

template <>
struct Stripe<Type::q5_1> : BlockStripe<Stripe<Type::q5_1>, 24> {
  static constexpr bool kIsSigned = false, kHasMin = true;
  static constexpr int kShift = 0;
  SLUICE_LANE_FN static float scale(uint32_t head) { return half_bits(head & 0xffffu); }
  SLUICE_LANE_FN static void unpack_block(const uint8_t* words, int row, int i, uint32_t& low,
                                          uint32_t& high) {
    const uint32_t top = word(words, 1, row) >> 4 * i, w = word(words, 2 + i, row);
    low = (w & 0x0f0f0f0fu) | (spread_bits<4>(top) & 0x10101010u);
    high = (w >> 4 & 0x0f0f0f0fu) | (spread_bits<4>(top >> 16) & 0x10101010u);
  }
};

template <>
struct Stripe<Type::q8_0> : BlockStripe<Stripe<Type::q8_0>, 34> {
  static constexpr bool kIsSigned = true, kHasMin = false;
  static constexpr int kShift = 0;
  SLUICE_LANE_FN static float scale(uint32_t head) { return half_bits(head); }
  SLUICE_LANE_FN static void unpack_block(const uint8_t* words, int row, int i, uint32_t& low,
                                          uint32_t& high) {
    low = word(words, i, row);
    high = word(words, 4 + i, row);
  }
};

SLUICE_LANE_FN void look_up_iq4(uint32_t w, uint32_t& low, uint32_t& high) {
  look_up(iq4_table(), w ^ 0x88888888u, low, high);
}

template <>
struct Stripe<Type::iq4_nl> : BlockStripe<Stripe<Type::iq4_nl>, 18> {
  static constexpr bool kIsSigned = true, kHasMin = false;
  static constexpr int kShift = 0;
  SLUICE_LANE_FN static float scale(uint32_t head) { return half_bits(head); }
  SLUICE_LANE_FN static void unpack_block(const uint8_t* words, int row, int i, uint32_t& low,
                                          uint32_t& high) {
    look_up_iq4(word(words, i, row), low, high);
  }
};

template <>
struct Stripe<Type::mxfp4> : BlockStripe<Stripe<Type::mxfp4>, 17> {
  static constexpr bool kIsSigned = true, kHasMin = false;
  static constexpr int kShift = 0;
  // 2^(e - 128); e = 0 and 1 are subnormal.
  SLUICE_LANE_FN static float scale(uint32_t e) {
    return as_float(e >= 2 ? (e - 1) << 23 : 0x00200000u << e);
  }
  SLUICE_LANE_FN static void unpack_block(const uint8_t* words, int row, int i, uint32_t& low,
                                          uint32_t& high) {
    look_up(mxfp4_table(), word(words, i, row), low, high);
  }
};

// ---- Super-blocks of 256.

template <int block_bytes>
struct SuperStripe {
  static constexpr bool kIsSuper = true;
  static constexpr int kOdd = block_bytes % 4;
  static constexpr int chunk_bytes(int) { return 8 * block_bytes; }
  SLUICE_LANE_FN static const uint8_t* words(const uint8_t* chunk) { return chunk + 8 * kOdd; }
};

SLUICE_LANE_FN int byte_of(uint32_t w, int k) { return static_cast<int>(w >> 8 * k & 255); }

// Q4_K and Q5_K: P = fma(d_b, float(s_b I), P), N = fma(float(m_b), y_b, N);
// fma(d, P, -(dmin N)). odd_shift: of the sums of odd blocks.
SLUICE_LANE_FN float affine_sum(const uint8_t* words, int row, const int32_t (&sums)[8],
                                int odd_shift, const InputScales& in) {
  const uint32_t head = word(words, 0, row), s0 = word(words, 1, row), s1 = word(words, 2, row),
                 s2 = word(words, 3, row);
  const uint32_t scale[2] = {s0 & 0x3f3f3f3fu, (s2 & 0x0f0f0f0fu) | (s0 >> 2 & 0x30303030u)};
  const uint32_t min[2] = {s1 & 0x3f3f3f3fu, (s2 >> 4 & 0x0f0f0f0fu) | (s1 >> 2 & 0x30303030u)};
  float P = 0.0f, N = 0.0f;
  SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
    const int32_t sum = b % 2 ? sums[b] >> odd_shift : sums[b];
    P = fma_rn(in.d[b], to_float(byte_of(scale[b / 4], b % 4) * sum), P);
    N = fma_rn(to_float(byte_of(min[b / 4], b % 4)), in.y[b], N);
  }
  return fma_rn(half_bits(head & 0xffffu), P, -mul_rn(half_bits(head >> 16), N));
}

template <>
struct Stripe<Type::q4_k> : SuperStripe<144> {
  static constexpr int kBy = 32;
  static constexpr bool kIsSigned = false;
  template <bool whole = true>
  SLUICE_LANE_FN static void unpack(const uint8_t* chunk, int, int lane, WeightBytes& out) {
    SLUICE_UNROLL for (int p = 0; p < 4; ++p) {
      SLUICE_UNROLL for (int k = 0; k < 2; ++k) {
        const uint32_t w = word(chunk, 4 + 8 * p + 4 * k + lane % 4, lane / 4);
        out.a[4 * p + 2 * k] = w & 0x0f0f0f0fu;
        out.a[4 * p + 2 * k + 1] = w & 0xf0f0f0f0u;  // 16 times the weights
      }
    }
  }
  template <bool whole = true>
  SLUICE_LANE_FN static float chunk_sum(const uint8_t* chunk, int, int row,
                                        const int32_t (&sums)[8], const InputScales& in) {
    return affine_sum(chunk, row, sums, 4, in);
  }
};

template <>
struct Stripe<Type::q5_k> : SuperStripe<176> {
  static constexpr int kBy = 32;
  static constexpr bool kIsSigned = false;
  template <bool whole = true>
  SLUICE_LANE_FN static void unpack(const uint8_t* chunk, int, int lane, WeightBytes& out) {
    SLUICE_UNROLL for (int k = 0; k < 2; ++k) {
      const uint32_t top = word(chunk, 4 + 4 * k + lane % 4, lane / 4);
      SLUICE_UNROLL for (int p = 0; p < 4; ++p) {
        const uint32_t w = word(chunk, 12 + 8 * p + 4 * k + lane % 4, lane / 4);
        out.a[4 * p + 2 * k] = (w & 0x0f0f0f0fu) | (top >> 2 * p << 4 & 0x10101010u);
        out.a[4 * p + 2 * k + 1] = (w >> 4 & 0x0f0f0f0fu) | (top >> 2 * p << 3 & 0x10101010u);
      }
    }
  }
  template <bool whole = true>
  SLUICE_LANE_FN static float chunk_sum(const uint8_t* chunk, int, int row,
                                        const int32_t (&sums)[8], const InputScales& in) {
    return affine_sum(chunk, row, sums, 0, in);
  }
};

// ---- Types with a scale for each group of 16: the sums of a block's two groups become one, then
// the chain is that of blocks.

struct GroupScales {
  uint32_t s[4];  // a byte a group
};

// P = fma(d_b, float(I_b), P); d P
SLUICE_LANE_FN float scaled_sum(float d, const int32_t (&sums)[8], const InputScales& in) {
  float P = 0.0f;
  SLUICE_UNROLL for (int b = 0; b < 8; ++b) P = fma_rn(in.d[b], to_float(sums[b]), P);
  return mul_rn(d, P);
}

// Signed scale of a group: byte g of n words.
SLUICE_LANE_FN int signed_byte(const uint32_t* words, int g) {
  return static_cast<int8_t>(byte_of(words[g / 4], g % 4));
}

template <>
struct Stripe<Type::q6_k> : SuperStripe<210> {
  static constexpr int kBy = 16;
  static constexpr bool kIsSigned = true, kHasMin = false;
  // Pieces of 64 columns: words of ql for blocks 0 and 2, for blocks 1 and 3, and of qh for all
  // four of a half; each piece is one group of 16 of its blocks.
  template <bool whole = true>
  SLUICE_LANE_FN static void unpack(const uint8_t* chunk, int, int lane, WeightBytes& out) {
    const uint8_t* const w = words(chunk);
    const int i = lane % 4, row = lane / 4;
    SLUICE_UNROLL for (int q = 0; q < 4; ++q) {
      const uint32_t x = word(w, 12 * q + i, row), y = word(w, 12 * q + 4 + i, row);
      const uint32_t z = word(w, 12 * q + 8 + i, row);
      unpack_words(x, y, z, out.a + q / 2 * 8 + q % 2);  // of block 4 (q / 2), group q % 2
    }
  }
  SLUICE_LANE_FN static void unpack_words(uint32_t x, uint32_t y, uint32_t z, uint32_t* a) {
    a[0] = (x << 2 & 0x3c3c3c3cu) | ((z << 6 & 0xc0c0c0c0u) ^ 0x80808080u);
    a[2] = (y << 2 & 0x3c3c3c3cu) | ((z << 4 & 0xc0c0c0c0u) ^ 0x80808080u);
    a[4] = (x >> 2 & 0x3c3c3c3cu) | ((z << 2 & 0xc0c0c0c0u) ^ 0x80808080u);
    a[6] = (y >> 2 & 0x3c3c3c3cu) | ((z & 0xc0c0c0c0u) ^ 0x80808080u);
  }
  SLUICE_LANE_FN static GroupScales scales(const uint8_t* chunk, int row) {
    GroupScales out;
    SLUICE_UNROLL for (int k = 0; k < 4; ++k) out.s[k] = word(words(chunk), 48 + k, row);
    return out;
  }
  // s_2b I_2b + s_2b+1 I_2b+1
  SLUICE_LANE_FN static int block_sum(const GroupScales& scales, int b, int first, int second) {
    return signed_byte(scales.s, 2 * b) * (first >> 2) +
           signed_byte(scales.s, 2 * b + 1) * (second >> 2);
  }
  SLUICE_LANE_FN static float chunk_sum(const uint8_t* chunk, int row, const int32_t (&sums)[8],
                                        const InputScales& in) {
    return scaled_sum(half_bits(load_16(chunk + 2 * row)), sums, in);
  }
};

// Two bits at 2*(b % 4) of words 8*(b / 4) + 4*group + i.
SLUICE_LANE_FN uint32_t bit_pair_word(const uint8_t* words, int half, int group, int lane) {
  return word(words, 8 * half + 4 * group + lane % 4, lane / 4);
}

template <>
struct Stripe<Type::q3_k> : SuperStripe<110> {
  static constexpr int kBy = 16;
  static constexpr bool kIsSigned = true, kHasMin = false;
  template <bool whole = true>
  SLUICE_LANE_FN static void unpack(const uint8_t* chunk, int, int lane, WeightBytes& out) {
    const uint8_t* const w = words(chunk);
    SLUICE_UNROLL for (int group = 0; group < 2; ++group) {
      const uint32_t top = word(w, 4 * group + lane % 4, lane / 4);
      SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
        const uint32_t q = bit_pair_word(w + 32 * 8, b / 4, group, lane) >> 2 * (b % 4);
        const uint32_t h = (top >> b & 0x01010101u) << 7 ^ 0x80808080u;
        out.a[2 * b + group] = ((q & 0x03030303u) << 5) | h;
      }
    }
  }
  SLUICE_LANE_FN static GroupScales scales(const uint8_t* chunk, int row) {
    uint32_t packed[3];
    GroupScales out;
    SLUICE_UNROLL for (int k = 0; k < 3; ++k) packed[k] = word(words(chunk), 24 + k, row);
    SLUICE_UNROLL for (int k = 0; k < 4; ++k) {
      const uint32_t low = packed[k % 2] >> 4 * (k / 2) & 0x0f0f0f0fu;
      out.s[k] = low | (packed[2] >> 2 * k & 0x03030303u) << 4;  // 0..63, for -32..31
    }
    return out;
  }
  SLUICE_LANE_FN static int block_sum(const GroupScales& scales, int b, int first, int second) {
    return (byte_of(scales.s[b / 2], 2 * b % 4) - 32) * (first >> 5) +
           (byte_of(scales.s[b / 2], 2 * b % 4 + 1) - 32) * (second >> 5);
  }
  SLUICE_LANE_FN static float chunk_sum(const uint8_t* chunk, int row, const int32_t (&sums)[8],
                                        const InputScales& in) {
    return scaled_sum(half_bits(load_16(chunk + 2 * row)), sums, in);
  }
};

template <>
struct Stripe<Type::q2_k> : SuperStripe<84> {
  static constexpr int kBy = 16;
  static constexpr bool kIsSigned = false, kHasMin = true;
  template <bool whole = true>
  SLUICE_LANE_FN static void unpack(const uint8_t* chunk, int, int lane, WeightBytes& out) {
    SLUICE_UNROLL for (int group = 0; group < 2; ++group) {
      SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
        const uint32_t q = bit_pair_word(chunk + 32 * 4, b / 4, group, lane);
        out.a[2 * b + group] = q & 0x03030303u << 2 * (b % 4);  // 4^(b % 4) times the weights
      }
    }
  }
  SLUICE_LANE_FN static GroupScales scales(const uint8_t* chunk, int row) {
    GroupScales out;
    SLUICE_UNROLL for (int k = 0; k < 4; ++k) out.s[k] = word(chunk, k, row);
    return out;
  }
  SLUICE_LANE_FN static int block_sum(const GroupScales& scales, int b, int first, int second) {
    return ((byte_of(scales.s[b / 2], 2 * b % 4) & 15) * first +
            (byte_of(scales.s[b / 2], 2 * b % 4 + 1) & 15) * second) >>
           2 * (b % 4);
  }
  // Minima count by 16: m_2b Q_2b + m_2b+1 Q_2b+1, Q sums of the inputs.
  SLUICE_LANE_FN static int block_min(const GroupScales& scales, int b, int first, int second) {
    return dot_of_two(
        pick_bytes(static_cast<uint32_t>(first), static_cast<uint32_t>(second), 0x5410u),
        scales.s[b / 2] >> 4 & 0x0f0f0f0fu, b % 2);
  }
  // N = fma(d_b, float(minima of block b), N)
  SLUICE_LANE_FN static float chunk_sum(const uint8_t* chunk, int row, const int32_t (&sums)[8],
                                        const int32_t (&mins)[8], const InputScales& in) {
    const uint32_t head = word(chunk, 20, row);
    float P = 0.0f, N = 0.0f;
    SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
      P = fma_rn(in.d[b], to_float(sums[b]), P);
      N = fma_rn(in.d[b], to_float(mins[b]), N);
    }
    return fma_rn(half_bits(head & 0xffffu), P, -mul_rn(half_bits(head >> 16), N));
  }
};

template <>
struct Stripe<Type::iq4_xs> : SuperStripe<136> {
  static constexpr int kBy = 32;
  static constexpr bool kIsSigned = true;
  template <bool whole = true>
  SLUICE_LANE_FN static void unpack(const uint8_t* chunk, int, int lane, WeightBytes& out) {
    SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
      const uint32_t w = word(chunk, 2 + 4 * b + lane % 4, lane / 4);
      look_up_iq4(w, out.a[4 * (b / 2) + b % 2], out.a[4 * (b / 2) + 2 + b % 2]);
    }
  }
  template <bool whole = true>
  SLUICE_LANE_FN static float chunk_sum(const uint8_t* chunk, int, int row,
                                        const int32_t (&sums)[8], const InputScales& in) {
    const uint32_t head = word(chunk, 0, row), low = word(chunk, 1, row);
    float P = 0.0f;
    SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
      const auto s = static_cast<int>((low >> 4 * b & 15) | (head >> (16 + 2 * b) & 3) << 4) - 32;
      P = fma_rn(in.d[b], to_float(s * sums[b]), P);
    }
    return mul_rn(half_bits(head & 0xffffu), P);
  }
};

}  // namespace sluice::backend::cuda
