// How attention adds its parts, each a softmax over some positions of a row: sums of values, their
// peak and the sum of their exponentials. Warps of a block and splits of a row are added alike, in
// one order, by one warp (in a kernel as in g++: lanes.h). Part of attend.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/contract.h"

namespace sluice::backend::cuda {

constexpr float kNoPeak = -3.0e38f;

SLUICE_LANE_FN void add_scaled(float4& acc, float scale, float4 v) {
  acc.x = fma_rn(scale, v.x, acc.x), acc.y = fma_rn(scale, v.y, acc.y);
  acc.z = fma_rn(scale, v.z, acc.z), acc.w = fma_rn(scale, v.w, acc.w);
}

SLUICE_LANE_FN float4 divided(float4 v, float by) {
  return {div_rn(v.x, by), div_rn(v.y, by), div_rn(v.z, by), div_rn(v.w, by)};
}

// What a gate lets through.
SLUICE_LANE_FN float4 gated(float4 v, float4 gate) {
  return {mul_rn(v.x, sigmoid(gate.x)), mul_rn(v.y, sigmoid(gate.y)), mul_rn(v.z, sigmoid(gate.z)),
          mul_rn(v.w, sigmoid(gate.w))};
}

// Of some parts, a lane to each, what their values count: weight is of the lane, the peak and the
// sum are of all. Part k is in lane k; lanes from n on have none.
struct PartWeights {
  PerLane<float> weight, peak, sum;

  SLUICE_LANE_FN PartWeights(const PerLane<float>& own_peak, const PerLane<float>& own_sum, int n) {
    EACH_LANE(lane) { peak[lane] = lane < n ? own_peak[lane] : kNoPeak; }
    peak = fold_lanes<kWarp>(peak, [](float a, float b) { return more_of(a, b); });
    EACH_LANE(lane) {
      weight[lane] = lane < n ? contract_exp(sub_rn(own_peak[lane], peak[lane])) : 0.0f;
      sum[lane] = mul_rn(weight[lane], lane < n ? own_sum[lane] : 0.0f);
    }
    sum = sum_of_lanes(sum);
  }
};

}  // namespace sluice::backend::cuda
