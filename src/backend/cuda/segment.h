// A segment is 128 columns of a row, four to a lane: what norms and quantisation work on, in a
// kernel as in g++ (lanes.h).
//
// A row's sum of squares is added in one order, whatever block or warp does it and whatever rows
// are beside it: four values of a lane, the lanes of a segment of 128 as a tree, the segments as a
// tree. So a row's bytes do not depend on the other rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/lanes.h"

namespace sluice::backend::cuda {

constexpr int kSegment = 128;

// y = x * weight / sqrt(mean(x^2) + eps), or y = x where weight is null.
struct RowNorm {
  const float* weight = nullptr;
  float eps = 0.0f;
};

// Where a lane's four bytes go, and the scales of its block; nowhere if there is no such block.
struct Int8Place {
  int8_t* q;
  float* d;
  float* y;
  bool exists;
};

// Part A for a segment; a block is eight lanes.
SLUICE_LANE_FN void quantize_segment(const PerLane<float4>& values, const PerLane<Int8Place>& to) {
  const auto magnitude = [](float x) { return bits_of(x) & 0x7fffffffu; };
  const auto most = [](uint32_t a, uint32_t b) { return a > b ? a : b; };
  PerLane<uint32_t> peaks, bytes;
  PerLane<float> steps;
  PerLane<int> sums;
  EACH_LANE(lane) {
    const float4& v = values[lane];
    peaks[lane] = most(most(magnitude(v.x), magnitude(v.y)), most(magnitude(v.z), magnitude(v.w)));
  }
  peaks = fold_lanes<8>(peaks, most);
  EACH_LANE(lane) {
    const float4& v = values[lane];
    const float peak = as_float(peaks[lane]);
    bytes[lane] = 0, steps[lane] = 0.0f;
    if (peak >= 0x1p-100f) {
      const float scale = div_rn(127.0f, peak);
      const auto rounded = [&](float x) {
        return static_cast<uint32_t>(to_nearest(mul_rn(x, scale)));
      };
      bytes[lane] = pick_bytes(pick_bytes(rounded(v.x), rounded(v.y), 0x0040u),
                               pick_bytes(rounded(v.z), rounded(v.w), 0x0040u), 0x5410u);
      steps[lane] = mul_rn(peak, 1.0f / 127.0f);
    }
    sums[lane] = sum_of_bytes(bytes[lane]);
  }
  sums = fold_lanes<8>(sums, [](int a, int b) { return a + b; });
  EACH_LANE(lane) {
    const Int8Place& at = to[lane];
    if (at.exists) *reinterpret_cast<uint32_t*>(at.q) = bytes[lane];
    if (at.exists && lane % 8 == 0) {
      *at.d = steps[lane];
      *at.y = mul_rn(steps[lane], to_float(sums[lane]));
    }
  }
}

// A lane's four values of a row, zero behind its end; and of a norm's weights.
SLUICE_LANE_FN float4 segment_values(const float* row, int segment, int n_cols, int lane) {
  const int at = kSegment * segment + 4 * lane;
  return at < n_cols ? load_past_l1(row + at) : float4{0, 0, 0, 0};
}
SLUICE_LANE_FN float4 segment_weights(const float* weights, int segment, int n_cols, int lane) {
  const int at = kSegment * segment + 4 * lane;
  return at < n_cols ? load_constant(weights + at) : float4{0, 0, 0, 0};
}

SLUICE_LANE_FN float square_of(const float4& v) {
  return fma_rn(v.w, v.w, fma_rn(v.z, v.z, fma_rn(v.y, v.y, mul_rn(v.x, v.x))));
}
SLUICE_LANE_FN PerLane<float> segment_squares(const PerLane<float4>& values) {
  PerLane<float> sums;
  EACH_LANE(lane) { sums[lane] = square_of(values[lane]); }
  return sum_of_lanes(sums);
}

// 1 / sqrt(mean + eps) of a row, of the squares of its segments.
SLUICE_LANE_FN PerLane<float> row_scale(const float* squares, int n_cols, float eps) {
  PerLane<float> sums;
  EACH_LANE(lane) {
    sums[lane] = 0.0f;
    SLUICE_ROLLED for (int s = lane; s * kSegment < n_cols; s += kWarp) {
      sums[lane] = add_rn(sums[lane], squares[s]);
    }
  }
  sums = sum_of_lanes(sums);
  EACH_LANE(lane) {
    const float mean = div_rn(sums[lane], to_float(n_cols));
    sums[lane] = div_rn(1.0f, sqrt_rn(add_rn(mean, eps)));
  }
  return sums;
}

SLUICE_LANE_FN float4 normalized(float4 v, float scale, float4 w) {
  return {mul_rn(mul_rn(v.x, scale), w.x), mul_rn(mul_rn(v.y, scale), w.y),
          mul_rn(mul_rn(v.z, scale), w.z), mul_rn(mul_rn(v.w, scale), w.w)};
}

}  // namespace sluice::backend::cuda
