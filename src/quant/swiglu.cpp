// See swiglu.h.
// SPDX-License-Identifier: Apache-2.0
#include "quant/swiglu.h"

#include "base/check.h"

namespace sluice::quant {

void swiglu(std::span<const float> gate, std::span<const float> up, float* h) {
  CHECK(gate.size() == up.size());
  for (size_t i = 0; i < gate.size(); ++i) {
    const float g = gate[i];
    h[i] = (g / (1.0f + contract_exp(-g))) * up[i];
  }
}

}  // namespace sluice::quant
