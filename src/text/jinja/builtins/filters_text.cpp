// Filters of builtins.h that make text.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/builtins/arguments.h"
#include "text/jinja/builtins/builtins.h"
#include "text/jinja/builtins/format.h"
#include "text/jinja/builtins/url.h"
#include "text/jinja/values/json.h"
#include "text/jinja/values/print.h"
#include "text/jinja/values/text.h"
#include "text/jinja/values/unicode.h"

namespace sluice::text::jinja {
namespace {

// Most filters take any value and see how it prints.
std::string_view text_of(Runtime& runtime, Value self) {
  const std::string_view text = to_text(runtime, self).as_string();
  runtime.work(text.size());
  return text;
}

// A filter that maps text to text and has no arguments.
template <std::string (*function)(std::string_view)>
Value map_text(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "filter", arguments).done();
  const std::string_view text = text_of(runtime, self);
  runtime.expect_room(3 * text.size());
  return runtime.make_string(function(text));
}

// Unlike Python's title(), Jinja's looks at what stands before a word, not at letters.
std::string title(std::string_view text) {
  std::string out;
  bool begins = true;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const uint32_t c = next_character(text, i);
    const std::string_view character = text.substr(begin, i - begin);
    out += begins ? to_upper(character) : to_lower(character);
    begins = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  }
  return out;
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Value string(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "filter 'string'", arguments).done();
  return to_text(runtime, self);
}

// Nothing is escaped by itself, so nothing needs to be marked as safe.
Value safe(Runtime& runtime, Value self, const Arguments& arguments) {
  return string(runtime, self, arguments);
}

Value trim(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'trim'", arguments);
  const Value characters = reader.next_or("chars", Value::none());
  reader.done();
  const std::string_view text = text_of(runtime, self);
  if (characters.is(Kind::none)) return Value::string(strip(text, Side::both));
  if (!characters.is_string()) runtime.fail_kind("filter 'trim': 'chars'", "a string", characters);
  runtime.step(characters.as_string().size());
  return Value::string(strip(text, characters.as_string(), Side::both));
}

Value replace(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'replace'", arguments);
  const std::string_view from = to_text(runtime, reader.next("old")).as_string();
  const std::string_view to = to_text(runtime, reader.next("new")).as_string();
  const Value count = reader.next_or("count", Value::none());
  reader.done();
  const size_t n_most = count.is_integral() && count.as_integer() >= 0
                            ? static_cast<size_t>(count.as_integer())
                            : kNoLimit;
  return replace_text(runtime, text_of(runtime, self), from, to, n_most);
}

Value indent(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'indent'", arguments);
  const Value width = reader.next_or("width", Value::integer(4));
  const bool first = reader.next_boolean_or("first", false);
  const bool blank = reader.next_boolean_or("blank", false);
  reader.done();
  TextBuilder step(runtime);
  if (width.is_string()) {
    step.add(width.as_string());
  } else if (width.is_integral()) {
    step.repeat(" ", static_cast<size_t>(std::max<int64_t>(width.as_integer(), 0)));
  } else {
    runtime.fail_kind("filter 'indent': 'width'", "an integer or a string", width);
  }
  // The newline makes a last, empty line of what ends with one.
  std::string text(text_of(runtime, self));
  text += '\n';
  TextBuilder out(runtime);
  bool is_first = true;
  for (const std::string_view line : split_lines(text, false)) {
    if (!is_first) out.add('\n');
    if (is_first ? first : blank || !line.empty()) out.add(step.view());
    out.add(line);
    is_first = false;
  }
  return out.finish();
}

Value center(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'center'", arguments);
  const int64_t width = reader.next_integer_or("width", 80);
  reader.done();
  return padded(runtime, text_of(runtime, self), Side::both, width, " ");
}

Value word_count(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "filter 'wordcount'", arguments).done();
  return Value::integer(static_cast<int64_t>(n_words(text_of(runtime, self))));
}

Value format(Runtime& runtime, Value self, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    runtime.fail("filter 'format': either all values have names, or none has");
  }
  if (arguments.named.empty()) {
    List& values = runtime.make_list({arguments.positional.begin(), arguments.positional.end()});
    return format_percent(runtime, text_of(runtime, self), Value::tuple(values));
  }
  Dict& values = runtime.make_dict();
  for (const auto& [name, value] : arguments.named) {
    runtime.set(values, Value::string(name), value);
  }
  return format_percent(runtime, text_of(runtime, self), Value::dict(values));
}

// As Hugging Face defines it: plain JSON, nothing escaped for HTML.
Value write_json(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'tojson'", arguments);
  JsonStyle style;
  style.ensure_ascii = reader.next_boolean_or("ensure_ascii", false);
  const Value indent = reader.next_or("indent", Value::none());
  const Value separators = reader.next_or("separators", Value::none());
  style.sort_keys = reader.next_boolean_or("sort_keys", false);
  reader.done();
  if (indent.is_string()) {
    style.indent = indent.as_string();
  } else if (indent.is_integral()) {
    const int64_t width = std::max<int64_t>(indent.as_integer(), 0);
    runtime.expect_room(static_cast<size_t>(width));
    style.indent = std::string(static_cast<size_t>(width), ' ');
  } else if (!indent.is(Kind::none)) {
    runtime.fail_kind("filter 'tojson': 'indent'", "an integer or a string", indent);
  }
  if (style.indent) style.between_items.assign(1, ',');
  if (separators.is_sequence() && separators.as_list().items.size() == 2) {
    style.between_items = to_text(runtime, separators.as_list().items[0]).as_string();
    style.after_key = to_text(runtime, separators.as_list().items[1]).as_string();
  } else if (!separators.is(Kind::none)) {
    runtime.fail_kind("filter 'tojson': 'separators'", "a pair of strings", separators);
  }
  TextBuilder out(runtime);
  print_json(out, self, style);
  return out.finish();
}

// Not in Jinja, but some templates have it; llama.cpp offers it to them.
Value read_json(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "filter 'from_json'", arguments).done();
  if (!self.is_string()) runtime.fail_kind("filter 'from_json': the value", "a string", self);
  return parse_json(runtime, self.as_string());
}

Value url_encode(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "filter 'urlencode'", arguments).done();
  return self.is(Kind::dict) || self.is_sequence()
             ? url_query(runtime, self)
             : runtime.make_string(url_quoted(text_of(runtime, self), true));
}

}  // namespace

const BuiltinTable& text_filters() {
  static const BuiltinTable table = {
      {"capitalize", map_text<capitalized>},
      {"center", center},
      {"e", map_text<escape>},
      {"escape", map_text<escape>},
      {"format", format},
      {"from_json", read_json},
      {"indent", indent},
      {"lower", map_text<to_lower>},
      {"replace", replace},
      {"safe", safe},
      {"string", string},
      {"title", map_text<title>},
      {"tojson", write_json},
      {"trim", trim},
      {"upper", map_text<to_upper>},
      {"urlencode", url_encode},
      {"wordcount", word_count},
  };
  return table;
}

}  // namespace sluice::text::jinja
