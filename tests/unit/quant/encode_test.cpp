// Encoders: how much they lose on several distributions, and that no finite input breaks them.
// SPDX-License-Identifier: Apache-2.0
#include "quant/encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "quant/decode.h"
#include "quant/half.h"
#include "quant/random_rows.h"
#include "quant/validate.h"
#include "unit/quant/spec_walk.h"

namespace sluice::quant {
namespace {

constexpr Type kQuantisers[] = {Type::q8_0, Type::q4_0, Type::q4_k, Type::q5_k, Type::q6_k};

std::vector<float> round_trip(Type type, const std::vector<float>& x) {
  std::vector<std::byte> row(row_bytes(type, std::ssize(x)));
  encode_row(type, x, row.data());
  const int64_t n_blocks = std::ssize(x) / type_info(type).block_elems;
  EXPECT_EQ(first_bad_block(type, row.data(), n_blocks), -1) << type_name(type);
  std::vector<float> out(x.size());
  decode_row(type, row.data(), out);
  return out;
}

double relative_rms_error(const std::vector<float>& x, const std::vector<float>& y) {
  double error = 0, power = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += (static_cast<double>(x[i]) - y[i]) * (static_cast<double>(x[i]) - y[i]);
    power += static_cast<double>(x[i]) * x[i];
  }
  return std::sqrt(error / power);
}

double uniform(uint64_t seed, uint64_t i) {
  return (static_cast<double>(random_bits(seed, i) >> 11) + 0.5) * 0x1p-53;
}

float gaussian(uint64_t i) {
  return static_cast<float>(std::sqrt(-2 * std::log(uniform(1, i))) *
                            std::cos(6.283185307179586 * uniform(2, i)));
}

float laplace(uint64_t i) {
  const double u = uniform(3, i) - 0.5;
  return static_cast<float>((u < 0 ? 1 : -1) * std::log(1 - 2 * std::abs(u)));
}

float uniform_signed(uint64_t i) { return static_cast<float>(2 * uniform(4, i) - 1); }

std::vector<float> sample(const std::function<float(uint64_t)>& draw, float scale) {
  std::vector<float> x(256 * 512);
  for (size_t i = 0; i < x.size(); ++i) x[i] = scale * draw(i);
  return x;
}

// Percent. The figures are what the search reaches (measured) plus 2 to 3 % of themselves: a
// coarser search, a scale off by one step or a lost refit exceeds them.
TEST(Encode, RelativeErrorStaysAtWhatTheSearchReaches) {
  struct Limit {
    Type type;
    double gaussian, laplace, uniform;
  };
  for (const Limit& limit :
       {Limit{Type::q8_0, 0.55, 0.70, 0.39}, Limit{Type::q4_0, 8.35, 10.6, 6.2},
        Limit{Type::q4_k, 7.15, 8.45, 5.5}, Limit{Type::q5_k, 3.52, 4.2, 2.72},
        Limit{Type::q6_k, 1.73, 2.15, 1.30}}) {
    for (const float scale : {1.0f, 0.02f}) {
      const auto percent = [&](const std::function<float(uint64_t)>& draw) {
        const std::vector<float> x = sample(draw, scale);
        return 100 * relative_rms_error(x, round_trip(limit.type, x));
      };
      EXPECT_LT(percent(gaussian), limit.gaussian) << type_name(limit.type) << " scale " << scale;
      EXPECT_LT(percent(laplace), limit.laplace) << type_name(limit.type) << " scale " << scale;
      EXPECT_LT(percent(uniform_signed), limit.uniform)
          << type_name(limit.type) << " scale " << scale;
    }
  }
}

// Values in [shift - 0.5, shift + 0.5]. Minima only go down, so values above zero cost levels: the
// step is 1/15 below zero and (shift + 0.5)/15 above, with a deviation of step/sqrt(12). The
// integer scales and minima may add a quarter to the smallest step.
TEST(Encode, AShiftedDistributionCostsOnlyTheLevelsItsTypeCannotMove) {
  for (const float shift : {0.5f, 3.0f, 10.0f, -0.5f, -3.0f}) {
    std::vector<float> x = sample(uniform_signed, 0.5f);
    for (float& v : x) v += shift;
    const std::vector<float> y = round_trip(Type::q4_k, x);
    double error = 0;
    for (size_t i = 0; i < x.size(); ++i) error += std::pow(static_cast<double>(x[i]) - y[i], 2);
    const double step = shift > 1 ? (shift + 0.5) / 15 : 1.25 / 15;
    const double got = std::sqrt(error / static_cast<double>(x.size()));
    EXPECT_LT(got, step / std::sqrt(12.0)) << "shift " << shift;
  }
}

TEST(Encode, Q8_0IsNeverOffByMoreThanHalfItsScale) {
  for (const float scale : {1e4f, 1.0f, 1e-3f, 1e-5f, 1e-6f, 1e-7f}) {
    const std::vector<float> x = sample(gaussian, scale);
    std::vector<std::byte> row(row_bytes(Type::q8_0, std::ssize(x)));
    encode_row(Type::q8_0, x, row.data());
    std::vector<float> y(x.size());
    decode_row(Type::q8_0, row.data(), y);
    for (size_t i = 0; i < x.size(); ++i) {
      const double d = spec_element(Type::q8_0, row.data(), static_cast<int64_t>(i)).d;
      ASSERT_LE(std::abs(static_cast<double>(x[i]) - y[i]), d * 0.5 * (1 + 0x1p-20))
          << "scale " << scale << " i " << i << " x " << x[i] << " got " << y[i];
    }
  }
}

TEST(Encode, ZeroBlocksDecodeToZero) {
  for (const Type type : kQuantisers) {
    std::vector<float> x(768, 0.0f);
    for (size_t i = 256; i < 512; ++i) x[i] = gaussian(i);  // neighbours must not leak
    x[3] = -0.0f;
    const std::vector<float> y = round_trip(type, x);
    for (size_t i = 0; i < x.size(); ++i) {
      if (i >= 256 && i < 512) continue;
      EXPECT_EQ(y[i], 0.0f) << type_name(type) << " i " << i;
    }
  }
}

// One value is the largest multiple of d that the type knows, so all that is lost is d's rounding
// to f16: half of 2^-10 relative, or half of 2^-24 where d is subnormal.
TEST(Encode, ABlockOfOneValueLosesOnlyTheRoundingOfItsScale) {
  struct Levels {
    Type type;
    float most;
  };
  for (const Levels& c :
       {Levels{Type::q8_0, 127}, Levels{Type::q4_0, 8}, Levels{Type::q4_k, 63 * 15},
        Levels{Type::q5_k, 63 * 31}, Levels{Type::q6_k, 127 * 32}}) {
    for (const float value : {1.0f, -1.0f, 0.37f, -123.0f, 0.01f, 1e-3f}) {
      const std::vector<float> y = round_trip(c.type, std::vector<float>(256, value));
      const float d = std::abs(value) / c.most;
      const float bound = 1.01f * std::max(0x1p-11f * d, 0x1p-25f) / d;
      for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_NEAR(y[i] / value, 1.0, bound)
            << type_name(c.type) << " value " << value << " i " << i;
      }
    }
  }
}

