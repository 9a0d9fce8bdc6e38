// The experts in the host's memory, as a device may get at them. A layer's are registered where
// they stand, so that copies run at the link's full speed and the device can read them in the midst
// of a step. Where the system refuses, or grants no more, they go through a small ring of pinned
// memory; and where there is not even that, they stay with the CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "backend/device.h"
#include "model/model.h"
#include "policy/trace/routing.h"

namespace sluice::engine {

class HostExperts {
 public:
  // The model outlives it. Layers before `first` are the CPU's alone.
  HostExperts(const model::Model& model, backend::Device& device, int first);

  bool is_readable(LayerId layer) const { return !registered_[index(layer)].empty(); }
  bool is_copyable(LayerId layer) const { return is_readable(layer) || !ring_.empty(); }
  int n_registered() const;  // layers

  // Into a slot (ExpertLayout), when the stream's turn comes.
  void copy(policy::ExpertKey key, const backend::ExpertLayout& layout, std::byte* slot,
            backend::Stream& copies);

 private:
  static size_t index(LayerId layer) { return static_cast<size_t>(layer.value); }
  void make_ring(backend::Device& device, int first);

  const model::Model& model_;
  // By layer: the leases on gate, up and down; none where one was refused.
  std::vector<std::vector<std::unique_ptr<backend::Registration>>> registered_;
  std::vector<backend::Buffer> ring_;  // of one expert each, the largest that needs it
  size_t next_ = 0;
};

}  // namespace sluice::engine
