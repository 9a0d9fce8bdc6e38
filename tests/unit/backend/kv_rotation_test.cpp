// What the rotation of keys is for: dots stay, large values are spread, and attention over keys of
// 4 bits loses less than over keys that were not rotated.
// SPDX-License-Identifier: Apache-2.0
#include "backend/kv_rotation.h"

#include <gtest/gtest.h>

#include "quant/decode.h"
#include "quant/encode.h"
#include "unit/backend/attention.h"

namespace sluice::backend::test {
namespace {

using quant::Type;

static_assert(rotates_keys(Type::q4_0) && !rotates_keys(Type::q8_0) && !rotates_keys(Type::f16));
static_assert(rotation_block(32) == 32 && rotation_block(96) == 32 && rotation_block(64) == 64);
static_assert(rotation_block(128) == 128 && rotation_block(192) == 64 &&
              rotation_block(256) == 128);

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

// Each value of a rotated row is off by at most log2(n) + 3 roundings of sum |x| / sqrt(n) <= |x|,
// so each row by sqrt(dim) times that.
TEST(KvRotation, KeepsDots) {
  for (const int dim : {32, 96, 128, 256}) {
    std::vector<float> q = random_values(dim, 1, 1.0f), k = random_values(dim, 2, 1.0f);
    const double expected = dot(q, k), size = std::sqrt(dot(q, q) * dot(k, k));
    rotate_head(q);
    rotate_head(k);
    const double bound = 1.01 * 2 * 10 * 0x1p-24 * std::sqrt(dim) * size;
    EXPECT_NEAR(dot(q, k), expected, bound) << dim;
  }
}

TEST(KvRotation, SpreadsOneLargeValueAndManyEqualOnes) {
  for (const int dim : {32, 128, 256}) {
    const int n = rotation_block(dim);
    for (const bool is_one : {true, false}) {
      std::vector<float> x(static_cast<size_t>(dim), is_one ? 0.0f : 1.0f);
      if (is_one) x[static_cast<size_t>(dim - 3)] = 1.0f;
      const double size = std::sqrt(dot(x, x));
      rotate_head(x);
      float most = 0;
      for (const float v : x) most = std::max(most, std::abs(v));
      // One value spreads evenly over its block. Equal ones without signs would leave all in one.
      const double even = 1 / std::sqrt(static_cast<double>(n));
      EXPECT_LE(most, is_one ? 1.001 * even : 0.5 * std::sqrt(static_cast<double>(n)))
          << dim << " size " << size;
    }
  }
}

// One query against keys with a large value in every block of 32, as trained models have: the
// channels are the same for all keys.
struct Outliers {
  static constexpr int kDim = 128, kLength = 48;

  Outliers()
      : attention(AttentionShape{.n_heads = 1,
                                 .n_kv_heads = 1,
                                 .head_dim = kDim,
                                 .n_rot = 0,
                                 .k_type = Type::q4_0,
                                 .v_type = Type::f32}) {
    qkv = attention.random_qkv(kLength, 17);
    for (int p = 0; p < kLength; ++p) {
      for (int block = 0; block < 4; ++block) key(p)[static_cast<size_t>(32 * block + 5)] *= 12.0f;
    }
  }

  std::span<float> part(int position, int which) {
    return {qkv.view().row(position) + which * kDim, kDim};
  }
  std::span<float> key(int position) { return part(position, 1); }

  // softmax(q k^T / sqrt(dim)) v of the last row in float64, with such keys.
  std::vector<double> attend(const std::vector<std::vector<float>>& keys) {
    std::vector<double> out(kDim, 0.0);
    double sum = 0;
    for (int p = 0; p < kLength; ++p) {
      const double score = dot(part(kLength - 1, 0), keys[static_cast<size_t>(p)]);
      const double weight = std::exp(score / std::sqrt(double{kDim}));
      sum += weight;
      for (size_t i = 0; i < kDim; ++i) out[i] += weight * part(p, 2)[i];
    }
    for (double& x : out) x /= sum;
    return out;
  }

  Attention attention;
  Rows qkv{0, 0};
};

double error(std::span<const double> expected, const auto& got) {
  double sum = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    sum += (got[i] - expected[i]) * (got[i] - expected[i]);
  }
  return std::sqrt(sum);
}

// Twelve times the usual size in one of 32: the step is 12 / 8 there, so that usual values of up to
// 3/4 become 0. Rotated, a block of 128 has values of sqrt(4 * 12^2 / 128 + 1) = 2.3 times the
// usual size, the largest of 32 about 2.1 times that: a step 12 / 4.9 = 2.4 times finer.
TEST(KvRotation, HalvesTheErrorOfKeysWithLargeValues) {
  Outliers o;
  std::vector<std::vector<float>> exact, stored;
  for (int p = 0; p < Outliers::kLength; ++p) {
    exact.emplace_back(o.key(p).begin(), o.key(p).end());
    std::vector<std::byte> bytes(quant::row_bytes(Type::q4_0, Outliers::kDim));
    quant::encode_row(Type::q4_0, exact.back(), bytes.data());
    stored.emplace_back(Outliers::kDim);
    quant::decode_row(Type::q4_0, bytes.data(), stored.back());
  }
  const std::vector<double> expected = o.attend(exact);
  const double unrotated = error(expected, o.attend(stored));

  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  Cache cache(o.attention, 1, Outliers::kLength, 64, 3);
  std::vector<Rows> outs = {Rows(Outliers::kLength, Outliers::kDim)};
  run_step(*ops, o.attention, cache, {&o.qkv, 1}, span_of(0, 0, Outliers::kLength), outs);
  const double rotated = error(expected, outs[0].row(Outliers::kLength - 1));
  EXPECT_LE(rotated, 0.5 * unrotated);
  EXPECT_GT(rotated, 1e-4) << "keys of 4 bits lose something, or the test shows nothing";
  RecordProperty("rotated", std::to_string(rotated));
  RecordProperty("unrotated", std::to_string(unrotated));
}

}  // namespace
}  // namespace sluice::backend::test
