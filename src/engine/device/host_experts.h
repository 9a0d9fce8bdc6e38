// The experts in the host's memory, as a runtime's device may get at them. Where a layer's are
// registered, copies run at the link's full speed, one for each expert that stands in a slot, and
// the device can read those in the midst of a step. Where the system refuses, or grants no more,
// they go through a small ring of pinned memory; and where there is not even that, they stay with
// the CPU. Experts in a file that is only mapped are copied matrix by matrix, and never read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "engine/device/link_pace.h"
#include "engine/device/registered_experts.h"
#include "engine/device/upload.h"
#include "policy/trace/routing.h"

namespace sluice::engine {

// Into a slot (ExpertLayout), when the stream's turn comes: one copy where the expert stands in one
// piece, else one for each of its matrices.
void copy_expert(const backend::ExpertsView& experts, int32_t expert, std::byte* slot,
                 backend::Stream& copies);
// The same by an upload, which may weave it.
void copy_expert(const backend::ExpertsView& experts, int32_t expert, std::byte* slot,
                 Upload& upload, bool weaves);

class HostExperts {
 public:
  // Registers what is not registered yet, unless nobody will ask for it (`is_needed`): where the
  // device has all experts. Layers before `first` are the CPU's alone.
  // `held_gbps`, where not 0: no copy is faster than over such a link (link_pace.h), and the device
  // reads nothing over it.
  HostExperts(RegisteredExperts& registered, backend::Device& device, int first,
              bool is_needed = true, double held_gbps = 0.0);

  bool is_copyable(LayerId layer) const {
    return !is_needed_ || registered_.contains(layer) || !ring_.empty();
  }
  bool is_needed() const { return is_needed_; }
  int n_registered() const { return n_registered_; }  // layers, of those from `first` on
  // For the device's work: see RegisteredExperts::slots.
  const std::byte* slots(LayerId layer) const { return pace_ ? nullptr : registered_.slots(layer); }
  // How many copies bring an expert of that layer over the link.
  int n_copies(LayerId layer) const;

  // Into a slot, when the stream's turn comes.
  void copy(policy::ExpertKey key, const backend::ExpertLayout& layout, std::byte* slot,
            backend::Stream& copies);

 private:
  const backend::ExpertsView& experts_of(LayerId layer) const {
    return registered_.model().layers()[static_cast<size_t>(layer.value)].experts;
  }
  void make_ring(backend::Device& device, int first);
  void copy_now(policy::ExpertKey key, const backend::ExpertLayout& layout, std::byte* slot,
                backend::Stream& copies);

  const RegisteredExperts& registered_;
  bool is_needed_;
  int n_registered_ = 0;
  std::vector<backend::Buffer> ring_;  // of one expert each, the largest that needs it
  size_t next_ = 0;
  std::optional<LinkPace> pace_;
};

}  // namespace sluice::engine
