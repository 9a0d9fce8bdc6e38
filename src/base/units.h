// Byte counts for people: "17.3 GiB".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kGiB = 1024 * kMiB;

// Three significant digits and the largest fitting unit of B, KiB, MiB, GiB.
std::string format_bytes(uint64_t bytes);

// The least multiple of `step` that is not below `value`; step > 0.
constexpr uint64_t round_up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace sluice
