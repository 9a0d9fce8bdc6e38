// Colours and the like, where the terminal has them and NO_COLOR does not forbid them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace sluice::cli {

// Whether what is written to this file may hold escape sequences.
bool has_style(int file);

// Whether the terminal can move its cursor: TERM is set, and not to dumb.
bool is_smart_terminal();

// The text, dimmed where standard error is such a terminal.
std::string dimmed_on_stderr(std::string_view text);

// Columns of the terminal behind a file; 0: none.
int terminal_columns(int file);

}  // namespace sluice::cli
