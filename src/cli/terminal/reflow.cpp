// See reflow.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/reflow.h"

#include <algorithm>
#include <cwchar>

namespace sluice::cli {
namespace {

int columns_of(wchar_t c) { return std::max(0, ::wcwidth(c)); }

// Where the next character of a line goes in a terminal of `n_columns`.
struct Place {
  int n_columns;
  int row = 0;
  int column = 0;

  bool is_full(int n_more) const { return column + n_more > n_columns; }
  void put(int n) {
    if (is_full(n)) new_row();
    column += n;
  }
  void new_row() {
    ++row;
    column = 0;
  }
};

}  // namespace

int rows_above(std::wstring_view text, int n_before, int n_now) {
  if (n_before <= 0 || n_now <= 0) return 0;
  Place before{n_before}, now{n_now};
  int n_blanks = 0;  // columns at the end of what was put, that may never have been drawn
  for (const wchar_t c : text) {
    const int n = columns_of(c);
    if (before.is_full(n)) {
      if (before.column < n_before) n_blanks = std::max(n_blanks, 1);  // a wide one did not fit
      before.new_row();
      if (n_blanks > 0) now.new_row();
      n_blanks = 0;
    }
    before.put(n);
    if (c == L' ') {
      n_blanks += n;
      continue;
    }
    for (; n_blanks > 0; --n_blanks) now.put(1);
    now.put(n);
  }
  for (; n_blanks > 0; --n_blanks) now.put(1);
  return now.is_full(1) ? now.row + 1 : now.row;
}

}  // namespace sluice::cli
