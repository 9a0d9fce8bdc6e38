// Error, as the public header shows it, and cat(), which builds its text. A broken promise in our
// own code is not an Error: check.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>

#include "sluice/error.h"

namespace sluice {

// Joins its arguments as operator<< prints them. (std::format is absent from GCC 12.)
template <typename... Args>
std::string cat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

}  // namespace sluice
