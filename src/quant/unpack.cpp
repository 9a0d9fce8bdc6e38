// See unpack.h. One small function per block layout; the formulas are those of blocks.h.
// SPDX-License-Identifier: Apache-2.0
#include "quant/unpack.h"

#include <bit>
#include <cstring>

#include "base/check.h"

namespace sluice::quant {
namespace {

constexpr uint64_t kEveryByte = 0x0101010101010101u;
static_assert(std::endian::native == std::endian::little);

// The bits at `shift` of n bytes, less `offset`. One output stream per loop, or GCC shuffles.
template <int n, int shift, int mask, int offset = 0>
void take_bits(const uint8_t* __restrict src, int8_t* __restrict q) {
  for (int i = 0; i < n; ++i) q[i] = static_cast<int8_t>(((src[i] >> shift) & mask) - offset);
}

// q = (qs[i%16] >> 4*(i/16)) & 15, i < 32; w = q - offset
template <int offset>
void low_high_nibbles(const uint8_t (&qs)[16], int8_t* w) {
  take_bits<16, 0, 15, offset>(qs, w);
  take_bits<16, 4, 15, offset>(qs, w + 16);
}

// Bit k of `bits` as bit 4 of byte k (little endian, as is every machine we run on).
uint64_t spread_to_bit_4(uint8_t bits) {
  const uint64_t own_bit = bits * kEveryByte & 0x8040201008040201u;  // byte k keeps bit k only
  return (own_bit + kEveryByte * 0x7f) >> 3 & kEveryByte * 0x10;     // not 0 -> bit 7 -> bit 4
}

// q = nibble as above | bit i of qh << 4; w = q - offset. Eight elements at a time, since no
// compiler finds a good way from bits to bytes (2x as fast as the loop, measured).
template <int offset>
void five_bits(const uint8_t (&qs)[16], const uint8_t (&qh)[4], int8_t* w) {
  for (int k = 0; k < 4; ++k) {
    uint64_t q;
    std::memcpy(&q, qs + 8 * (k % 2), 8);
    q = (q >> 4 * (k / 2) & kEveryByte * 0x0f) | spread_to_bit_4(qh[k]);
    // Bit 7 takes the borrow, so that no byte sees another's.
    q = ((q | kEveryByte * 0x80) - kEveryByte * offset) ^ kEveryByte * 0x80;
    std::memcpy(w + 8 * k, &q, 8);
  }
}

// q = (qs[32*(i/64) + i%32] >> 4*(i/32 % 2)) & 15, i < 256
void paired_nibbles(const uint8_t (&qs)[128], int8_t* q) {
  for (int pair = 0; pair < 4; ++pair) {
    take_bits<32, 0, 15>(qs + 32 * pair, q + 64 * pair);
    take_bits<32, 4, 15>(qs + 32 * pair, q + 64 * pair + 32);
  }
}

// q = (qs[32*(i/128) + i%32] >> 2*(i%128 / 32)) & 3, i < 256
void bit_pairs(const uint8_t (&qs)[64], int8_t* q) {
  for (int half = 0; half < 2; ++half) {
    take_bits<32, 0, 3>(qs + 32 * half, q + 128 * half);
    take_bits<32, 2, 3>(qs + 32 * half, q + 128 * half + 32);
    take_bits<32, 4, 3>(qs + 32 * half, q + 128 * half + 64);
    take_bits<32, 6, 3>(qs + 32 * half, q + 128 * half + 96);
  }
}

// w = table[q], nibbles in the order of low_high_nibbles
void look_up(const std::array<int8_t, 16>& table, const uint8_t* qs, int8_t* w) {
  for (int i = 0; i < 16; ++i) {
    w[i] = table[qs[i] & 15];
    w[i + 16] = table[qs[i] >> 4];
  }
}

void unpack(const BlockQ4_0& in, int b, Chunk& out) {
  low_high_nibbles<8>(in.qs, out.w + kBlock * b);
  out.block_scale[b] = in.d.value();
}

void unpack(const BlockQ4_1& in, int b, Chunk& out) {
  low_high_nibbles<0>(in.qs, out.w + kBlock * b);
  out.block_scale[b] = in.d.value();
  out.block_min[b] = in.m.value();
}

void unpack(const BlockQ5_0& in, int b, Chunk& out) {
  five_bits<16>(in.qs, in.qh, out.w + kBlock * b);
  out.block_scale[b] = in.d.value();
}

void unpack(const BlockQ5_1& in, int b, Chunk& out) {
  five_bits<0>(in.qs, in.qh, out.w + kBlock * b);
  out.block_scale[b] = in.d.value();
  out.block_min[b] = in.m.value();
}

void unpack(const BlockQ8_0& in, int b, Chunk& out) {
  std::memcpy(out.w + kBlock * b, in.qs, kBlock);
  out.block_scale[b] = in.d.value();
}

void unpack(const BlockIQ4_NL& in, int b, Chunk& out) {
  look_up(kIq4Values, in.qs, out.w + kBlock * b);
  out.block_scale[b] = in.d.value();
}

void unpack(const BlockMXFP4& in, int b, Chunk& out) {
  look_up(kMxfp4Values, in.qs, out.w + kBlock * b);
  out.block_scale[b] = e8m0_to_f32(in.e);
}

void unpack(const BlockQ2_K& in, Chunk& out) {
  bit_pairs(in.qs, out.w);
  for (int g = 0; g < 16; ++g) {
    out.s[g] = in.scales[g] & 15;
    out.m[g] = in.scales[g] >> 4;
  }
  out.d = in.d.value();
  out.dmin = in.dmin.value();
}

// w = q + 4h - 4, h = (hmask[i%32] >> (i/32)) & 1
void unpack(const BlockQ3_K& in, Chunk& out) {
  bit_pairs(in.qs, out.w);
  for (int j = 0; j < 8; ++j) {
    for (int l = 0; l < 32; ++l) {
      const int h = (in.hmask[l] >> j) & 1;
      out.w[32 * j + l] = static_cast<int8_t>(out.w[32 * j + l] + 4 * h - 4);
    }
  }
  for (int g = 0; g < 16; ++g) out.s[g] = unpack_scale_q3_k(in.scales, g);
  out.d = in.d.value();
}

void unpack_affine(const uint8_t (&scales)[12], StoredHalf d, StoredHalf dmin, Chunk& out) {
  const ScalesAndMins unpacked = unpack_scales_q4_k(scales);
  for (int j = 0; j < 8; ++j) {
    out.s[j] = unpacked.scale[j];
    out.m[j] = unpacked.min[j];
  }
  out.d = d.value();
  out.dmin = dmin.value();
}

void unpack(const BlockQ4_K& in, Chunk& out) {
  paired_nibbles(in.qs, out.w);
  unpack_affine(in.scales, in.d, in.dmin, out);
}

// Bit j of qh[l] is bit 4 of element 32*j + l.
void unpack(const BlockQ5_K& in, Chunk& out) {
  paired_nibbles(in.qs, out.w);
  for (int j = 0; j < 8; ++j) {
    for (int l = 0; l < 32; ++l) {
      out.w[32 * j + l] = static_cast<int8_t>(out.w[32 * j + l] | ((in.qh[l] >> j) & 1) << 4);
    }
  }
  unpack_affine(in.scales, in.d, in.dmin, out);
}

// In each half of 128, quarter g of 32: low nibbles of quarters g and g+2 share ql's bytes, the
// upper two bits of all four share qh's.
void unpack(const BlockQ6_K& in, Chunk& out) {
  for (int half = 0; half < 2; ++half) {
    for (int g = 0; g < 4; ++g) {
      const uint8_t* low = in.ql + 64 * half + 32 * (g % 2);
      const uint8_t* high = in.qh + 32 * half;
      int8_t* w = out.w + 128 * half + 32 * g;
      for (int l = 0; l < 32; ++l) {
        const int q = ((low[l] >> 4 * (g / 2)) & 15) | ((high[l] >> 2 * g) & 3) << 4;
        w[l] = static_cast<int8_t>(q - 32);
      }
    }
  }
  for (int g = 0; g < 16; ++g) out.s[g] = in.scales[g];
  out.d = in.d.value();
}

void unpack(const BlockIQ4_XS& in, Chunk& out) {
  for (int ib = 0; ib < 8; ++ib) {
    look_up(kIq4Values, in.qs + 16 * ib, out.w + kBlock * ib);
    out.s[ib] = unpack_scale_iq4_xs(in, ib);
  }
  out.d = in.d.value();
}

template <typename Block>
const std::byte* unpack_blocks(const std::byte* src, int n_blocks, Chunk& out) {
  const auto* blocks = reinterpret_cast<const Block*>(src);
  for (int b = 0; b < n_blocks; ++b) unpack(blocks[b], b, out);
  return src + sizeof(Block) * static_cast<size_t>(n_blocks);
}

template <typename Block>
const std::byte* unpack_super_block(const std::byte* src, Chunk& out) {
  DCHECK(out.n_blocks == kSuperBlock / kBlock);
  unpack(*reinterpret_cast<const Block*>(src), out);
  return src + sizeof(Block);
}

}  // namespace

Form form_of(Type type) {
  switch (type) {
    case Type::q4_0:
    case Type::q5_0:
    case Type::q8_0:
    case Type::iq4_nl:
    case Type::mxfp4:
      return Form::block;
    case Type::q4_1:
    case Type::q5_1:
      return Form::block_min;
    case Type::iq4_xs:
      return Form::super_32;
    case Type::q4_k:
    case Type::q5_k:
      return Form::super_32_min;
    case Type::q3_k:
    case Type::q6_k:
      return Form::super_16;
    case Type::q2_k:
      return Form::super_16_min;
    case Type::f32:
    case Type::f16:
    case Type::bf16:
      break;
  }
  check_failed("form_of: a quantised type", __FILE__, __LINE__);
}

const std::byte* unpack_chunk(Type type, const std::byte* src, int n_blocks, Chunk& chunk) {
  DCHECK(n_blocks >= 1 && n_blocks <= kSuperBlock / kBlock);
  chunk.n_blocks = n_blocks;
  switch (type) {
    case Type::q4_0:
      return unpack_blocks<BlockQ4_0>(src, n_blocks, chunk);
    case Type::q4_1:
      return unpack_blocks<BlockQ4_1>(src, n_blocks, chunk);
    case Type::q5_0:
      return unpack_blocks<BlockQ5_0>(src, n_blocks, chunk);
    case Type::q5_1:
      return unpack_blocks<BlockQ5_1>(src, n_blocks, chunk);
    case Type::q8_0:
      return unpack_blocks<BlockQ8_0>(src, n_blocks, chunk);
    case Type::iq4_nl:
      return unpack_blocks<BlockIQ4_NL>(src, n_blocks, chunk);
    case Type::mxfp4:
      return unpack_blocks<BlockMXFP4>(src, n_blocks, chunk);
    case Type::q2_k:
      return unpack_super_block<BlockQ2_K>(src, chunk);
    case Type::q3_k:
      return unpack_super_block<BlockQ3_K>(src, chunk);
    case Type::q4_k:
      return unpack_super_block<BlockQ4_K>(src, chunk);
    case Type::q5_k:
      return unpack_super_block<BlockQ5_K>(src, chunk);
    case Type::q6_k:
      return unpack_super_block<BlockQ6_K>(src, chunk);
    case Type::iq4_xs:
      return unpack_super_block<BlockIQ4_XS>(src, chunk);
    case Type::f32:
    case Type::f16:
    case Type::bf16:
      break;
  }
  check_failed("unpack_chunk: a quantised type", __FILE__, __LINE__);
}

}  // namespace sluice::quant
