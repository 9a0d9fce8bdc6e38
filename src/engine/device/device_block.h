// A block of a device's memory, as large as the planner priced it, from which pieces are taken
// front to back. A piece that does not fit is a bug of the planner. All blocks of a runtime are
// pieces of one, its arena: what the device has left is known after a single allocation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/device.h"
#include "base/check.h"
#include "base/units.h"
#include "policy/plan/pricing.h"

namespace sluice::engine {

class DeviceBlock {
 public:
  DeviceBlock(backend::Device& device, uint64_t n_bytes)
      : memory_(device.allocate(backend::MemoryKind::device, n_bytes)) {}
  // A piece of another, which outlives it.
  DeviceBlock(DeviceBlock& from, uint64_t n_bytes) : memory_(from.allocator()(n_bytes)) {}

  std::byte* take(uint64_t n_bytes) {
    std::byte* const piece = memory_.data() + n_taken_;
    n_taken_ += round_up(n_bytes, policy::kTensorAlignment);
    CHECK(n_taken_ <= memory_.n_bytes());
    return piece;
  }

  // For whoever allocates; this outlives what it gives.
  backend::Allocate allocator() {
    return [this](uint64_t n) { return backend::Buffer(take(n), n, [](std::byte*) {}); };
  }

  uint64_t n_bytes() const { return memory_.n_bytes(); }

 private:
  backend::Buffer memory_;
  uint64_t n_taken_ = 0;
};

}  // namespace sluice::engine
