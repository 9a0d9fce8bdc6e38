// See flag_checks.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/flag_checks.h"

#include <charconv>

#include "base/error.h"

namespace sluice::cli {
namespace {

constexpr size_t kShownBytes = 40;

std::string expected_range(int64_t least, int64_t most) {
  const bool is_open = most >= std::numeric_limits<int>::max();
  return is_open ? cat(least, " or more") : cat(least, " to ", most);
}

}  // namespace

std::string read_whole_number(std::string& text, int64_t least, int64_t most) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit(stop, static_cast<size_t>(end - stop));
  const int64_t times = unit.empty()                 ? 1
                        : unit == "k" || unit == "K" ? 1024
                        : unit == "m" || unit == "M" ? 1024 * 1024
                                                     : 0;
  if (error == std::errc::invalid_argument || times == 0) {
    return cat("'", text.substr(0, kShownBytes), "' is no whole number; expected ",
               expected_range(least, most),
               least >= 0 && most >= 4096 ? ", such as 4096 or 4k" : "");
  }
  const bool is_huge = error != std::errc() || value > most / times || value < least / times - 1;
  if (is_huge || value * times < least || value * times > most) {
    const bool fits_no_int = most >= std::numeric_limits<int>::max() && value >= least;
    return cat("is ", text.substr(0, kShownBytes), "; expected ", expected_range(least, most),
               fits_no_int ? cat(", at most ", most) : "");
  }
  text = std::to_string(value * times);
  return "";
}

CLI::Validator whole_number(int64_t least, int64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) { return read_whole_number(text, least, most); }, "");
}

CLI::Validator number_between(double least, double most) {
  const auto check = [least, most](std::string& text) -> std::string {
    double value = 0.0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end && value >= least && value <= most) return "";
    return cat("is '", text.substr(0, kShownBytes), "'; expected a number from ", least, " to ",
               most);
  };
  return CLI::Validator(check, "");
}

}  // namespace sluice::cli
