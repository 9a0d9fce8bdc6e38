// See location.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/location.h"

namespace sluice::text::jinja {
namespace {

constexpr size_t kLongestQuote = 80;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

std::string on_one_line(std::string_view text, size_t max_bytes) {
  const bool cut = text.size() > max_bytes;
  if (cut) {
    while (max_bytes > 0 && continues_character(text[max_bytes])) --max_bytes;
    text = text.substr(0, max_bytes);
  }
  std::string line;
  for (const char c : text) {
    if (c == '\n') {
      line += "\\n";
    } else {
      line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  return cut ? line + "..." : line;
}

std::string quoted(std::string_view text) {
  return cat('\'', on_one_line(text, kLongestQuote), '\'');
}

void fail_at(Errc code, Location at, std::string_view what) {
  if (at.line == 0) throw Error(code, cat("chat template, its input: ", what));
  throw Error(code, cat("chat template, line ", at.line, ", column ", at.column, ": ", what));
}

}  // namespace sluice::text::jinja
