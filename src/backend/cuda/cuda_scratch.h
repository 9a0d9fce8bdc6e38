// Memory that operations use among themselves, from one to the next: what they were given, and more
// where that does not suffice, as where nobody has reserved anything. What a recording may point to
// is released with it and not before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "backend/device.h"
#include "base/units.h"

namespace sluice::backend::cuda {

class CudaScratch {
 public:
  enum class Use {
    zeros,  // written by kernels that leave zeros behind
    wanted,
    input,     // int8 rows of a projection
    attended,  // int8 rows of attention
    partials,
    scores,
    expert_input,
    hidden,
    outside,  // rows of experts; before them, what a wide step's recurrence makes of its rows
    groups,
    picks,      // parts of rows
    queries,    // normalised and turned
    normed,     // f32 rows, for float weights
    projected,  // rows of one projection, on their way to their place
    gate,       // f32 rows of experts whose matrices are computed one by one
    up,
    began,  // when the step's experts were looked up
    foreseen_input,
    foreseen_scores,
    foreseen_groups,
    pairs,  // of a wide step, by expert
    tiles,  // of them
    count,
  };

  // Device and memory outlive it.
  CudaScratch(Device& device, std::span<std::byte> given) : device_(device), given_(given) {}

  // At least so many bytes, the same place for the same size.
  std::byte* get(Use use, uint64_t n_bytes) {
    std::span<std::byte>& block = blocks_[static_cast<size_t>(use)];
    if (block.size() < n_bytes) block = take(round_up(n_bytes, kLine));
    return block.data();
  }
  template <typename T>
  T* get(Use use, int64_t n) {
    return reinterpret_cast<T*>(get(use, static_cast<uint64_t>(n) * sizeof(T)));
  }

 private:
  static constexpr uint64_t kLine = 256;

  std::span<std::byte> take(uint64_t n_bytes) {
    const uint64_t gap = -reinterpret_cast<uintptr_t>(given_.data()) % kLine;
    if (given_.size() >= gap + n_bytes) {
      const std::span<std::byte> piece = given_.subspan(gap, n_bytes);
      given_ = given_.subspan(gap + n_bytes);
      return piece;
    }
    more_.push_back(device_.allocate(MemoryKind::device, n_bytes));
    return {more_.back().data(), n_bytes};
  }

  Device& device_;
  std::span<std::byte> given_;
  std::vector<Buffer> more_;
  std::array<std::span<std::byte>, static_cast<size_t>(Use::count)> blocks_;
};

}  // namespace sluice::backend::cuda
