// The random streams: known outputs, seeds by name, and the moments of random_signed.
// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace sluice {
namespace {

// The published first outputs of SplitMix64 for the seeds 0 and 1234567.
TEST(RandomBits, AreThoseOfSplitMix64) {
  EXPECT_EQ(random_bits(0, 0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(random_bits(0, 1), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(random_bits(0, 2), 0x06c45d188009454fu);
  EXPECT_EQ(random_bits(1234567, 0), 6457827717110365317u);
  EXPECT_EQ(random_bits(1234567, 1), 3203168211198807973u);
  EXPECT_EQ(random_bits(1234567, 4), 16408922859458223821u);
}

TEST(SeedOf, DiffersByNameAndBySeed) {
  std::set<uint64_t> seen;
  size_t n = 0;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (int layer = 0; layer < 100; ++layer) {
      for (const char* part : {"attn_q", "attn_k", "attn_v", "ffn_gate_exps", "ffn_up_exps"}) {
        seen.insert(seed_of("blk." + std::to_string(layer) + "." + part + ".weight", seed));
        ++n;
      }
    }
    for (const char* name : {"", "a", "b", "ab", "ba", "a\xff", "a\x7f"}) {
      seen.insert(seed_of(name, seed));
      ++n;
    }
  }
  EXPECT_EQ(seen.size(), n) << "two of " << n << " names or seeds share a stream";
}

TEST(SeedOf, ReadsBytesBeyondAsciiAsUnsigned) {
  // FNV-1a of the one byte 0xff, then the mixing with the caller's seed.
  const uint64_t fnv = (0xcbf29ce484222325u ^ 0xffu) * 0x100000001b3u;
  EXPECT_EQ(seed_of("\xff", 5), mix64(fnv ^ mix64(5)));
}

TEST(RandomSigned, SpansMinusOneToJustBelowOne) {
  EXPECT_EQ(random_signed(0), -1.0f);
  EXPECT_EQ(random_signed(~uint64_t{0}), 1.0f - 0x1p-23f);
  EXPECT_EQ(random_signed(uint64_t{1} << 63), 0.0f);
  EXPECT_EQ(random_signed((uint64_t{1} << 40) - 1), -1.0f) << "the lower 40 bits do not matter";
}

// Five standard deviations of each estimate: 1/sqrt(3n) for the mean of a uniform number in
// [-1, 1], sqrt(4/45 / n) for its mean square 1/3 and sqrt(1/9 / n) for the product of neighbours.
TEST(RandomSigned, HasTheMomentsOfAUniformNumber) {
  constexpr int kN = 1 << 20;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, seed_of("token_embd.weight", 7)}) {
    double sum = 0, squares = 0, neighbours = 0, previous = 0;
    for (uint64_t i = 0; i < kN; ++i) {
      const float u = random_signed(random_bits(seed, i));
      ASSERT_TRUE(u >= -1.0f && u < 1.0f) << "seed " << seed << ", index " << i << ": " << u;
      sum += u;
      squares += double{u} * u;
      neighbours += u * previous;
      previous = u;
    }
    EXPECT_NEAR(sum / kN, 0.0, 5 / std::sqrt(3.0 * kN)) << "seed " << seed;
    EXPECT_NEAR(squares / kN, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / kN)) << "seed " << seed;
    EXPECT_NEAR(neighbours / kN, 0.0, 5 * std::sqrt(1.0 / 9 / kN)) << "seed " << seed;
  }
}

// Tensors of similar names must not be shifted copies of each other.
TEST(RandomSigned, StreamsOfDifferentNamesDoNotCorrelate) {
  constexpr int kN = 1 << 16;
  const uint64_t a = seed_of("blk.0.attn_q.weight", 0), b = seed_of("blk.1.attn_q.weight", 0);
  for (uint64_t shift = 0; shift < 8; ++shift) {
    double products = 0;
    for (uint64_t i = 0; i < kN; ++i) {
      products += random_signed(random_bits(a, i)) * random_signed(random_bits(b, i + shift));
    }
    EXPECT_NEAR(products / kN, 0.0, 5 * std::sqrt(1.0 / 9 / kN)) << "shift " << shift;
  }
}

}  // namespace
}  // namespace sluice
