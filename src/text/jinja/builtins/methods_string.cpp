// Methods of strings, for builtins.h. Splitting is in split.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "text/jinja/builtins/arguments.h"
#include "text/jinja/builtins/builtins.h"
#include "text/jinja/builtins/format.h"
#include "text/jinja/builtins/split.h"
#include "text/jinja/values/access.h"
#include "text/jinja/values/operators.h"
#include "text/jinja/values/text.h"
#include "text/jinja/values/unicode.h"

namespace sluice::text::jinja {
namespace {

// The method's own string; its length is counted as work.
std::string_view text_of(Runtime& runtime, Value self) {
  runtime.work(self.as_string().size());
  return self.as_string();
}

template <std::string (*function)(std::string_view)>
Value map_text(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "string method", arguments).done();
  const std::string_view text = text_of(runtime, self);
  runtime.expect_room(3 * text.size());
  return runtime.make_string(function(text));
}

// A word begins with a letter that does not follow a letter.
std::string title(std::string_view text) {
  std::string out;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const size_t n = n_character_bytes(text[i]);
    const std::string_view character = text.substr(i, n);
    out += inside ? to_lower(character) : to_upper(character);
    inside = has_case(character);
    i += n;
  }
  return out;
}

template <Side side>
Value strip_method(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "strip", arguments);
  const Value characters = reader.next_or("chars", Value::none());
  reader.done();
  const std::string_view text = text_of(runtime, self);
  if (characters.is(Kind::none)) return Value::string(strip(text, side));
  if (!characters.is_string()) runtime.fail_kind("strip: 'chars'", "a string", characters);
  runtime.step(characters.as_string().size());
  return Value::string(strip(text, characters.as_string(), side));
}

// startswith and endswith: one string, or a tuple of several.
template <bool (*matches)(std::string_view text, std::string_view part)>
Value match_method(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "startswith or endswith", arguments);
  const Value wanted = reader.next("prefix");
  reader.done();
  const auto matches_one = [&](Value part) {
    if (!part.is_string()) runtime.fail_kind("startswith or endswith: it", "a string", part);
    runtime.work(part.as_string().size());
    return matches(self.as_string(), part.as_string());
  };
  if (!wanted.is(Kind::tuple)) return Value::boolean(matches_one(wanted));
  return Value::boolean(std::ranges::any_of(wanted.as_list().items, matches_one));
}
bool starts_with(std::string_view text, std::string_view part) { return text.starts_with(part); }
bool ends_with(std::string_view text, std::string_view part) { return text.ends_with(part); }

Value remove_prefix(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "removeprefix", arguments);
  const std::string_view prefix = reader.next_text("prefix");
  reader.done();
  const std::string_view text = text_of(runtime, self);
  return Value::string(text.starts_with(prefix) ? text.substr(prefix.size()) : text);
}

Value remove_suffix(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "removesuffix", arguments);
  const std::string_view suffix = reader.next_text("suffix");
  reader.done();
  const std::string_view text = text_of(runtime, self);
  return Value::string(text.ends_with(suffix) ? text.substr(0, text.size() - suffix.size()) : text);
}

Value replace(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "replace", arguments);
  const std::string_view from = reader.next_text("old");
  const std::string_view to = reader.next_text("new");
  const int64_t count = reader.next_integer_or("count", -1);
  reader.done();
  return replace_text(runtime, self.as_string(), from, to,
                      count < 0 ? kNoLimit : static_cast<size_t>(count));
}

// find and its relatives look in text[start:end] and count characters from the text's start.
struct Search {
  int64_t index = -1;  // of the first or last occurrence
  int64_t n_found = 0;
};

