// Who is better than whom: the larger value, and of equal values the lower index. Both are packed
// into one integer, so that selecting and sorting compare integers and no two keys are equal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::sampler {

// A larger key is better. value must not be NaN; -0 counts as 0. index < 2^32.
inline uint64_t rank_key(float value, size_t index) {
  // The bits of non-negative floats are in the order of their values, those of negative ones in
  // the opposite order.
  const auto bits = std::bit_cast<uint32_t>(value + 0.0f);
  const uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return (static_cast<uint64_t>(ordered) << 32) | static_cast<uint32_t>(~index);
}

inline size_t index_of(uint64_t key) { return static_cast<uint32_t>(~key); }

inline float value_of(uint64_t key) {
  const auto ordered = static_cast<uint32_t>(key >> 32);
  return std::bit_cast<float>((ordered >> 31) != 0 ? ordered & 0x7FFFFFFFu : ~ordered);
}

// Moves the k best to the front, in no order, and returns them; all where there are fewer.
std::span<uint64_t> select_best(std::span<uint64_t> keys, size_t k);

// Moves to the front, in no order, the fewest best whose weights reach `target` together, but
// min_keep at least, and returns them; all where the weights do not reach it.
// weights[index_of(key)] belongs to key.
std::span<uint64_t> select_weight(std::span<uint64_t> keys, std::span<const float> weights,
                                  double target, size_t min_keep);

}  // namespace sluice::sampler
