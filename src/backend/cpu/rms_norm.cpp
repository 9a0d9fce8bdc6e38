// See rms_norm.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/rms_norm.h"

#include <cmath>

#include "quant/dot.h"

namespace sluice::backend::cpu {

void rms_norm(std::span<const float> x, const NormView& norm, float* y) {
  const float n = static_cast<float>(x.size());
  const float mean = quant::dot_f32(x.data(), x.data(), static_cast<int64_t>(x.size())) / n;
  const float scale = 1.0f / std::sqrt(mean + norm.eps);
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * norm.weight[i];
}

}  // namespace sluice::backend::cpu
