// Values as text: as Python's str() and repr() write them, and as its json.dumps() does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/runtime.h"

namespace sluice::text::jinja {

// str(): a string as it is; undefined is empty.
void print(TextBuilder& out, Value value);

// repr(): strings in quotes, with escapes.
void print_repr(TextBuilder& out, Value value);

// print() into a string; a string is returned as it is.
Value to_text(Runtime& runtime, Value value);

// The shortest text that reads back as the same float: "1.0", "1e-05", "inf".
std::string float_text(double value);

struct JsonStyle {
  std::optional<std::string> indent;  // of one level; without it all is one line
  std::string between_items = ", ";
  std::string after_key = ": ";
  bool sort_keys = false;
  bool ensure_ascii = false;
};

void print_json(TextBuilder& out, Value value, const JsonStyle& style);

}  // namespace sluice::text::jinja
