// See literal.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/parse/literal.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "text/jinja/values/unicode.h"

namespace sluice::text::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 99;
}

// Escapes that stand for one other character; 0 for the rest.
char simple_escape(char c) {
  constexpr std::string_view kWritten = "\\'\"abfnrtv";
  constexpr std::string_view kMeant = "\\'\"\a\b\f\n\r\t\v";
  const size_t i = kWritten.find(c);
  return i == std::string_view::npos ? '\0' : kMeant[i];
}

// Reads up to n_max digits of a base at i, at least n_min of them.
std::optional<uint32_t> read_code(std::string_view text, size_t& i, int base, size_t n_min,
                                  size_t n_max) {
  uint32_t code = 0;
  size_t n = 0;
  while (n < n_max && i + n < text.size() && digit_value(text[i + n]) < base) {
    code = code * static_cast<uint32_t>(base) + static_cast<uint32_t>(digit_value(text[i + n]));
    ++n;
  }
  if (n < n_min) return std::nullopt;
  i += n;
  return code;
}

// The character that \x41, \u00e9, \U0001f600 or \101 names; i is behind the letter, or at the
// first octal digit.
uint32_t read_coded_escape(std::string_view text, size_t& i, char letter, Location at) {
  const size_t n = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
  const std::optional<uint32_t> code =
      is_digit(letter) ? read_code(text, i, 8, 1, 3) : read_code(text, i, 16, n, n);
  if (!code || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff)) {
    fail_at(Errc::bad_file, at,
            cat("string literal: the escape \\", letter, " does not name a character"));
  }
  return *code;
}

}  // namespace

std::string decode_string(std::string_view written, Location at) {
  std::string value;
  for (size_t i = 0; i < written.size();) {
    const char c = written[i++];
    if (c != '\\' || i == written.size()) {
      value += c;
      continue;
    }
    const char letter = written[i];
    if (const char meant = simple_escape(letter); meant != '\0') {
      value += meant;
      ++i;
    } else if (letter == '\n') {
      ++i;  // the line goes on
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      ++i;
      append_character(value, read_coded_escape(written, i, letter, at));
    } else if (letter >= '0' && letter <= '7') {
      append_character(value, read_coded_escape(written, i, letter, at));
    } else if (letter == 'N') {
      fail_at(Errc::bad_file, at, "string literal: \\N{...} is not supported; use \\uXXXX");
    } else {
      value += '\\';  // Python keeps what it does not know
    }
  }
  return value;
}

namespace {

// Digits of a base, single underscores between them; returns how many characters they take.
size_t n_digits(std::string_view text, int base) {
  size_t n = 0;
  while (n < text.size()) {
    const bool underscore = text[n] == '_' && n > 0 && n + 1 < text.size();
    const size_t digit = underscore ? n + 1 : n;
    if (digit_value(text[digit]) >= base) break;
    n = digit + 1;
  }
  return n;
}

std::string without_underscores(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  return digits;
}

Token integer_token(std::string_view text, size_t n_prefix, int base, Location at) {
  const std::string digits = without_underscores(text.substr(n_prefix));
  Token token{Token::Kind::integer, at, text};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), token.integer, base);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    fail_at(Errc::bad_file, at, cat("the integer ", quoted(text), " does not fit 64 bits"));
  }
  return token;
}

}  // namespace

Token read_number(std::string_view text, Location at) {
  if (text.size() > 2 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);
    const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    const size_t n = base == 0 ? 0 : n_digits(text.substr(2), base);
    if (n > 0) return integer_token(text.substr(0, 2 + n), 2, base, at);
  }
  const size_t n_whole = n_digits(text, 10);
  size_t n = n_whole;
  if (n + 1 < text.size() && text[n] == '.' && is_digit(text[n + 1])) {
    n += 1 + n_digits(text.substr(n + 1), 10);
  }
  if (n + 1 < text.size() && (text[n] | 0x20) == 'e') {
    const size_t sign = text[n + 1] == '+' || text[n + 1] == '-' ? 1 : 0;
    const size_t n_exponent = n_digits(text.substr(n + 1 + sign), 10);
    if (n_exponent > 0) n += 1 + sign + n_exponent;
  }
  if (n == n_whole) return integer_token(text.substr(0, n), 0, 10, at);
  Token token{Token::Kind::number, at, text.substr(0, n)};
  std::string digits = without_underscores(token.text);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), token.number);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    fail_at(Errc::bad_file, at, cat("the number ", quoted(token.text), " does not fit a float"));
  }
  return token;
}

}  // namespace sluice::text::jinja
