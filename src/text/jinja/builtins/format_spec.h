// How one value is written into a place of a format: width, fill, precision and the like.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/runtime.h"

namespace sluice::text::jinja {

struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =, or by the value's kind
  char sign = '-';    // '-': only minus; '+': both; ' ': a space for plus
  bool alternate = false;
  bool thousands = false;
  size_t width = 0;
  std::optional<int> precision;
  char type = '\0';  // s d f e g x X o b r and their like; 0: by the value's kind
};

// Digits at text[i], which moves behind them; the limits see the number.
std::optional<size_t> read_size(Runtime& runtime, std::string_view text, size_t& i);

// What follows the colon in "{:>8.2f}".
FormatSpec parse_format_spec(Runtime& runtime, std::string_view text);

void format_value(TextBuilder& out, const FormatSpec& spec, Value value);

}  // namespace sluice::text::jinja