Search search(Runtime& runtime, Value self, const Arguments& arguments, bool last) {
  ArgumentReader reader(runtime, "find, index or count", arguments);
  const std::string_view part = reader.next_text("sub");
  const Value start = reader.next_or("start", Value::none());
  const Value end = reader.next_or("end", Value::none());
  reader.done();
  const int64_t n = get_length(runtime, self);
  const Value within = get_slice(runtime, self, start, end, Value::none());
  int64_t offset = start.is_integral() ? start.as_integer() : 0;
  if (offset < 0) offset = std::max<int64_t>(offset + n, 0);
  const std::string_view text = within.as_string();
  runtime.work(2 * text.size() + part.size());
  Search result;
  const size_t found = last ? find_last_text(text, part) : find_text(text, part);
  if (found == std::string_view::npos || offset > n) return result;
  result.index = offset + static_cast<int64_t>(n_characters(text.substr(0, found)));
  if (last) return result;
  if (part.empty()) {
    result.n_found = static_cast<int64_t>(n_characters(text)) + 1;
    return result;
  }
  for (size_t i = found; i != std::string_view::npos; i = find_text(text, part, i + part.size())) {
    runtime.work(part.size());
    ++result.n_found;
  }
  return result;
}

template <bool last>
Value find(Runtime& runtime, Value self, const Arguments& arguments) {
  return Value::integer(search(runtime, self, arguments, last).index);
}

template <bool last>
Value index(Runtime& runtime, Value self, const Arguments& arguments) {
  const Search result = search(runtime, self, arguments, last);
  if (result.index < 0) runtime.fail("index: the string does not occur; find() gives -1 then");
  return Value::integer(result.index);
}

Value count(Runtime& runtime, Value self, const Arguments& arguments) {
  return Value::integer(search(runtime, self, arguments, false).n_found);
}

Value join(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "join", arguments);
  const Value parts = reader.next("iterable");
  reader.done();
  TextBuilder out(runtime);
  bool is_first = true;
  for (const Value part : get_elements(runtime, parts, "join").items) {
    if (!part.is_string()) runtime.fail_kind("join: each element", "a string", part);
    if (!is_first) out.add(self.as_string());
    is_first = false;
    out.add(part.as_string());
  }
  return out.finish();
}

Value format(Runtime& runtime, Value self, const Arguments& arguments) {
  return format_braces(runtime, self.as_string(), arguments);
}

template <CharacterClass wanted>
Value is_all(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "string method", arguments).done();
  return Value::boolean(consists_of(wanted, text_of(runtime, self)));
}

Value is_all_space(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "isspace", arguments).done();
  const std::string_view text = text_of(runtime, self);
  return Value::boolean(!text.empty() && strip_left(text).empty());
}

template <Side filled>
Value pad(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "string method", arguments);
  const int64_t width = reader.next_integer("width");
  const std::string_view fill = reader.next_text_or("fillchar", " ");
  reader.done();
  if (n_characters(fill) != 1) reader.fail("'fillchar' must be one character");
  return padded(runtime, text_of(runtime, self), filled, width, fill);
}

}  // namespace

const BuiltinTable& string_methods() {
  static const BuiltinTable table = {
      {"capitalize", map_text<capitalized>},
      {"casefold", map_text<to_lower>},
      {"center", pad<Side::both>},
      {"count", count},
      {"endswith", match_method<ends_with>},
      {"find", find<false>},
      {"format", format},
      {"index", index<false>},
      {"isalnum", is_all<CharacterClass::alphanumeric>},
      {"isalpha", is_all<CharacterClass::letter>},
      {"isdecimal", is_all<CharacterClass::digit>},
      {"isdigit", is_all<CharacterClass::digit>},
      {"islower", find_test("lower")},
      {"isnumeric", is_all<CharacterClass::digit>},
      {"isspace", is_all_space},
      {"isupper", find_test("upper")},
      {"join", join},
      {"ljust", pad<Side::right>},
      {"lower", map_text<to_lower>},
      {"lstrip", strip_method<Side::left>},
      {"partition", partition_text},
      {"removeprefix", remove_prefix},
      {"removesuffix", remove_suffix},
      {"replace", replace},
      {"rfind", find<true>},
      {"rindex", index<true>},
      {"rjust", pad<Side::left>},
      {"rpartition", partition_text_from_right},
      {"rsplit", split_text_from_right},
      {"rstrip", strip_method<Side::right>},
      {"split", split_text},
      {"splitlines", split_text_into_lines},
      {"startswith", match_method<starts_with>},
      {"strip", strip_method<Side::both>},
      {"title", map_text<title>},
      {"upper", map_text<to_upper>},
  };
  return table;
}

}  // namespace sluice::text::jinja
