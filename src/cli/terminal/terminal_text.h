// Texts that come from anywhere, names in files and answers of models, made safe to print: none of
// them ends a line early or steers the terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace sluice::cli {

// Whether a character, given as UTF-8, steers a terminal instead of being shown.
bool is_control(std::string_view character);

// The text without such characters; line ends and tabs stay.
std::string harmless(std::string_view text);

// The text with '?' for each of them, and for bytes that are no character.
std::string one_line(std::string_view text);

// "sluice: error: text" on standard error, in one line whatever the text is.
void print_error(std::string_view text);
void print_warning(std::string_view text);
void print_note(std::string_view text);

}  // namespace sluice::cli
