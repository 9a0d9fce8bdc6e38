// Filters of builtins.h that make numbers.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

#include "text/jinja/builtins/arguments.h"
#include "text/jinja/builtins/builtins.h"
#include "text/jinja/values/text.h"

namespace sluice::text::jinja {
namespace {

constexpr double kIntegerLimit = 9223372036854775808.0;  // 2^63

bool fits_integer(double value) { return value >= -kIntegerLimit && value < kIntegerLimit; }

// Digits as Python accepts them: spaces around, underscores between.
std::string cleaned(std::string_view text) {
  text = strip(text, Side::both);
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between = text[i] == '_' && i > 0 && i + 1 < text.size() && text[i - 1] != '_';
    if (!between) digits += text[i];
  }
  return digits;
}

std::optional<int64_t> parse_integer(std::string_view text, int base) {
  std::string digits = cleaned(text);
  if (digits.starts_with('+')) digits.erase(0, 1);
  const size_t sign = digits.starts_with('-') ? 1 : 0;
  const std::string_view prefix = base == 16 ? "xX" : base == 8 ? "oO" : base == 2 ? "bB" : "";
  if (digits.size() > sign + 2 && digits[sign] == '0' &&
      prefix.find(digits[sign + 1]) != std::string_view::npos) {
    digits.erase(sign, 2);
  }
  int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

std::optional<double> parse_float(std::string_view text) {
  std::string digits = cleaned(text);
  if (digits.starts_with('+')) digits.erase(0, 1);
  double value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

Value to_integer(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'int'", arguments);
  const Value fallback = reader.next_or("default", Value::integer(0));
  const int64_t base = reader.next_integer_or("base", 10);
  reader.done();
  if (base < 2 || base > 36) reader.fail("'base' must be from 2 to 36");
  if (self.is_undefined()) runtime.fail_undefined(self);
  if (self.is_integral()) return Value::integer(self.as_integer());
  std::optional<double> number;
  if (self.is(Kind::number)) number = self.as_number();
  if (self.is_string()) {
    runtime.work(self.as_string().size());
    if (const auto value = parse_integer(self.as_string(), static_cast<int>(base))) {
      return Value::integer(*value);
    }
    number = parse_float(self.as_string());
  }
  if (!number || !std::isfinite(*number)) return fallback;
  if (!fits_integer(*number)) reader.fail("the number does not fit 64 bits");
  return Value::integer(static_cast<int64_t>(*number));
}

Value to_float(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'float'", arguments);
  const Value fallback = reader.next_or("default", Value::number(0));
  reader.done();
  if (self.is_undefined()) runtime.fail_undefined(self);
  if (self.is_numeric()) return Value::number(self.as_number());
  if (!self.is_string()) return fallback;
  runtime.work(self.as_string().size());
  const std::optional<double> value = parse_float(self.as_string());
  return value ? Value::number(*value) : fallback;
}

// To the nearest, halves to even, on the exact value: printf() does just that.
double rounded(double value, int precision) {
  if (precision < 0) {
    const double scale = std::pow(10.0, -precision);
    return std::nearbyint(value / scale) * scale;
  }
  std::array<char, 800> buffer;
  const int n = std::snprintf(buffer.data(), buffer.size(), "%.*f", precision, value);
  double result = value;
  std::from_chars(buffer.data(), buffer.data() + n, result);
  return result;
}

Value round(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'round'", arguments);
  const int64_t precision = reader.next_integer_or("precision", 0);
  const std::string_view method = reader.next_text_or("method", "common");
  reader.done();
  if (!self.is_numeric()) runtime.fail_kind("filter 'round': the value", "a number", self);
  if (precision < -300 || precision > 300) reader.fail("'precision' must be from -300 to 300");
  const int digits = static_cast<int>(precision);
  if (method == "common") {
    if (self.is_integral() && digits >= 0) return Value::integer(self.as_integer());
    const double value = rounded(self.as_number(), digits);
    if (self.is_integral() && fits_integer(value)) {
      return Value::integer(static_cast<int64_t>(value));
    }
    return Value::number(value);
  }
  if (method != "ceil" && method != "floor") {
    reader.fail("'method' must be 'common', 'ceil' or 'floor'");
  }
  const double scale = std::pow(10.0, digits);
  const double scaled = self.as_number() * scale;
  return Value::number((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value absolute(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'abs'", arguments);
  reader.done();
  if (!self.is_numeric()) runtime.fail_kind("filter 'abs': the value", "a number", self);
  if (self.is(Kind::number)) return Value::number(std::abs(self.as_number()));
  int64_t value = self.as_integer();
  if (value < 0 && __builtin_sub_overflow(int64_t{0}, value, &value)) {
    reader.fail("the result does not fit 64 bits");
  }
  return Value::integer(value);
}

}  // namespace

const BuiltinTable& number_filters() {
  static const BuiltinTable table = {
      {"abs", absolute},
      {"float", to_float},
      {"int", to_integer},
      {"round", round},
  };
  return table;
}

}  // namespace sluice::text::jinja
