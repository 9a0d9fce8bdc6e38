// The smallest parts of a regular expression: single characters, escapes and classes, as sets.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/grammar/code_points.h"

namespace sluice::text::grammar {

class RegexScanner {
 public:
  // Valid UTF-8 that outlives it.
  explicit RegexScanner(std::string_view pattern) : pattern_(pattern) {}

  bool at_end() const { return at_ >= pattern_.size(); }
  // 0 at the end.
  char peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  bool take(char expected) {
    if (at_end() || peek() != expected) return false;
    ++at_;
    return true;
  }
  char32_t take_character();
  // A number of so many hexadecimal digits.
  char32_t take_hex(int n_digits);

  // Throws Error: the pattern, what was found in it, and behind how many bytes.
  [[noreturn]] void refuse(const std::string& found) const;

 private:
  std::string_view pattern_;
  size_t at_ = 0;
};

// The character, escape, class or `.` that comes next.
CodePointSet take_character_set(RegexScanner& scan);

}  // namespace sluice::text::grammar
