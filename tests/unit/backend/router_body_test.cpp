// The router's products as its kernels make them (backend/cuda/router_products.h), compiled by g++
// with a warp as 32 loops: weights of every type as they are, products in one order, and the sums
// of several at once with the bits of each alone.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/router_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/random.h"
#include "quant/half.h"

namespace sluice::backend::cuda {
namespace {

using quant::Type;

float router_number(uint64_t seed, int i) {
  return random_signed(random_bits(seed, static_cast<uint64_t>(i)));
}

TEST(RouterBodyTest, WeightsAreReadAsTheyAre) {
  constexpr int kExperts = 3, kModel = 36;  // not a multiple of 32
  std::vector<float> f32, gate;
  std::vector<uint16_t> f16, bf16;
  for (int i = 0; i < kExperts * kModel; ++i) {
    f32.push_back(router_number(1, i));
    f16.push_back(quant::f32_to_f16(f32.back()));
    bf16.push_back(quant::f32_to_bf16(f32.back()));
  }
  for (int i = 0; i < kModel; ++i) gate.push_back(router_number(2, i));
  Route p;
  p.d_model = kModel, p.n_experts = kExperts, p.shared_gate = gate.data();
  for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
    p.type = type;
    p.weight = type == Type::f32   ? static_cast<const void*>(f32.data())
               : type == Type::f16 ? f16.data()
                                   : bf16.data();
    for (int expert = 0; expert <= kExperts; ++expert) {
      for (int at = 0; at < 128; at += 4) {
        const float4 got = router_weights(p, expert, at);
        const float four[4] = {got.x, got.y, got.z, got.w};
        for (int k = 0; k < 4; ++k) {
          const auto i = static_cast<size_t>(expert * kModel + at + k);
          const float want = at >= kModel         ? 0.0f
                             : expert == kExperts ? gate[static_cast<size_t>(at + k)]
                             : type == Type::f32  ? f32[i]
                             : type == Type::f16  ? quant::f16_to_f32(f16[i])
                                                  : quant::bf16_to_f32(bf16[i]);
          ASSERT_EQ(want, four[k]) << expert << ", " << at + k;
        }
      }
    }
  }
}

TEST(RouterBodyTest, FourProductsAreAddedInOrder) {
  for (int i = 0; i < 100; ++i) {
    const auto four = [&](uint64_t seed) {
      return float4{router_number(seed, 4 * i), router_number(seed, 4 * i + 1),
                    router_number(seed, 4 * i + 2), router_number(seed, 4 * i + 3)};
    };
    const float4 w = four(3), g = four(4), x = four(5);
    float want = w.x * (g.x * x.x);
    want = std::fma(w.y, g.y * x.y, want);
    want = std::fma(w.z, g.z * x.z, want);
    want = std::fma(w.w, g.w * x.w, want);
    const auto units = static_cast<int64_t>(std::nearbyint(double{want} * 0x1p36));
    ASSERT_EQ(static_cast<ScoreSum>(units), score_part(w, weighted(g, x))) << i;
  }
}

// Near the sum in float64, of large rows and of small ones, and the same whoever adds first.
TEST(RouterBodyTest, AScoreIsItsSumInAnyOrder) {
  constexpr int kFours = 1024;
  for (const float size : {1e-4f, 1.0f, 1e3f}) {
    ScoreSum forwards = 0, backwards = 0;
    double want = 0.0, all = 0.0;
    const auto part = [&](int i) {
      float4 w, gx;
      w = {router_number(8, 4 * i), router_number(8, 4 * i + 1), router_number(8, 4 * i + 2),
           router_number(8, 4 * i + 3)};
      gx = {size * router_number(9, 4 * i), size * router_number(9, 4 * i + 1),
            size * router_number(9, 4 * i + 2), size * router_number(9, 4 * i + 3)};
      for (const double product :
           {double{w.x} * gx.x, double{w.y} * gx.y, double{w.z} * gx.z, double{w.w} * gx.w}) {
        want += product, all += std::abs(product);
      }
      return score_part(w, gx);
    };
    for (int i = 0; i < kFours; ++i) forwards += part(i);
    const double sum = want, magnitude = all;
    for (int i = kFours; i-- > 0;) backwards += part(i);
    ASSERT_EQ(forwards, backwards);
    const float scale = 0.37f;
    const double bound = (6 * 0x1p-24 * magnitude + kFours * 0x1p-37) * scale;
    EXPECT_NEAR(scaled_score(forwards, scale), sum * scale, bound) << size;
  }
}

template <typename T>
T lane_number(int i) {
  if constexpr (std::is_same_v<T, float>) {
    return router_number(7, i);
  } else {
    return random_bits(7, static_cast<uint64_t>(i));
  }
}

template <int n, typename T>
void expect_the_bits_of_each_alone() {
  PerLane<PartialSums<n, T>> all;
  EACH_LANE(lane) {
    for (int j = 0; j < n; ++j) all[lane].of[j] = lane_number<T>(kWarp * j + lane);
  }
  const PerLane<T> sums = sums_of_lanes<n>(all);
  for (int j = 0; j < n; ++j) {
    PerLane<T> alone;
    EACH_LANE(lane) { alone[lane] = all[lane].of[j]; }
    const T want = fold_lanes<kWarp>(alone, [](T a, T b) { return sum_of_two(a, b); })[0];
    for (int k = 0; k < kWarp / n; ++k) {
      const T got = sums[kWarp / n * j + k];
      ASSERT_EQ(std::memcmp(&want, &got, sizeof(T)), 0) << j << " of " << n;
    }
  }
}

TEST(RouterBodyTest, SeveralSumsHaveTheBitsOfEachAlone) {
  expect_the_bits_of_each_alone<kRowsAtOnce, float>();
  expect_the_bits_of_each_alone<32, float>();
  expect_the_bits_of_each_alone<kRowsAtOnce, ScoreSum>();
}

}  // namespace
}  // namespace sluice::backend::cuda
