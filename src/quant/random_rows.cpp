// See random_rows.h. A block is filled with raw random bits, all of them valid quants; then its
// scales are set so that the moments come out. Either the minimum cancels the mean of the quants
// (Q4_1: x = d*(q - 7.5)), or the sign of the scale is random (Q4_0: x = +-d*w, w of mean -0.5).
// SPDX-License-Identifier: Apache-2.0
#include "quant/random_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/random.h"
#include "quant/blocks.h"

namespace sluice::quant {
namespace {

// The random words of one block, drawn in order. Each block owns 32 indices of the seed's stream:
// the largest, Q6_K, draws 27 words for its bytes and one for its scale.
constexpr uint64_t kWordsPerBlock = 32;
class Words {
 public:
  Words(uint64_t seed, uint64_t block) : seed_(seed), next_(block * kWordsPerBlock) {}
  uint64_t draw() { return random_bits(seed_, next_++); }

 private:
  uint64_t seed_;
  uint64_t next_;
};

template <typename Block>
void fill_with_bits(Words& words, Block& block) {
  static_assert(sizeof(Block) <= 8 * (kWordsPerBlock - 2));
  auto* bytes = reinterpret_cast<std::byte*>(&block);
  constexpr size_t kWhole = sizeof(Block) / 8 * 8;
  for (size_t k = 0; k < kWhole; k += 8) {
    const uint64_t word = words.draw();
    std::memcpy(bytes + k, &word, 8);
  }
  const uint64_t word = words.draw();
  std::memcpy(bytes + kWhole, &word, sizeof(Block) - kWhole);
}

// ---- moments

// E w^2 of the integers a..b, and of a table's entries.
constexpr double mean_square(int a, int b) {
  double sum = 0;
  for (int w = a; w <= b; ++w) sum += static_cast<double>(w) * w;
  return sum / (b - a + 1);
}
constexpr double mean_square(const std::array<int8_t, 16>& table) {
  double sum = 0;
  for (const int w : table) sum += static_cast<double>(w) * w;
  return sum / 16;
}
// Of the integers 0..levels-1, less their mean.
constexpr double variance(int levels) { return (levels * levels - 1) / 12.0; }

// E (x/d)^2 of a block filled as below.
template <typename Block>
constexpr double kMeanSquare = 0;
template <>
constexpr double kMeanSquare<BlockQ4_0> = mean_square(-8, 7);
template <>
constexpr double kMeanSquare<BlockQ4_1> = variance(16);
template <>
constexpr double kMeanSquare<BlockQ5_0> = mean_square(-16, 15);
template <>
constexpr double kMeanSquare<BlockQ5_1> = variance(32);
template <>
constexpr double kMeanSquare<BlockQ8_0> = mean_square(-128, 127);
template <>
constexpr double kMeanSquare<BlockIQ4_NL> = mean_square(kIq4Values);
template <>
constexpr double kMeanSquare<BlockQ2_K> = mean_square(8, 15) * variance(4);
template <>
constexpr double kMeanSquare<BlockQ3_K> = mean_square(-32, 31) * mean_square(-4, 3);
template <>
constexpr double kMeanSquare<BlockQ4_K> = mean_square(32, 63) * variance(16);
template <>
constexpr double kMeanSquare<BlockQ5_K> = mean_square(32, 63) * variance(32);
template <>
constexpr double kMeanSquare<BlockQ6_K> = mean_square(-128, 127) * mean_square(-32, 31);
template <>
constexpr double kMeanSquare<BlockIQ4_XS> = mean_square(-32, 31) * mean_square(kIq4Values);

// ---- scales

// base * f with f uniform in [0.75, 1.25), so E f^2 = 1 + 1/48.
float block_scale(float base, uint64_t bits) { return base * (1.0f + 0.25f * random_signed(bits)); }
constexpr double kMeanSquareF = 1.0 + 1.0 / 48.0;

uint16_t narrow(float value) { return f32_to_f16(std::clamp(value, -kMaxF16, kMaxF16)); }

// x = +-d*w: any bits are good quants and sub-scales.
template <typename Block>
void set_scales(Words& words, float base, Block& block) {
  const uint64_t bits = words.draw();
  const float d = block_scale(base, bits);
  block.d.set_bits(narrow((bits & 1) != 0 ? -d : d));
}

// x = d*(q - centre), by a minimum of centre * d
void set_centred(Words& words, float base, float centre, StoredHalf& d, StoredHalf& min) {
  d.set_bits(narrow(block_scale(base, words.draw())));
  min.set_bits(narrow(centre * d.value()));
}

void set_scales(Words& words, float base, BlockQ4_1& block) {
  set_centred(words, base, -7.5f, block.d, block.m);
}

void set_scales(Words& words, float base, BlockQ5_1& block) {
  set_centred(words, base, -15.5f, block.d, block.m);
}

// Scales 8..15, minima the same.
void set_scales(Words& words, float base, BlockQ2_K& block) {
  for (uint8_t& s : block.scales) s = static_cast<uint8_t>(((s & 7) | 8) * 0x11);
  set_centred(words, base, 1.5f, block.d, block.dmin);
}

// Scales 32..63, minima the same.
void set_equal_scales_and_mins(Words& words, uint8_t (&packed)[12]) {
  const uint64_t scales = (words.draw() & 0x1f1f1f1f1f1f1f1fu) | 0x2020202020202020u;
  ScalesAndMins s;
  std::memcpy(s.scale, &scales, 8);
  std::memcpy(s.min, &scales, 8);
  pack_scales_q4_k(s, packed);
}

void set_scales(Words& words, float base, BlockQ4_K& block) {
  set_equal_scales_and_mins(words, block.scales);
  set_centred(words, base, 7.5f, block.d, block.dmin);
}

void set_scales(Words& words, float base, BlockQ5_K& block) {
  set_equal_scales_and_mins(words, block.scales);
  set_centred(words, base, 15.5f, block.d, block.dmin);
}

template <typename Block>
void fill_blocks(uint64_t seed, uint64_t first, int64_t n_blocks, float std, std::byte* dst) {
  static_assert(kMeanSquare<Block> > 0);
  const auto base = static_cast<float>(std / std::sqrt(kMeanSquare<Block> * kMeanSquareF));
  auto* blocks = reinterpret_cast<Block*>(dst);
  for (int64_t b = 0; b < n_blocks; ++b) {
    Words words(seed, first + static_cast<uint64_t>(b));
    fill_with_bits(words, blocks[b]);
    set_scales(words, base, blocks[b]);
  }
}

// Powers of two only: exponent e-1 in one block of 16, e+1 with probability p, else e. Relative to
// exponent e, E scale^2 = 1 - 3/64 + 3p, which for p in 0..15/16 spans 3.95 of the 4 between e and
// e+1; the rest is an error of std below 0.7 %.
void fill_mxfp4(uint64_t seed, uint64_t first, int64_t n_blocks, float std, std::byte* dst) {
  constexpr double kLeast = 1.0 - 3.0 / 64.0;
  const double wanted = static_cast<double>(std) * std / mean_square(kMxfp4Values);
  const int exponent = static_cast<int>(std::floor(std::log2(wanted / kLeast) / 2));
  const double p = (wanted / std::exp2(2.0 * exponent) - kLeast) / 3;
  const auto n_high = static_cast<uint32_t>(std::clamp(p, 0.0, 15.0 / 16.0) * 65536);
  auto* blocks = reinterpret_cast<BlockMXFP4*>(dst);
  for (int64_t b = 0; b < n_blocks; ++b) {
    Words words(seed, first + static_cast<uint64_t>(b));
    fill_with_bits(words, blocks[b]);
    const uint32_t chance = words.draw() >> 48;
    const int step = chance >= 65536 - 4096 ? -1 : chance < n_high ? 1 : 0;
    blocks[b].e = static_cast<uint8_t>(std::clamp(exponent + step + 128, 0, 254));
  }
}

// Uniform in [-a, a) has the standard deviation a / sqrt(3).
template <Type type>
void fill_floats(uint64_t seed, uint64_t first, int64_t n, float std, std::byte* dst) {
  const float a = std * 1.7320508f;
  for (int64_t i = 0; i < n; ++i) {
    const float x = a * random_signed(random_bits(seed, first + static_cast<uint64_t>(i)));
    if constexpr (type == Type::f32) {
      std::memcpy(dst + 4 * i, &x, 4);
    } else {
      const uint16_t bits = type == Type::f16 ? narrow(x) : f32_to_bf16(x);
      std::memcpy(dst + 2 * i, &bits, 2);
    }
  }
}

}  // namespace

void random_row_blocks(Type type, uint64_t seed, uint64_t first_block, int64_t n_blocks, float std,
                       std::byte* dst) {
  CHECK(std > 0 && n_blocks >= 0);
  switch (type) {
    case Type::f32:
      return fill_floats<Type::f32>(seed, first_block, n_blocks, std, dst);
    case Type::f16:
      return fill_floats<Type::f16>(seed, first_block, n_blocks, std, dst);
    case Type::bf16:
      return fill_floats<Type::bf16>(seed, first_block, n_blocks, std, dst);
    case Type::q4_0:
      return fill_blocks<BlockQ4_0>(seed, first_block, n_blocks, std, dst);
    case Type::q4_1:
      return fill_blocks<BlockQ4_1>(seed, first_block, n_blocks, std, dst);
    case Type::q5_0:
      return fill_blocks<BlockQ5_0>(seed, first_block, n_blocks, std, dst);
    case Type::q5_1:
      return fill_blocks<BlockQ5_1>(seed, first_block, n_blocks, std, dst);
    case Type::q8_0:
      return fill_blocks<BlockQ8_0>(seed, first_block, n_blocks, std, dst);
    case Type::q2_k:
      return fill_blocks<BlockQ2_K>(seed, first_block, n_blocks, std, dst);
    case Type::q3_k:
      return fill_blocks<BlockQ3_K>(seed, first_block, n_blocks, std, dst);
    case Type::q4_k:
      return fill_blocks<BlockQ4_K>(seed, first_block, n_blocks, std, dst);
    case Type::q5_k:
      return fill_blocks<BlockQ5_K>(seed, first_block, n_blocks, std, dst);
    case Type::q6_k:
      return fill_blocks<BlockQ6_K>(seed, first_block, n_blocks, std, dst);
    case Type::iq4_nl:
      return fill_blocks<BlockIQ4_NL>(seed, first_block, n_blocks, std, dst);
    case Type::iq4_xs:
      return fill_blocks<BlockIQ4_XS>(seed, first_block, n_blocks, std, dst);
    case Type::mxfp4:
      return fill_mxfp4(seed, first_block, n_blocks, std, dst);
  }
  check_failed("random_row_blocks: a supported type", __FILE__, __LINE__);
}

}  // namespace sluice::quant
