// Literals as templates write them: strings with Python's escapes, and numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/jinja/parse/lexer.h"

namespace sluice::text::jinja {

// The value of a string literal, given what stands between its quotes, at `at`.
std::string decode_string(std::string_view written, Location at);

// The number that `text` begins with, as a token (integer or number) whose text is what it took.
// text[0] is a digit.
Token read_number(std::string_view text, Location at);

}  // namespace sluice::text::jinja
