// JSON of print.h, in the form of Python's json.dumps(), which chat templates were written
// against.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "text/jinja/values/operators.h"
#include "text/jinja/values/print.h"
#include "text/jinja/values/unicode.h"

namespace sluice::text::jinja {
namespace {

std::string unicode_escape(uint32_t unit) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string escape = "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) escape += kDigits[(unit >> shift) & 0xf];
  return escape;
}

class JsonPrinter {
 public:
  JsonPrinter(TextBuilder& out, const JsonStyle& style) : out_(out), style_(style) {}

  void print_value(Value value) {
    const Runtime::Level level(out_.runtime());
    switch (value.kind()) {
      case Kind::undefined:
        out_.runtime().fail_undefined(value);
      case Kind::none:
        return out_.add("null");
      case Kind::boolean:
        return out_.add(value.as_boolean() ? "true" : "false");
      case Kind::integer:
        return out_.add(std::to_string(value.as_integer()));
      case Kind::number:
        return out_.add(number_text(value.as_number()));
      case Kind::string:
        return print_string(value.as_string());
      case Kind::list:
      case Kind::tuple:
        return print_list(value.as_list());
      case Kind::dict:
        return print_dict(value.as_dict());
      case Kind::object:
        out_.runtime().fail("tojson: a function or object has no JSON form");
    }
  }

 private:
  void print_string(std::string_view text);
  void print_list(const List& list);
  void print_dict(const Dict& dict);
  void print_key(Value key);

  static std::string number_text(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_text(value);
  }
  void open(char bracket) {
    out_.add(bracket);
    ++depth_;
  }
  void close(char bracket) {
    --depth_;
    break_line();
    out_.add(bracket);
  }
  void separate(bool first) {
    if (!first) out_.add(style_.between_items);
    break_line();
  }
  void break_line() {
    if (!style_.indent) return;
    out_.add('\n');
    out_.repeat(*style_.indent, depth_);
  }

  TextBuilder& out_;
  const JsonStyle& style_;
  size_t depth_ = 0;
};

void JsonPrinter::print_string(std::string_view text) {
  out_.add('"');
  size_t plain = 0;  // from here on nothing needs an escape so far
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const uint32_t c = next_character(text, i);
    constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    const size_t special = c < 0x80 ? kSpecial.find(static_cast<char>(c)) : std::string_view::npos;
    if (special == std::string_view::npos && c >= 0x20 && (c < 0x80 || !style_.ensure_ascii)) {
      continue;
    }
    out_.add(text.substr(plain, begin - plain));
    plain = i;
    if (special != std::string_view::npos) {
      out_.add('\\');
      out_.add(kLetters[special]);
    } else if (c < 0x10000) {
      out_.add(unicode_escape(c));
    } else {  // as UTF-16 has it
      out_.add(unicode_escape(0xd800 + ((c - 0x10000) >> 10)));
      out_.add(unicode_escape(0xdc00 + ((c - 0x10000) & 0x3ff)));
    }
  }
  out_.add(text.substr(plain));
  out_.add('"');
}

void JsonPrinter::print_list(const List& list) {
  if (list.items.empty()) return out_.add("[]");
  open('[');
  bool first = true;
  for (const Value item : list.items) {
    separate(std::exchange(first, false));
    print_value(item);
  }
  close(']');
}

void JsonPrinter::print_dict(const Dict& dict) {
  if (dict.size() == 0) return out_.add("{}");
  open('{');
  const auto print_entry = [&](const Dict::Entry& entry, bool first) {
    separate(first);
    print_key(entry.key);
    out_.add(style_.after_key);
    print_value(entry.value);
  };
  bool first = true;
  if (style_.sort_keys) {
    out_.runtime().expect_room(dict.size() * sizeof(Dict::Entry));
    std::vector<Dict::Entry> sorted = dict.entries();
    std::ranges::stable_sort(sorted, [&](const Dict::Entry& a, const Dict::Entry& b) {
      return order(out_.runtime(), a.key, b.key) < 0;
    });
    for (const Dict::Entry& entry : sorted) print_entry(entry, std::exchange(first, false));
  } else {
    for (const Dict::Entry& entry : dict.entries()) print_entry(entry, std::exchange(first, false));
  }
  close('}');
}

// JSON knows only strings as keys; Python writes the others as their values look.
void JsonPrinter::print_key(Value key) {
  if (key.is_string()) return print_string(key.as_string());
  out_.add('"');
  print_value(key);
  out_.add('"');
}

}  // namespace

void print_json(TextBuilder& out, Value value, const JsonStyle& style) {
  JsonPrinter(out, style).print_value(value);
}

}  // namespace sluice::text::jinja
