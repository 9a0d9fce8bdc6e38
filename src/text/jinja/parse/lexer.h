// A template's text as tokens: literal text with all whitespace control applied, and the words
// inside the tags. Whitespace is treated as Hugging Face sets Jinja up: a newline after a block tag
// and spaces before one are dropped (trim_blocks, lstrip_blocks), and so is one newline at the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/limits.h"
#include "text/jinja/location.h"

namespace sluice::text::jinja {

struct Token {
  enum class Kind : uint8_t {
    text,          // between the tags
    output_begin,  // {{
    output_end,    // }}
    block_begin,   // {%
    block_end,     // %}
    name,
    string,
    integer,
    number,
    symbol,
    end
  };
  Kind kind;
  Location at;
  std::string_view text;  // of a string: its value
  int64_t integer = 0;
  double number = 0;
};

// What tokens, and all that is made of them, point into. It stays where it is.
struct Source {
  std::string text;                  // newlines are \n
  std::deque<std::string> literals;  // strings whose value differs from how they are written
};

// Checks the text, brings its newlines into one form and stores it.
void set_source(Source& source, std::string_view text, const Limits& limits);

// Ends with an `end` token. Throws Error (bad_file) where the text is no template.
std::vector<Token> tokenize(Source& source);

}  // namespace sluice::text::jinja
