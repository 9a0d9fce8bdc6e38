// See word_wrap.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/word_wrap.h"

#include <algorithm>
#include <cwchar>

#include "base/error.h"
#include "text/utf8.h"

namespace sluice::cli {
namespace {

constexpr int kLeastColumns = 20;
constexpr int kTabColumns = 8;

// As the locale's tables have it: 2 for wide ones, 0 for what is put on the one before.
int columns_of(std::string_view character) {
  wchar_t wide = 0;
  std::mbstate_t state{};
  const size_t n = std::mbrtowc(&wide, character.data(), character.size(), &state);
  if (n == 0 || n > character.size()) return 1;
  return std::max(0, ::wcwidth(wide));
}

}  // namespace

void WordWrap::put_character(std::string_view c, int n_columns, std::string& out) {
  if (c == "\n") {
    out += c;
    return end_line();
  }
  if (c == " " || c == "\t") {
    word_.clear();
    word_columns_ = 0;
    const int wide = c == " " ? 1 : kTabColumns - column_ % kTabColumns;
    if (column_ + wide > n_columns) {  // the line's end stands for it
      out += '\n';
      return end_line();
    }
    column_ += wide;
    out += c;
    return;
  }
  const int wide = columns_of(c);
  if (column_ + wide > n_columns) {
    const bool can_move = word_columns_ > 0 && word_columns_ < column_;
    // By its column: in the last one, terminals differ in where the cursor is.
    if (can_move) out += cat("\x1b[", column_ - word_columns_ + 1, "G\x1b[K");
    out += '\n';
    column_ = can_move ? word_columns_ : 0;
    if (can_move) {
      out += word_;
    } else {
      word_.clear();
      word_columns_ = 0;
    }
  }
  out += c;
  word_ += c;
  column_ += wide;
  word_columns_ += wide;
}

std::string WordWrap::add(std::string_view text, int n_columns) {
  if (n_columns < kLeastColumns) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const size_t n = std::max<size_t>(1, text::next_utf8(text).n_bytes);
    put_character(text.substr(0, n), n_columns, out);
    text.remove_prefix(n);
  }
  return out;
}

}  // namespace sluice::cli
