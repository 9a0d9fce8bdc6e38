// What route.cu and score_row.cu share: reading the router's weights, its products, and the sums of
// eight rows at once. In a kernel as in g++ (lanes.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/lanes.h"
#include "backend/cuda/route.h"

namespace sluice::backend::cuda {

// Four weights of a row of the router, or of the shared expert's gate; zero behind the row's end.
SLUICE_LANE_FN float4 router_weights(const Route& p, int expert, int at) {
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

SLUICE_LANE_FN float multiply_add(float4 w, float4 g, float4 x, float acc) {
  acc = fma_rn(w.x, mul_rn(g.x, x.x), acc);
  acc = fma_rn(w.y, mul_rn(g.y, x.y), acc);
  acc = fma_rn(w.z, mul_rn(g.z, x.z), acc);
  return fma_rn(w.w, mul_rn(g.w, x.w), acc);
}

// A lane's part of several sums.
template <int n>
struct PartialSums {
  float of[n];
};

// n sums over all lanes (a power of two, 32 at most): sum j in the lanes from j * 32 / n on. Each
// is the tree of sum_of_lanes, so its bits do not depend on how many there are; but half of the
// values are handed on at each of the first levels, the first of which is between lanes `mask`
// apart.
template <int n, int mask = kWarp / 2>
SLUICE_LANE_FN PerLane<float> sums_of_lanes(const PerLane<PartialSums<n>>& v) {
  if constexpr (n > 1) {
    PerLane<PartialSums<n / 2>> out;
    SLUICE_UNROLL for (int j = 0; j < n / 2; ++j) {
      PerLane<float> sent, kept;
      EACH_LANE(lane) {
        const float lower = v[lane].of[j], upper = v[lane].of[j + n / 2];
        sent[lane] = lane & mask ? lower : upper;
        kept[lane] = lane & mask ? upper : lower;
      }
      EACH_LANE(lane) { out[lane].of[j] = add_rn(kept[lane], from_other(sent, lane, mask)); }
    }
    return sums_of_lanes<n / 2, mask / 2>(out);
  } else {
    PerLane<float> sums;
    EACH_LANE(lane) { sums[lane] = v[lane].of[0]; }
    return fold_lanes<2 * mask>(sums, [](float a, float b) { return add_rn(a, b); });
  }
}

// Of eight rows, row j in lanes 4 j .. 4 j + 3.
constexpr int kRowsAtOnce = 8;
using EightRows = PartialSums<kRowsAtOnce>;
SLUICE_LANE_FN PerLane<float> sum_of_rows(const PerLane<EightRows>& v) {
  return sums_of_lanes<kRowsAtOnce>(v);
}

}  // namespace sluice::backend::cuda
