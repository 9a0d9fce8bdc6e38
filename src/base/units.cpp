// See units.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <array>
#include <cstdio>

namespace sluice {

std::string format_bytes(uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // The limits are those of the rounded text: 9.996 has the digits of 10.0, 1023.6 KiB is 1.00 MiB.
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, value, kUnits[unit]);
  return text.data();
}

}  // namespace sluice
