// The time, as a number: seconds since some moment that is the same for the whole run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace sluice {

inline double wall_seconds() {
  using std::chrono::steady_clock;
  return std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace sluice
