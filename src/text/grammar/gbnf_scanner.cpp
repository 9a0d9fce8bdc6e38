// See gbnf_scanner.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/gbnf_scanner.h"

#include <algorithm>

#include "base/error.h"
#include "text/grammar/code_points.h"
#include "text/utf8.h"

namespace sluice::text::grammar {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

GbnfScanner::GbnfScanner(std::string_view text) : text_(text) {
  const size_t valid = valid_utf8_length(text);
  if (valid < text.size())
    refuse(valid, "found a byte that is not UTF-8; save the grammar as UTF-8");
}

bool GbnfScanner::take(std::string_view expected) {
  if (!text_.substr(std::min(at_, text_.size())).starts_with(expected)) return false;
  at_ += expected.size();
  return true;
}

void GbnfScanner::skip_space(bool newlines) {
  while (!at_end()) {
    const char c = peek();
    if (c == '#') {
      while (!at_end() && peek() != '\n' && peek() != '\r') ++at_;
    } else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
      ++at_;
    } else {
      return;
    }
  }
}

bool GbnfScanner::bar_follows() const {
  GbnfScanner ahead = *this;
  ahead.skip_space(true);
  return ahead.peek() == '|';
}

std::string_view GbnfScanner::take_name() {
  const size_t begin = at_;
  while (is_name_character(peek())) ++at_;
  return text_.substr(begin, at_ - begin);
}

char32_t GbnfScanner::take_hex(int n_digits, size_t escape_at) {
  char32_t value = 0;
  for (int i = 0; i < n_digits; ++i, ++at_) {
    const int digit = hex_value(peek());
    if (digit < 0) refuse_found(cat(n_digits, " hexadecimal digits"));
    value = value << 4 | static_cast<char32_t>(digit);
  }
  if (value > kLastCodePoint || (value >= 0xd800 && value <= 0xdfff)) {
    refuse(escape_at,
           "found an escape that is no Unicode character, expected U+0000 to U+10FFFF "
           "without surrogates");
  }
  return value;
}

char32_t GbnfScanner::take_escape() {
  const size_t escape_at = at_ - 1;
  const char c = peek();
  ++at_;
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'x':
      return take_hex(2, escape_at);
    case 'u':
      return take_hex(4, escape_at);
    case 'U':
      return take_hex(8, escape_at);
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-':
    case '^':
      return static_cast<char32_t>(c);
    default:
      refuse(escape_at,
             "found an unknown escape, expected one of \\n \\r \\t \\\\ \\\" \\[ \\] "
             "\\- \\^ \\xHH \\uHHHH \\UHHHHHHHH");
  }
}

char32_t GbnfScanner::take_character() {
  if (at_end()) refuse_found("a character");
  if (peek() == '\\') {
    ++at_;
    return take_escape();
  }
  return decode_utf8(text_, at_);
}

void GbnfScanner::refuse(size_t at, const std::string& what) const {
  const std::string_view before = text_.substr(0, std::min(at, text_.size()));
  const size_t line = 1 + static_cast<size_t>(std::ranges::count(before, '\n'));
  const size_t line_begin = before.rfind('\n') + 1;  // 0 if there is none
  // Columns count characters: continuation bytes are none.
  const auto begins = [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; };
  const auto column = 1 + std::ranges::count_if(before.substr(line_begin), begins);
  throw Error(Errc::bad_request, cat("grammar, line ", line, ", column ", column, ": ", what));
}

void GbnfScanner::refuse_found(const std::string& expected) const {
  if (at_end()) refuse(at_, cat("found the end of the grammar, expected ", expected));
  if (peek() == '\n') refuse(at_, cat("found the end of the line, expected ", expected));
  size_t end = at_;
  const char32_t c = decode_utf8(text_, end);
  const std::string shown = c < 0x20 || c == 0x7f ? cat("control character ", +c)
                                                  : std::string(text_.substr(at_, end - at_));
  refuse(at_, cat("found ", shown, ", expected ", expected));
}

}  // namespace sluice::text::grammar
