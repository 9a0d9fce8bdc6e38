// The characters of a GBNF text with their lines and columns, its white space and its escapes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::text::grammar {

class GbnfScanner {
 public:
  // The text outlives it. Throws Error if it is not UTF-8.
  explicit GbnfScanner(std::string_view text);

  size_t at() const { return at_; }
  bool at_end() const { return at_ >= text_.size(); }
  // 0 at the end.
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  // Takes `expected` if it comes next.
  bool take(std::string_view expected);

  // Spaces, tabs and comments; newlines too if asked for.
  void skip_space(bool newlines);
  // Whether, behind any white space and newlines, an alternative goes on.
  bool bar_follows() const;

  // One character, or an escape: \n \r \t \\ \" \[ \] \- \^ \xHH \uHHHH \UHHHHHHHH.
  char32_t take_character();
  // The letters, digits, hyphens and underscores that come next.
  std::string_view take_name();

  // Throws Error with the line and column of byte `at`.
  [[noreturn]] void refuse(size_t at, const std::string& what) const;
  // The same at the current place: what was found there, and what was expected.
  [[noreturn]] void refuse_found(const std::string& expected) const;

 private:
  char32_t take_escape();
  char32_t take_hex(int n_digits, size_t escape_at);

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace sluice::text::grammar
