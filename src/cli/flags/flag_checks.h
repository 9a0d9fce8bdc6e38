// Checks of flag values whose refusal reads as a sentence a person can use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <limits>

namespace sluice::cli {

// A whole number from `least` on. (The parser's own PositiveNumber prints the largest double.)
inline CLI::Range at_least(int least) { return CLI::Range(least, std::numeric_limits<int>::max()); }

}  // namespace sluice::cli
