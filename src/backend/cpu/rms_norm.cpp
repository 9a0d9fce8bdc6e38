// See rms_norm.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/rms_norm.h"

#include <cmath>

#include "backend/cpu/attend_lanes.h"
#include "quant/dot.h"

namespace sluice::backend::cpu {

// Eight at a time, spelled out: y may be x, so the compiler would have to go one by one.
void rms_norm(std::span<const float> x, const NormView& norm, float* y) {
  const float n = static_cast<float>(x.size());
  const float mean = quant::dot_f32(x.data(), x.data(), static_cast<int64_t>(x.size())) / n;
  const float scale = 1.0f / std::sqrt(mean + norm.eps);
  size_t i = 0;
  for (; i + 8 <= x.size(); i += 8) {
    const Float8 scaled = product(load(x.data() + i), in_all_lanes(scale));
    store(product(scaled, load(norm.weight + i)), y + i);
  }
  for (; i < x.size(); ++i) y[i] = x[i] * scale * norm.weight[i];
}

}  // namespace sluice::backend::cpu
