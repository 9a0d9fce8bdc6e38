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

// Part A of a block whose largest magnitude is `peak`: what values are multiplied by, and d.
SLUICE_LANE_FN bool is_zero_block(float peak) { return peak < 0x1p-100f; }
SLUICE_LANE_FN int quantized(float value, float peak) {
  return is_zero_block(peak) ? 0 : to_nearest(mul_rn(value, div_rn(127.0f, peak)));
}
SLUICE_LANE_FN float block_scale(float peak) {
  return is_zero_block(peak) ? 0.0f : mul_rn(peak, 1.0f / 127.0f);
}

// Part A for one block of 32 values, one to a lane.
SLUICE_LANE_FN void quantize_block(const PerLane<float>& values, int8_t* q, float* d, float* y) {
  PerLane<uint32_t> magnitudes;
  EACH_LANE(lane) { magnitudes[lane] = bits_of(values[lane]) & 0x7fffffffu; }
  const PerLane<uint32_t> peaks = most_of_lanes(magnitudes);
  PerLane<int> rounded;
  EACH_LANE(lane) { rounded[lane] = quantized(values[lane], as_float(peaks[lane])); }
  const PerLane<int> sums = sum_of_lanes(rounded);
  EACH_LANE(lane) {
    q[lane] = static_cast<int8_t>(rounded[lane]);
    if (lane == 0) {
      *d = block_scale(as_float(peaks[lane]));
      *y = mul_rn(*d, to_float(sums[lane]));
    }
  }
}

// For four blocks at once, eight lanes each: four values to a lane. to(lane) says where they go.
struct FourValues {
  alignas(16) float of[4];
};
struct BlockPlace {
  int8_t* q;  // null: nowhere
  float *d, *y;
};
template <typename To>
SLUICE_LANE_FN void quantize_four_blocks(const PerLane<FourValues>& values, const To& to) {
  PerLane<uint32_t> peaks;
  EACH_LANE(lane) {
    peaks[lane] = 0;
    SLUICE_UNROLL for (const float value : values[lane].of) {
      const uint32_t magnitude = bits_of(value) & 0x7fffffffu;
      peaks[lane] = magnitude > peaks[lane] ? magnitude : peaks[lane];
    }
  }
  peaks = fold_lanes<8>(peaks, [](uint32_t a, uint32_t b) { return a > b ? a : b; });
  PerLane<uint32_t> bytes;
  PerLane<int> sums;
  EACH_LANE(lane) {
    uint32_t q[4];
    SLUICE_UNROLL for (int k = 0; k < 4; ++k) {
      q[k] = static_cast<uint32_t>(quantized(values[lane].of[k], as_float(peaks[lane])));
    }
    bytes[lane] =
        pick_bytes(pick_bytes(q[0], q[1], 0x0040), pick_bytes(q[2], q[3], 0x0040), 0x5410);
    sums[lane] = sum_of_bytes(bytes[lane]);
  }
  sums = fold_lanes<8>(sums, [](int a, int b) { return a + b; });
  EACH_LANE(lane) {
    const BlockPlace at = to(lane);
    if (at.q) {
      *reinterpret_cast<uint32_t*>(at.q + 4 * (lane % 8)) = bytes[lane];
      if (lane % 8 == 0) {
        const float d = block_scale(as_float(peaks[lane]));
        *at.d = d;
        *at.y = mul_rn(d, to_float(sums[lane]));
      }
    }
  }
}

}  // namespace sluice::backend::cuda