TEST(Encode, FiniteInputOfAnySizeGivesFiniteOutput) {
  for (const Type type : supported_types()) {
    if (!can_encode(type)) continue;
    for (const float size : {3.4e38f, 1e30f, 1e9f, 65504.0f, 1e-7f, 1e-20f, 1e-38f, 1e-45f}) {
      for (const auto& draw : {gaussian, laplace, uniform_signed}) {
        std::vector<float> x(512);
        for (size_t i = 0; i < x.size(); ++i) x[i] = std::clamp(draw(i) / 4, -1.0f, 1.0f) * size;
        const std::vector<float> y = round_trip(type, x);
        for (size_t i = 0; i < x.size(); ++i) {
          ASSERT_TRUE(std::isfinite(y[i])) << type_name(type) << " size " << size << " x " << x[i];
          ASSERT_LE(std::abs(y[i]), 1.2f * size + 1e-7f)
              << type_name(type) << " size " << size << " x " << x[i];
        }
      }
    }
  }
}

TEST(Encode, OneHugeValueSaturatesAtWhatTheTypeCanHold) {
  struct Most {
    Type type;
    float most;
  };
  for (const Most& c :
       {Most{Type::f16, 65504.0f}, Most{Type::q8_0, 65504.0f * 127}, Most{Type::q4_0, 65504.0f * 8},
        Most{Type::q4_k, 65504.0f * 63 * 15}, Most{Type::q5_k, 65504.0f * 63 * 31},
        Most{Type::q6_k, 65504.0f * 127 * 31}}) {
    for (const float huge : {1e38f, INFINITY}) {
      std::vector<float> x(256, 0.0f);
      x[100] = huge;
      EXPECT_NEAR(round_trip(c.type, x)[100] / c.most, 1.0, 0.02)
          << type_name(c.type) << " huge " << huge;
    }
  }
}

