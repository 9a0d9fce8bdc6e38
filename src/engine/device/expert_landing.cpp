// See expert_landing.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/expert_landing.h"

#include <algorithm>

namespace sluice::engine {

// Before the first layer no place is taken, in every step; the other counts are the step's own.
ExpertLanding::ExpertLanding(backend::Stream& main, int n_layers, Memory memory)
    : m_(std::move(memory)),
      n_places_(static_cast<int32_t>(
          std::min<uint64_t>(m_.room.size() / m_.place_bytes, kLandingPlaces))) {
  std::fill_n(m_.landed.as<uint64_t>(), kLandingPlaces, 0);
  main.fill(m_.n_taken, {}, landing_bytes(n_layers));
}

backend::LandingView ExpertLanding::view(LayerId layer) const {
  if (n_places_ == 0) return {};
  return {m_.room.data(), m_.place_bytes, n_places_,
          reinterpret_cast<int32_t*>(m_.n_taken) + layer.value, m_.landed.as<uint64_t>()};
}

const std::byte* ExpertLanding::find(uint32_t step, policy::ExpertKey key) const {
  const std::span landed(m_.landed.as<const uint64_t>(), static_cast<size_t>(n_places_));
  const auto found =
      std::ranges::find(landed, backend::staged_key(step, key.layer, key.expert.value));
  if (found == landed.end()) return nullptr;
  return m_.room.data() + static_cast<uint64_t>(found - landed.begin()) * m_.place_bytes;
}

}  // namespace sluice::engine
