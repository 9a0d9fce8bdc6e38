// See host_experts.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/host_experts.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace sluice::engine {
namespace {

constexpr int kRingSlots = 4;

std::span<const std::byte> bytes_of(const backend::WeightView& w) {
  return {w.data, static_cast<uint64_t>(w.n_mats) * w.matrix_bytes()};
}

}  // namespace

HostExperts::HostExperts(const model::Model& model, backend::Device& device, int first)
    : model_(model), registered_(model.layers().size()) {
  bool is_refused = false;
  for (const model::Layer& layer : model.layers().subspan(static_cast<size_t>(first))) {
    auto& leases = registered_[index(layer.id)];
    for (const backend::WeightView* w :
         {&layer.experts.gate, &layer.experts.up, &layer.experts.down}) {
      if (auto lease = device.register_host(bytes_of(*w))) leases.push_back(std::move(lease));
    }
    if (leases.size() < 3) leases.clear(), is_refused = true;
  }
  if (is_refused) make_ring(device, first);
}

void HostExperts::make_ring(backend::Device& device, int first) {
  uint64_t n_bytes = 0;
  for (const model::Layer& layer : model_.layers().subspan(static_cast<size_t>(first))) {
    if (is_readable(layer.id)) continue;
    n_bytes = std::max(n_bytes, backend::ExpertLayout(layer.experts).n_bytes);
  }
  try {
    for (int i = 0; i < kRingSlots; ++i) {
      ring_.push_back(device.allocate(backend::MemoryKind::pinned, n_bytes));
    }
  } catch (const Error&) {
    // As many as there are; with none these layers stay with the CPU.
  }
}

int HostExperts::n_registered() const {
  return static_cast<int>(
      std::ranges::count_if(registered_, [](const auto& leases) { return !leases.empty(); }));
}

void HostExperts::copy(policy::ExpertKey key, const backend::ExpertLayout& layout, std::byte* slot,
                       backend::Stream& copies) {
  const backend::ExpertsView& host = model_.layers()[index(key.layer)].experts;
  const backend::ExpertMatrices from = host.expert(key.expert.value);
  const std::pair<const backend::WeightView*, uint64_t> parts[] = {
      {&from.gate, 0}, {&from.up, layout.up_at}, {&from.down, layout.down_at}};
  if (is_readable(key.layer)) {
    for (const auto& [w, at] : parts) copies.copy(slot + at, w->data, w->matrix_bytes());
    return;
  }
  // The stream's order keeps a place of the ring until it has been copied on.
  std::byte* const ring = ring_[next_++ % ring_.size()].data();
  copies.call([from, layout, ring] {
    std::memcpy(ring, from.gate.data, from.gate.matrix_bytes());
    std::memcpy(ring + layout.up_at, from.up.data, from.up.matrix_bytes());
    std::memcpy(ring + layout.down_at, from.down.data, from.down.matrix_bytes());
  });
  copies.copy(slot, ring, layout.n_bytes);
}

}  // namespace sluice::engine
