// The numeric contract's float steps, in a kernel as in g++ (lanes.h). Every operation rounds by
// itself, so nothing here can be contracted, reordered or flushed to zero: the bits are those of
// quant/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/lanes.h"

namespace sluice::backend::cuda {

// EXP of part C: exp(t) for t clamped to [-87, 88].
SLUICE_LANE_FN float contract_exp(float t) {
  t = less_of(more_of(t, -87.0f), 88.0f);
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float n = sub_rn(fma_rn(t, 1.44269504088896341f, kMagic), kMagic);
  float r = fma_rn(n, -0.693359375f, t);
  r = fma_rn(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = fma_rn(p, r, 1.3981999507e-3f);
  p = fma_rn(p, r, 8.3334519073e-3f);
  p = fma_rn(p, r, 4.1665795894e-2f);
  p = fma_rn(p, r, 1.6666665459e-1f);
  p = fma_rn(p, r, 5.0000001201e-1f);
  const float e = add_rn(fma_rn(p, mul_rn(r, r), r), 1.0f);
  return as_float(bits_of(e) + (static_cast<uint32_t>(static_cast<int>(n)) << 23));
}

// Part C: (g / (1 + EXP(-g))) * u.
SLUICE_LANE_FN float swiglu(float g, float u) {
  return mul_rn(div_rn(g, add_rn(1.0f, contract_exp(-g))), u);
}

SLUICE_LANE_FN float sigmoid(float x) { return div_rn(1.0f, add_rn(1.0f, contract_exp(-x))); }
SLUICE_LANE_FN float silu(float x) { return div_rn(x, add_rn(1.0f, contract_exp(-x))); }

// Part A for one block of 32 values, one to a lane.
SLUICE_LANE_FN void quantize_block(const PerLane<float>& values, int8_t* q, float* d, float* y) {
  PerLane<uint32_t> magnitudes;
  EACH_LANE(lane) { magnitudes[lane] = bits_of(values[lane]) & 0x7fffffffu; }
  const PerLane<uint32_t> peaks = most_of_lanes(magnitudes);
  PerLane<int> rounded;
  EACH_LANE(lane) {
    const float peak = as_float(peaks[lane]);
    rounded[lane] = peak < 0x1p-100f ? 0 : to_nearest(mul_rn(values[lane], div_rn(127.0f, peak)));
  }
  const PerLane<int> sums = sum_of_lanes(rounded);
  EACH_LANE(lane) {
    q[lane] = static_cast<int8_t>(rounded[lane]);
    if (lane == 0) {
      const float peak = as_float(peaks[lane]);
      const float step = peak < 0x1p-100f ? 0.0f : mul_rn(peak, 1.0f / 127.0f);
      *d = step;
      *y = mul_rn(step, to_float(sums[lane]));
    }
  }
}

}  // namespace sluice::backend::cuda
