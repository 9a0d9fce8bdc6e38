// Checks of flag values whose refusal reads as a sentence a person can use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>

namespace sluice::cli {

// "4096" and "4k" become 4096, "1m" 1048576. Otherwise what is wrong with it; empty: nothing.
std::string read_whole_number(std::string& text, int64_t least, int64_t most);

// For CLI::Option::transform(): a whole number within both ends.
CLI::Validator whole_number(int64_t least, int64_t most);
inline CLI::Validator at_least(int least) {
  return whole_number(least, std::numeric_limits<int>::max());
}
// For the same: a number from `least` to `most`.
CLI::Validator number_between(double least, double most);

}  // namespace sluice::cli
