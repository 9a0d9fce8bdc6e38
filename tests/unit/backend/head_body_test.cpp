// What attention makes of a row of qkv before it attends, and how experts' outputs are added, as
// the kernels do it (backend/cuda/attend_heads.h, combine.h), compiled by g++ with a warp as 32
// loops: heads as the CPU turns and stores them, sums in order of rank as quant/ adds them, bit by
// bit.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "backend/cpu/rope.h"
#include "backend/cuda/attend_heads.h"
#include "backend/cuda/combine.h"
#include "base/random.h"
#include "quant/combine.h"
#include "quant/half.h"

namespace sluice::backend::cuda {
namespace {

struct Case {
  int head_dim, n_pairs;
  bool adjacent;
  NormOfHeads norm;
  bool gated = false;  // gates stand behind the queries
};

// Two rows of three query heads and two kv heads; every array ends with its last number.
class Qkv {
 public:
  static constexpr int kRows = 2, kHeads = 3, kKvHeads = 2;

  explicit Qkv(const Case& c) : c_(c) {
    const auto n = static_cast<size_t>(kRows * row_heads() * c.head_dim);
    for (size_t i = 0; i < n; ++i) qkv_.push_back(4.0f * random_signed(random_bits(1, i)));
    const size_t n_norms = c.norm == NormOfHeads::whole ? kHeads : 1;
    for (size_t i = 0; i < n_norms * static_cast<size_t>(c.head_dim); ++i) {
      q_norm_.push_back(1.0f + 0.5f * random_signed(random_bits(2, i)));
      k_norm_.push_back(1.0f + 0.5f * random_signed(random_bits(3, i)));
    }
    for (int r = 0; r < kRows; ++r) {
      for (int half = 0; half < 2; ++half) {
        for (int j = 0; j < c.n_pairs; ++j) {
          const double angle = (r + 1.5) / (j + 1);
          angles_.push_back(static_cast<float>(half ? std::sin(angle) : std::cos(angle)));
        }
      }
    }
    p_.qkv = qkv_.data();
    p_.n_rows = kRows, p_.n_heads = kHeads, p_.n_kv_heads = kKvHeads, p_.head_dim = c.head_dim;
    p_.is_gated = c.gated;
    p_.head_norm = c.norm, p_.eps = 1e-6f;
    p_.q_norm = q_norm_.data(), p_.k_norm = k_norm_.data();
    p_.angles = angles_.data(), p_.n_pairs = c.n_pairs, p_.pairs_are_adjacent = c.adjacent;
  }

  const Attend& attend() const { return p_; }

  // The head as it was projected, normalised by `scale` (not at all: 0), and turned by the CPU.
  std::vector<float> expected(int row, HeadKind kind, int head, float scale) const {
    const float* const x = head_at(row, kind, head);
    std::vector<float> out(x, x + c_.head_dim);
    if (kind == HeadKind::value) return out;
    const std::vector<float>& norm = kind == HeadKind::query ? q_norm_ : k_norm_;
    const size_t first =
        c_.norm == NormOfHeads::whole ? static_cast<size_t>(head) * out.size() : size_t{0};
    for (size_t i = 0; scale != 0.0f && i < out.size(); ++i)
      out[i] = out[i] * scale * norm[first + i];
    const auto* const angles = angles_.data() + static_cast<long>(row) * 2 * c_.n_pairs;
    cpu::rope_turn(c_.adjacent ? RopePairing::adjacent : RopePairing::halves,
                   {angles, static_cast<size_t>(2 * c_.n_pairs)}, out.data());
    return out;
  }

