// Places in a template, and the errors that name them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::text::jinja {

// From 1; columns count bytes. Line 0 is outside of the template, where its input is read.
struct Location {
  int line = 1;
  int column = 1;
};

// For messages: in single quotes, on one line, and not longer than a line can hold.
std::string quoted(std::string_view text);

// The same without quotes, for text that is itself a message.
std::string on_one_line(std::string_view text, size_t max_bytes);

// Throws Error "chat template, line L, column C: <what>".
[[noreturn]] void fail_at(Errc code, Location at, std::string_view what);

}  // namespace sluice::text::jinja
