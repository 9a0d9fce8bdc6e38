// How attention's kernels add parts of a row (backend/cuda/attend_parts.h), compiled by g++ with a
// warp as 32 loops: any number of parts gives the quotient of the weighted sums, within its bound.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/attend_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "quant/swiglu.h"

namespace sluice::backend::cuda {
namespace {

// Lane k has part k; lanes without one hold what must not count.
struct Parts {
  Parts(int n, uint64_t seed) {
    EACH_LANE(lane) {
      const auto at = static_cast<uint64_t>(lane);
      const bool exists = lane < n;
      peak[lane] = exists ? 9.0f * random_signed(random_bits(seed, at)) : INFINITY;
      sum[lane] = exists ? 1.0f + std::abs(random_signed(random_bits(seed + 1, at))) : INFINITY;
      const float v = random_signed(random_bits(seed + 2, at));
      values[lane] = exists ? float4{v, 2.0f * v, -v, 100.0f * v} : float4{NAN, NAN, NAN, NAN};
    }
  }
  PerLane<float> peak, sum;
  PerLane<float4> values;
};

TEST(AttendPartsBodyTest, PeakAndWeightsAreExact) {
  for (int n = 1; n <= kWarp; ++n) {
    const Parts parts(n, static_cast<uint64_t>(n));
    const PartWeights all(parts.peak, parts.sum, n);
    const float most = *std::max_element(parts.peak.value, parts.peak.value + n);
    EACH_LANE(lane) {
      ASSERT_EQ(most, all.peak[lane]) << n << " parts, lane " << lane;
      ASSERT_EQ(all.sum[0], all.sum[lane]) << n << " parts, lane " << lane;
      const float want = lane < n ? quant::contract_exp(parts.peak[lane] - most) : 0.0f;
      ASSERT_EQ(want, all.weight[lane]) << n << " parts, lane " << lane;
    }
  }
}

// The values' sum passes n fused steps, that of the exponentials a product and 5 additions, and
// there is one quotient: each rounds by 2^-24 of the sum of magnitudes.
TEST(AttendPartsBodyTest, PartsAddUpToTheirQuotient) {
  for (int n = 1; n <= kWarp; ++n) {
    const Parts parts(n, static_cast<uint64_t>(100 + n));
    const PartWeights all(parts.peak, parts.sum, n);
    float4 total{0, 0, 0, 0};
    double values = 0.0, magnitudes = 0.0, sum = 0.0;
    for (int k = 0; k < n; ++k) {
      add_scaled(total, from_lane(all.weight, k), parts.values[k]);
      const double weight = all.weight[k];
      values += weight * parts.values[k].x;
      magnitudes += std::abs(weight * parts.values[k].x);
      sum += weight * parts.sum[k];
    }
    const float4 got = divided(total, all.sum[0]);
    const double bound = (n + 8) * 0x1p-24 * magnitudes / sum;
    ASSERT_NEAR(values / sum, got.x, bound) << n << " parts";
    ASSERT_EQ(2.0f * got.x, got.y);  // by two and by minus one, nothing rounds
    ASSERT_EQ(-got.x, got.z);
    ASSERT_NEAR(100.0 * values / sum, got.w, 101.0 * bound) << n << " parts";
  }
}

}  // namespace
}  // namespace sluice::backend::cuda
