// Where the beginning of a line of several rows is after its terminal has become wider or narrower.
// No drawing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace sluice::cli {

// Rows between the beginning of `text` and the place behind it, in a terminal that had `n_before`
// columns when it was drawn and has moved it to `n_now`. A row that was full goes on in the next
// one. One that ended in a blank does not: the line editor draws no blanks at a row's end. 0
// columns are a terminal of unknown size.
int rows_above(std::wstring_view text, int n_before, int n_now);

}  // namespace sluice::cli
