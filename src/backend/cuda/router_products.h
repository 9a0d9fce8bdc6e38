// What all that computes a router's scores shares: reading its weights, its products, their sums,
// and the sums of eight rows at once. In a kernel as in g++ (lanes.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/lanes.h"
#include "backend/cuda/route.h"

namespace sluice::backend::cuda {

// Four weights of a row of the router, or of the shared expert's gate; zero behind the row's end.
// Router: Route or AddedScores.
template <typename Router>
SLUICE_LANE_FN float4 router_weights(const Router& p, int expert, int at) {
  if (at >= p.d_model) return {0, 0, 0, 0};
  if (expert == p.n_experts) return load_constant(p.shared_gate + at);
  const int64_t i = static_cast<int64_t>(expert) * p.d_model + at;
  if (p.type == quant::Type::f32) return load_constant(static_cast<const float*>(p.weight) + i);
  const uint2 two = load_8_constant(static_cast<const uint16_t*>(p.weight) + i);
  if (p.type == quant::Type::bf16) {
    return {as_float(two.x << 16), as_float(two.x & 0xffff0000u), as_float(two.y << 16),
            as_float(two.y & 0xffff0000u)};
  }
  return {half_bits(two.x & 0xffffu), half_bits(two.x >> 16), half_bits(two.y & 0xffffu),
          half_bits(two.y >> 16)};
}

// A score is a sum over a row's columns, times the norm's scale. It is added as integers, 2^-36
// each (in two's complement; it has to stay below 2^27): of four columns in order a float makes
// one. So its bits do not depend on who adds what when, a block with some columns of all experts or
// one with all columns of some (docs/decisions/0026).
using ScoreSum = uint64_t;
constexpr float kScoreUnits = 0x1p36f;

// The norm's weights times the row, and four such numbers' part of a score.
SLUICE_LANE_FN float4 weighted(const float4& g, const float4& x) {
  return {mul_rn(g.x, x.x), mul_rn(g.y, x.y), mul_rn(g.z, x.z), mul_rn(g.w, x.w)};
}
SLUICE_LANE_FN ScoreSum score_part(const float4& w, const float4& gx) {
  const float part = fma_rn(w.w, gx.w, fma_rn(w.z, gx.z, fma_rn(w.y, gx.y, mul_rn(w.x, gx.x))));
  return static_cast<ScoreSum>(to_nearest_64(mul_rn(part, kScoreUnits)));
}
SLUICE_LANE_FN float scaled_score(ScoreSum sum, float scale) {
  return mul_rn(mul_rn(to_float(static_cast<int64_t>(sum)), 1.0f / kScoreUnits), scale);
}

SLUICE_LANE_FN float sum_of_two(float a, float b) { return add_rn(a, b); }
SLUICE_LANE_FN ScoreSum sum_of_two(ScoreSum a, ScoreSum b) { return a + b; }

// A lane's part of several sums.
template <int n, typename T = float>
struct PartialSums {
  T of[n];
};

// n sums over all lanes (a power of two, 32 at most): sum j in the lanes from j * 32 / n on. Each
// is the tree of sum_of_lanes, so its bits do not depend on how many there are; but half of the
// values are handed on at each of the first levels, the first of which is between lanes `mask`
// apart.
template <int n, int mask = kWarp / 2, typename T>
SLUICE_LANE_FN PerLane<T> sums_of_lanes(const PerLane<PartialSums<n, T>>& v) {
  if constexpr (n > 1) {
    PerLane<PartialSums<n / 2, T>> out;
    SLUICE_UNROLL for (int j = 0; j < n / 2; ++j) {
      PerLane<T> sent, kept;
      EACH_LANE(lane) {
        const T lower = v[lane].of[j], upper = v[lane].of[j + n / 2];
        sent[lane] = lane & mask ? lower : upper;
        kept[lane] = lane & mask ? upper : lower;
      }
      EACH_LANE(lane) { out[lane].of[j] = sum_of_two(kept[lane], from_other(sent, lane, mask)); }
    }
    return sums_of_lanes<n / 2, mask / 2>(out);
  } else {
    PerLane<T> sums;
    EACH_LANE(lane) { sums[lane] = v[lane].of[0]; }
    return fold_lanes<2 * mask>(sums, [](T a, T b) { return sum_of_two(a, b); });
  }
}

// Of eight rows, row j in lanes 4 j .. 4 j + 3.
constexpr int kRowsAtOnce = 8;
template <typename T>
using EightRows = PartialSums<kRowsAtOnce, T>;
template <typename T>
SLUICE_LANE_FN PerLane<T> sum_of_rows(const PerLane<EightRows<T>>& v) {
  return sums_of_lanes<kRowsAtOnce>(v);
}

}  // namespace sluice::backend::cuda