  // 1 / sqrt(mean + eps) of what the norm spans, in double.
  double exact_scale(int row, HeadKind kind, int head) const {
    const int n_heads = kind == HeadKind::query ? kHeads : kKvHeads;
    const bool whole = c_.norm == NormOfHeads::whole;
    const float* const x = head_at(row, kind, whole ? 0 : head);
    const int n = (whole ? n_heads : 1) * c_.head_dim;
    double squares = 0.0;
    for (int i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * x[i];
    return 1.0 / std::sqrt(squares / n + static_cast<double>(p_.eps));
  }

 private:
  const float* head_at(int row, HeadKind kind, int head) const {
    const int q_heads = c_.gated ? 2 * kHeads : kHeads;
    const int at = kind == HeadKind::query ? head * q_heads / kHeads
                   : kind == HeadKind::key ? q_heads + head
                                           : q_heads + kKvHeads + head;
    return qkv_.data() + static_cast<long>(row * row_heads() + at) * c_.head_dim;
  }
  int row_heads() const { return (c_.gated ? 2 : 1) * kHeads + 2 * kKvHeads; }

  Case c_;
  std::vector<float> qkv_, q_norm_, k_norm_, angles_;
  Attend p_;
};

// A norm's scale is a float near the exact one: a sum of squares passes 3 heads of 256 / 32
// additions in a lane and 5 between lanes, the scale 4 operations, each 2^-24, half of it before
// the root. One float in that range must give all the head's bits.
template <int dims>
void expect_head(const Qkv& qkv, const Case& c, int row, HeadKind kind, int head) {
  std::vector<float> got(dims, std::nanf(""));
  make_head<dims>(qkv.attend(), row, kind, head, got.data());
  for (size_t i = static_cast<size_t>(c.head_dim); i < got.size(); ++i) ASSERT_EQ(0.0f, got[i]);
  got.resize(static_cast<size_t>(c.head_dim));
  const bool has_norm = kind != HeadKind::value && c.norm != NormOfHeads::none;
  if (!has_norm) {
    ASSERT_EQ(qkv.expected(row, kind, head, 0.0f), got);
    return;
  }
  const auto nearest = static_cast<float>(qkv.exact_scale(row, kind, head));
  constexpr int kUlps = 2 * (29 / 2 + 4);  // a float's step is 2^-24 of it at least
  for (int step = -kUlps; step <= kUlps; ++step) {
    const float scale =
        std::bit_cast<float>(std::bit_cast<uint32_t>(nearest) + static_cast<uint32_t>(step));
    if (qkv.expected(row, kind, head, scale) == got) return;
  }
  FAIL() << "no scale near " << nearest << " gives these bits";
}

template <int dims>
void expect_heads(const Case& c) {
  SCOPED_TRACE(testing::Message() << c.head_dim << " numbers, " << c.n_pairs << " pairs, adjacent "
                                  << c.adjacent << ", norm " << static_cast<int>(c.norm));
  const Qkv qkv(c);
  for (int row = 0; row < Qkv::kRows; ++row) {
    for (int h = 0; h < Qkv::kHeads; ++h) expect_head<dims>(qkv, c, row, HeadKind::query, h);
    for (int h = 0; h < Qkv::kKvHeads; ++h) {
      expect_head<dims>(qkv, c, row, HeadKind::key, h);
      expect_head<dims>(qkv, c, row, HeadKind::value, h);
    }
  }
}

TEST(HeadBodyTest, HeadsAreNormalisedAndTurnedAsOnTheCpu) {
  for (const NormOfHeads norm : {NormOfHeads::none, NormOfHeads::per_head, NormOfHeads::whole}) {
    for (const bool adjacent : {false, true}) {
      for (const int d : {32, 64}) expect_heads<64>({d, d / 2, adjacent, norm});
      for (const int d : {96, 128}) expect_heads<128>({d, d / 2, adjacent, norm});
      for (const int d : {160, 192, 256}) expect_heads<256>({d, d / 2, adjacent, norm});
      expect_heads<128>({128, 16, adjacent, norm});  // a part of the head turns
      expect_heads<256>({256, 5, adjacent, norm});
      if (norm == NormOfHeads::whole) continue;  // gates are no part of it
      expect_heads<64>({64, 8, adjacent, norm, true});
      expect_heads<256>({256, 32, adjacent, norm, true});
    }
  }
}

template <int dims, bool bf16>
void expect_rounded(int head_dim, bool stores) {
  SCOPED_TRACE(testing::Message() << head_dim << " of " << dims << ", bf16 " << bf16);
  std::vector<float> head(dims, 0.0f);
  for (int i = 0; i < head_dim; ++i) {
    const uint64_t bits = random_bits(8, static_cast<uint64_t>(i));
    head[static_cast<size_t>(i)] = std::ldexp(random_signed(bits), i % 40 - 28);
    if (i % 3 == 0) {  // halfway between two numbers, of which the even one is below or above
      const uint32_t tie = bf16 ? 0x8000u + (i << 16) : 0x1000u + (i << 13);
      head[static_cast<size_t>(i)] = std::bit_cast<float>(0x40000000u + tie);
    }
  }
  std::vector<uint16_t> rounded(dims, 0xffffu), stored(static_cast<size_t>(head_dim), 0xffffu);
  round_head<dims, bf16>(head.data(), head_dim, rounded.data(), stores ? stored.data() : nullptr);
  for (size_t i = 0; i < head.size(); ++i) {
    const uint16_t want = bf16 ? quant::f32_to_bf16(head[i]) : quant::f32_to_f16(head[i]);
    ASSERT_EQ(want, rounded[i]) << "number " << i;
    if (i < stored.size()) {
      ASSERT_EQ(stores ? want : 0xffffu, stored[i]) << "number " << i;
    }
  }
}

TEST(HeadBodyTest, KeysAndValuesAreStoredAsTheyAreRounded) {
  for (const bool stores : {true, false}) {
    expect_rounded<64, false>(32, stores), expect_rounded<64, true>(64, stores);
    expect_rounded<128, false>(128, stores), expect_rounded<128, true>(96, stores);
    expect_rounded<256, false>(160, stores), expect_rounded<256, true>(256, stores);
  }
}

TEST(CombineBodyTest, OutputsAreAddedByRankAsInTheContract) {
  for (int n = 1; n <= 16; ++n) {
    std::vector<float> weights, outs;
    for (size_t k = 0; k < static_cast<size_t>(n); ++k) {
      weights.push_back(random_signed(random_bits(5, k)));
      for (size_t c = 0; c < 8; ++c)
        outs.push_back(100.0f * random_signed(random_bits(6, 8 * k + c)));
    }
    std::vector<float> want(8, 0.0f);
    quant::combine(weights, outs.data(), 8, nullptr, 0.0f, want);
    for (size_t c = 0; c < 8; ++c) {
      const float got = sum_by_rank(weights.data(), outs.data() + c, n, 8);
      ASSERT_EQ(std::bit_cast<uint32_t>(want[c]), std::bit_cast<uint32_t>(got))
          << n << " experts, column " << c;
    }
  }
}

}  // namespace
}  // namespace sluice::backend::cuda
