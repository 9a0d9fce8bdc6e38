// See format_spec.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/builtins/format_spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "text/jinja/values/print.h"
#include "text/jinja/values/unicode.h"

namespace sluice::text::jinja {
namespace {

constexpr size_t kLargestSize = 1'000'000'000;
constexpr size_t kMostDecimals = 400;  // more say nothing about a double

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string digits_of(uint64_t value, unsigned base, bool capital) {
  const std::string_view letters = capital ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string digits;
  do {
    digits += letters[value % base];
    value /= base;
  } while (value > 0);
  std::ranges::reverse(digits);
  return digits;
}

std::string with_thousands(const std::string& digits) {
  const size_t whole = std::min(digits.find('.'), digits.size());
  std::string grouped;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped + digits.substr(whole);
}

// Digits of a number without its sign.
std::string integer_digits(const FormatSpec& spec, uint64_t magnitude) {
  switch (spec.type) {
    case 'x':
      return (spec.alternate ? "0x" : "") + digits_of(magnitude, 16, false);
    case 'X':
      return (spec.alternate ? "0X" : "") + digits_of(magnitude, 16, true);
    case 'o':
      return (spec.alternate ? "0o" : "") + digits_of(magnitude, 8, false);
    case 'b':
      return (spec.alternate ? "0b" : "") + digits_of(magnitude, 2, false);
    default:
      return digits_of(magnitude, 10, false);
  }
}

std::string float_digits(const FormatSpec& spec, double magnitude) {
  if (!std::isfinite(magnitude)) return std::isnan(magnitude) ? "nan" : "inf";
  if (spec.type == '\0' && !spec.precision) return float_text(magnitude);
  const std::array<char, 6> pattern = {
      '%', '.', '*', spec.type == '\0' || spec.type == '%' ? 'f' : spec.type, '\0', '\0'};
  const double shown = spec.type == '%' ? magnitude * 100 : magnitude;
  std::array<char, 800> buffer;  // 309 digits before the point, kMostDecimals behind it
  const int n = std::snprintf(buffer.data(), buffer.size(), pattern.data(),
                              spec.precision.value_or(6), shown);
  return std::string(buffer.data(), static_cast<size_t>(n)) + (spec.type == '%' ? "%" : "");
}

void add_padded(TextBuilder& out, const FormatSpec& spec, std::string_view sign,
                std::string_view body, char default_align) {
  const char align = spec.align == '\0' ? default_align : spec.align;
  const size_t n = sign.size() + n_characters(body);
  const size_t padding = spec.width > n ? spec.width - n : 0;
  const size_t left = align == '<' ? 0 : align == '^' ? padding / 2 : padding;
  if (align != '=') out.repeat(spec.fill, left);
  out.add(sign);
  if (align == '=') out.repeat(spec.fill, left);
  out.add(body);
  out.repeat(spec.fill, padding - left);
}

void format_text(TextBuilder& out, const FormatSpec& spec, Value value) {
  TextBuilder text(out.runtime());
  spec.type == 'r' ? print_repr(text, value) : print(text, value);
  std::string_view shown = text.view();
  if (spec.precision) {
    size_t end = 0;
    for (int i = 0; i < *spec.precision && end < shown.size(); ++i) {
      end += n_character_bytes(shown[end]);
    }
    shown = shown.substr(0, end);
  }
  add_padded(out, spec, {}, shown, '<');
}

void format_number(TextBuilder& out, const FormatSpec& spec, Value value) {
  constexpr std::string_view kFloatTypes = "eEfFgG%";
  const bool as_float = value.is(Kind::number) || kFloatTypes.find(spec.type) < kFloatTypes.size();
  bool negative = false;
  std::string digits;
  if (as_float) {
    const double number = value.as_number();
    negative = std::signbit(number) && !std::isnan(number);
    digits = float_digits(spec, std::abs(number));
  } else {
    const int64_t number = value.as_integer();
    negative = number < 0;
    digits = integer_digits(
        spec, negative ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number));
  }
  if (spec.thousands) digits = with_thousands(digits);
  const std::string_view sign = negative           ? "-"
                                : spec.sign == '+' ? "+"
                                : spec.sign == ' ' ? " "
                                                   : "";
  add_padded(out, spec, sign, digits, '>');
}

}  // namespace

std::optional<size_t> read_size(Runtime& runtime, std::string_view text, size_t& i) {
  if (i >= text.size() || !is_digit(text[i])) return std::nullopt;
  size_t size = 0;
  for (; i < text.size() && is_digit(text[i]); ++i) {
    size = std::min(size * 10 + static_cast<size_t>(text[i] - '0'), kLargestSize);
  }
  runtime.expect_room(size);
  return size;
}

FormatSpec parse_format_spec(Runtime& runtime, std::string_view text) {
  constexpr std::string_view kAligns = "<>^=";
  constexpr std::string_view kTypes = "sdfFeEgGxXob%";
  const auto one_of = [](std::string_view set, std::string_view where, size_t at) {
    return at < where.size() && set.find(where[at]) != std::string_view::npos;
  };
  FormatSpec spec;
  size_t i = 0;
  const size_t n_fill = text.empty() ? 0 : n_character_bytes(text[0]);
  if (n_fill > 0 && one_of(kAligns, text, n_fill)) {
    spec.fill = text.substr(0, n_fill);
    spec.align = text[n_fill];
    i = n_fill + 1;
  } else if (one_of(kAligns, text, 0)) {
    spec.align = text[i++];
  }
  if (one_of("+- ", text, i)) spec.sign = text[i++];
  if (one_of("#", text, i)) spec.alternate = ++i > 0;
  if (one_of("0", text, i)) {
    ++i;
    if (spec.align == '\0') {
      spec.fill.assign(1, '0');
      spec.align = '=';
    }
  }
  spec.width = read_size(runtime, text, i).value_or(0);
  if (one_of(",", text, i)) spec.thousands = ++i > 0;
  if (one_of(".", text, i)) {
    const std::optional<size_t> precision = read_size(runtime, text, ++i);
    if (!precision) runtime.fail("format: a precision must follow the point");
    spec.precision = static_cast<int>(*precision);
  }
  if (one_of(kTypes, text, i)) spec.type = text[i++];
  if (i < text.size()) {
    runtime.fail(cat("format: the specification ", quoted(text), " is not supported"));
  }
  return spec;
}

void format_value(TextBuilder& out, const FormatSpec& spec, Value value) {
  if (spec.type == 's' || spec.type == 'r' || (spec.type == '\0' && !value.is_numeric()) ||
      (spec.type == '\0' && value.is(Kind::boolean))) {
    return format_text(out, spec, value);
  }
  Runtime& runtime = out.runtime();
  if (!value.is_numeric()) {
    runtime.fail_kind(cat("format: the value for '", spec.type, "'"), "a number", value);
  }
  constexpr std::string_view kIntegerTypes = "dxXob";
  if (value.is(Kind::number) && spec.type != '\0' &&
      kIntegerTypes.find(spec.type) != std::string_view::npos) {
    runtime.fail_kind(cat("format: the value for '", spec.type, "'"), "an integer", value);
  }
  if (spec.precision.value_or(0) > static_cast<int>(kMostDecimals)) {
    runtime.fail(cat("format: a precision of ", *spec.precision, ", the limit is ", kMostDecimals));
  }
  format_number(out, spec, value);
}

}  // namespace sluice::text::jinja
