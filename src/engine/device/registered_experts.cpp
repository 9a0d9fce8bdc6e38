// See registered_experts.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/registered_experts.h"

namespace sluice::engine {
namespace {

// The pieces of memory in which a layer's experts stand.
std::vector<std::span<const std::byte>> pieces_of(const backend::ExpertsView& experts) {
  const auto n_experts = static_cast<uint64_t>(experts.gate.n_mats);
  if (experts.slots) return {{experts.slots, n_experts * backend::ExpertLayout(experts).stride}};
  std::vector<std::span<const std::byte>> pieces;
  for (const backend::WeightView* w : {&experts.gate, &experts.up, &experts.down}) {
    pieces.emplace_back(w->data, n_experts * w->matrix_bytes());
  }
  return pieces;
}

}  // namespace

void RegisteredExperts::add_layers(int first) {
  for (const model::Layer& layer : model_.layers().subspan(static_cast<size_t>(first))) {
    Leases& leases = layers_[static_cast<size_t>(layer.id.value)];
    if (!leases.empty()) continue;
    for (const std::span<const std::byte> piece : pieces_of(layer.experts)) {
      leases.push_back(device_.register_host(piece));
      if (leases.back()) continue;
      leases.clear();
      break;
    }
  }
}

const std::byte* RegisteredExperts::slots(LayerId layer) const {
  const bool in_slots = model_.layers()[static_cast<size_t>(layer.value)].experts.slots != nullptr;
  return in_slots && contains(layer) ? of(layer).front()->device_address() : nullptr;
}

}  // namespace sluice::engine
