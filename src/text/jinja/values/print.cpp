// str() and repr() of print.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/print.h"

#include <array>
#include <charconv>
#include <cmath>

#include "text/jinja/values/unicode.h"

namespace sluice::text::jinja {
namespace {

void print_escape(TextBuilder& out, uint32_t c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const int n = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
  std::string escape = n == 2 ? "\\x" : n == 4 ? "\\u" : "\\U";
  for (int i = n - 1; i >= 0; --i) escape += kDigits[(c >> (4 * i)) & 0xf];
  out.add(escape);
}

// Python prefers single quotes, unless only double ones save an escape.
void print_quoted(TextBuilder& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out.add(quote);
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const uint32_t c = next_character(text, i);
    const std::string_view character = text.substr(begin, i - begin);
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out.add('\\');
      out.add(character);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out.add(c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
    } else if (c < 0x20 || c == 0x7f ||
               (c >= 0x80 && consists_of(CharacterClass::unprintable, character))) {
      print_escape(out, c);
    } else {
      out.add(character);
    }
  }
  out.add(quote);
}

void print_items(TextBuilder& out, const List& list) {
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out.add(", ");
    print_repr(out, list.items[i]);
  }
}

void print_dict(TextBuilder& out, const Dict& dict) {
  out.add('{');
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) out.add(", ");
    first = false;
    print_repr(out, key);
    out.add(": ");
    print_repr(out, value);
  }
  out.add('}');
}

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // Shortest digits as d.ddde[+-]xx; Python leaves the exponent out from 1e-4 up to below 1e16.
  std::array<char, 40> buffer;
  const auto in = [&](std::chars_format format) {
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format);
    return std::string(buffer.data(), end.ptr);
  };
  const std::string scientific = in(std::chars_format::scientific);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  if (value != 0 && (exponent < -4 || exponent >= 16)) return scientific;
  const std::string fixed = in(std::chars_format::fixed);
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

void print_repr(TextBuilder& out, Value value) {
  const Runtime::Level level(out.runtime());
  switch (value.kind()) {
    case Kind::undefined:
      return out.add("Undefined");
    case Kind::string:
      return print_quoted(out, value.as_string());
    case Kind::list:
      out.add('[');
      print_items(out, value.as_list());
      return out.add(']');
    case Kind::tuple:
      out.add('(');
      print_items(out, value.as_list());
      return out.add(value.as_list().items.size() == 1 ? ",)" : ")");
    case Kind::dict:
      return print_dict(out, value.as_dict());
    default:
      return print(out, value);
  }
}

void print(TextBuilder& out, Value value) {
  switch (value.kind()) {
    case Kind::undefined:
      return;
    case Kind::none:
      return out.add("None");
    case Kind::boolean:
      return out.add(value.as_boolean() ? "True" : "False");
    case Kind::integer:
      return out.add(std::to_string(value.as_integer()));
    case Kind::number:
      return out.add(float_text(value.as_number()));
    case Kind::string:
      return out.add(value.as_string());
    case Kind::object: {
      const Runtime::Level level(out.runtime());
      return out.add(value.as_object().describe(out.runtime()));
    }
    default:
      return print_repr(out, value);
  }
}

Value to_text(Runtime& runtime, Value value) {
  if (value.is_string()) return value;
  TextBuilder text(runtime);
  print(text, value);
  return text.finish();
}

}  // namespace sluice::text::jinja