TEST(Encode, ValuesAlreadyOnTheGridAreFoundAgain) {
  for (const Type type : kQuantisers) {
    const int64_t n_blocks = 64 * 256 / type_info(type).block_elems;
    std::vector<std::byte> row(row_bytes(type, 64 * 256));
    random_row_blocks(type, 3, 0, n_blocks, 1.0f, row.data());
    std::vector<float> x(64 * 256);
    decode_row(type, row.data(), x);
    const double error = relative_rms_error(x, round_trip(type, x));
    // A quarter of what random values cost: most blocks come back exactly.
    EXPECT_LT(error, type == Type::q4_0 || type == Type::q4_k ? 0.02 : 0.01) << type_name(type);
  }
}

TEST(Encode, RowsAreEncodedBlockByBlock) {
  for (const Type type : kQuantisers) {
    const size_t elems = type_info(type).block_elems, bytes = type_info(type).block_bytes;
    std::vector<float> x(elems * 5);
    for (size_t i = 0; i < x.size(); ++i) x[i] = laplace(i);
    std::vector<std::byte> whole(bytes * 5), parts(bytes * 5);
    encode_row(type, x, whole.data());
    for (size_t b = 5; b-- > 0;)
      encode_row(type, std::span(x).subspan(b * elems, elems), parts.data() + b * bytes);
    EXPECT_EQ(whole, parts) << type_name(type);
  }
}

TEST(Encode, ANaNSpoilsNoOtherBlock) {
  for (const Type type : kQuantisers) {
    const size_t elems = type_info(type).block_elems, bytes = type_info(type).block_bytes;
    std::vector<float> x(elems * 3);
    for (size_t i = 0; i < x.size(); ++i) x[i] = gaussian(i);
    std::vector<std::byte> clean(bytes * 3), spoilt(bytes * 3);
    encode_row(type, x, clean.data());
    for (const size_t at : {elems, elems + 7, 2 * elems - 1}) {
      std::vector<float> y = x;
      y[at] = NAN;
      encode_row(type, y, spoilt.data());
      EXPECT_EQ(std::memcmp(clean.data(), spoilt.data(), bytes), 0) << type_name(type);
      EXPECT_EQ(std::memcmp(&clean[2 * bytes], &spoilt[2 * bytes], bytes), 0) << type_name(type);
    }
  }
}

TEST(Encode, FloatTypesRoundToNearestAndSaturate) {
  const std::vector<float> x = {1.0f, 1.0f + 0x1p-11f, -70000.0f, 3.4e38f, 1e-30f, 0x1p-24f};
  const std::vector<float> as_f16 = {1.0f, 1.0f, -65504.0f, 65504.0f, 0.0f, 0x1p-24f};
  EXPECT_EQ(round_trip(Type::f16, x), as_f16);
  EXPECT_EQ(round_trip(Type::f32, x), x);
  EXPECT_EQ(round_trip(Type::bf16, x)[3], 0x1.fep127f);
  EXPECT_EQ(round_trip(Type::bf16, x)[1], 1.0f);
}

TEST(Encode, OnlyTheDocumentedTypesCanBeEncoded) {
  int n = 0;
  for (const Type type : supported_types()) n += can_encode(type);
  EXPECT_EQ(n, 8);
  EXPECT_FALSE(can_encode(Type::mxfp4));
  EXPECT_FALSE(can_encode(Type::q3_k));
}

}  // namespace
}  // namespace sluice::quant
