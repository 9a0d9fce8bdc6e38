// See host_experts.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/host_experts.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/step_memory.h"

namespace sluice::engine {
namespace {

// Calls copy(to, from, n_bytes) for each piece in which an expert stands.
template <typename Copy>
void copy_pieces(const backend::ExpertsView& experts, int32_t expert, std::byte* slot,
                 const Copy& copy) {
  const backend::ExpertLayout layout(experts);
  const backend::ExpertMatrices from = experts.expert(expert);
  if (experts.slots) {
    copy(slot, from.gate.data, layout.n_bytes);
    return;
  }
  copy(slot, from.gate.data, from.gate.matrix_bytes());
  copy(slot + layout.up_at, from.up.data, from.up.matrix_bytes());
  copy(slot + layout.down_at, from.down.data, from.down.matrix_bytes());
}

}  // namespace

void copy_expert(const backend::ExpertsView& experts, int32_t expert, std::byte* slot,
                 backend::Stream& copies) {
  copy_pieces(experts, expert, slot, [&](std::byte* to, const std::byte* from, uint64_t n_bytes) {
    copies.copy(to, from, n_bytes);
  });
}

void copy_expert(const backend::ExpertsView& experts, int32_t expert, std::byte* slot,
                 Upload& upload, bool weaves) {
  const backend::ExpertLayout layout(experts);
  const backend::ExpertMatrices from = experts.expert(expert);
  if (experts.slots) {
    upload.add(slot, {from.gate.data, layout.n_bytes});
    return;
  }
  upload.add(slot, from.gate, weaves);
  upload.add(slot + layout.up_at, from.up, weaves);
  upload.add(slot + layout.down_at, from.down, weaves);
}

HostExperts::HostExperts(RegisteredExperts& registered, backend::Device& device, int first,
                         bool is_needed, double held_gbps)
    : registered_(registered), is_needed_(is_needed) {
  if (held_gbps > 0.0) pace_.emplace(held_gbps);
  if (!is_needed) return;
  registered.add_layers(first);
  const auto layers = registered.model().layers().subspan(static_cast<size_t>(first));
  n_registered_ = static_cast<int>(std::ranges::count_if(
      layers, [&](const model::Layer& layer) { return registered.contains(layer.id); }));
  if (n_registered_ < std::ssize(layers)) make_ring(device, first);
}

void HostExperts::make_ring(backend::Device& device, int first) {
  uint64_t n_bytes = 0;
  for (const model::Layer& layer :
       registered_.model().layers().subspan(static_cast<size_t>(first))) {
    if (registered_.contains(layer.id)) continue;
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

int HostExperts::n_copies(LayerId layer) const {
  return registered_.contains(layer) && !experts_of(layer).slots ? 3 : 1;
}

void HostExperts::copy(policy::ExpertKey key, const backend::ExpertLayout& layout, std::byte* slot,
                       backend::Stream& copies) {
  if (pace_) copies.call([this] { pace_->begin(); });
  copy_now(key, layout, slot, copies);
  if (pace_) copies.call([this, n_bytes = layout.n_bytes] { pace_->end(n_bytes); });
}

void HostExperts::copy_now(policy::ExpertKey key, const backend::ExpertLayout& layout,
                           std::byte* slot, backend::Stream& copies) {
  const backend::ExpertsView& experts = experts_of(key.layer);
  if (registered_.contains(key.layer)) {
    copy_expert(experts, key.expert.value, slot, copies);
    return;
  }
  // The stream's order keeps a place of the ring until it has been copied on.
  std::byte* const ring = ring_[next_++ % ring_.size()].data();
  copies.call([&experts, key, ring] {
    copy_pieces(experts, key.expert.value, ring,
                [](std::byte* to, const std::byte* from, uint64_t n) { std::memcpy(to, from, n); });
  });
  copies.copy(slot, ring, layout.n_bytes);
}

}  // namespace sluice::engine
