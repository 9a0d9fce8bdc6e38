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

// A lane's part of eight rows' sums.
constexpr int kRowsAtOnce = 8;
struct EightRows {
  float of[kRowsAtOnce];
};

// The sums over all lanes, of row j in lanes 4 j .. 4 j + 3. Each is the tree of sum_of_lanes, so a
// row's bits do not depend on how many there are; but half of the values are handed on at each of
// the first three levels.
SLUICE_LANE_FN PerLane<float> sum_of_rows(PerLane<EightRows> v) {
  SLUICE_UNROLL for (int level = 0; level < 3; ++level) {
    const int mask = 16 >> level, half = kRowsAtOnce / 2 >> level;
    SLUICE_UNROLL for (int j = 0; j < half; ++j) {
      PerLane<float> sent, kept;
      EACH_LANE(lane) {
        const bool is_upper = lane & mask;
        sent[lane] = is_upper ? v[lane].of[j] : v[lane].of[j + half];
        kept[lane] = is_upper ? v[lane].of[j + half] : v[lane].of[j];
      }
      EACH_LANE(lane) { v[lane].of[j] = add_rn(kept[lane], from_other(sent, lane, mask)); }
    }
  }
  PerLane<float> sums;
  EACH_LANE(lane) { sums[lane] = v[lane].of[0]; }
  return fold_lanes<4>(sums, [](float a, float b) { return add_rn(a, b); });
}

}  // namespace sluice::backend::cuda
