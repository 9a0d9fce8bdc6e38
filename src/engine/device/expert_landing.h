// Copies of the experts that a decode step has read over the link, in the device's memory until the
// next step: what the policy then wants to keep need not cross again. They stand in the buffer
// through which a prompt's experts come, which nobody else needs while texts are decoded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "backend/device_ops.h"
#include "policy/cache/expert_cache.h"

namespace sluice::engine {

class ExpertLanding {
 public:
  // `room` is made into places of place_bytes, `n_taken` has landing_bytes(n_layers); both in the
  // device's memory. `landed`: mapped, a word for each of kLandingPlaces.
  struct Memory {
    std::span<std::byte> room;
    uint64_t place_bytes = 0;
    std::byte* n_taken = nullptr;
    backend::Buffer landed;
  };
  ExpertLanding(backend::Stream& main, int n_layers, Memory memory);

  // For a layer's lookup. The layers of a step come in ascending order.
  backend::LandingView view(LayerId layer) const;

  // Where an expert stands that this step has read; null: it has not.
  const std::byte* find(uint32_t step, policy::ExpertKey key) const;

 private:
  Memory m_;
  int32_t n_places_;
};

}  // namespace sluice::engine
