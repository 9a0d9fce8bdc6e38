// A model's experts in host memory, registered with a device: copies run at the link's full speed,
// and the device's work reads them in the midst of a step. Made once for a model and a device, and
// shared by all runtimes that use the two, since registering takes as long as reading the memory,
// and memory is registered only once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "backend/device.h"
#include "model/model.h"

namespace sluice::engine {

class RegisteredExperts {
 public:
  // The model, its weights and the device outlive it.
  RegisteredExperts(const model::Model& model, backend::Device& device)
      : model_(model), device_(device), layers_(model.layers().size()) {}

  const model::Model& model() const { return model_; }

  // Layers from `first` on that are not registered yet, as far as the system grants it; after a
  // runtime has got what pinned memory it needs besides. The next runtime needs as much, and finds
  // what the one before has given back.
  void add_layers(int first);

  bool contains(LayerId layer) const { return !of(layer).empty(); }
  // The device's address of the layer's first slot (ExpertsView::slots). Null where the layer is
  // not registered, or does not stand in slots.
  const std::byte* slots(LayerId layer) const;

 private:
  using Leases = std::vector<std::unique_ptr<backend::Registration>>;
  const Leases& of(LayerId layer) const { return layers_[static_cast<size_t>(layer.value)]; }

  const model::Model& model_;
  backend::Device& device_;
  std::vector<Leases> layers_;  // of the slots, or of gate, up and down; none where one was refused
};

}  // namespace sluice::engine
