// Examples of each command, for its help and for the manual page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace sluice::cli {

struct Example {
  std::string_view command;  // "run"; empty: of the program as a whole
  std::string_view line;
  std::string_view what;
};

std::span<const Example> examples();

}  // namespace sluice::cli
