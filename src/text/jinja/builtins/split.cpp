// See split.h. All parts lie in the string they are parts of.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/builtins/split.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/builtins/arguments.h"
#include "text/jinja/values/operators.h"
#include "text/jinja/values/text.h"
#include "text/jinja/values/unicode.h"

namespace sluice::text::jinja {
namespace {

using Parts = std::vector<std::string_view>;

// At runs of white space; what is left when n_most parts are found keeps its other end.
Parts split_at_space(std::string_view text, size_t n_most) {
  Parts parts;
  for (text = strip_left(text); !text.empty() && parts.size() < n_most; text = strip_left(text)) {
    size_t end = 0;
    while (end < text.size()) {
      size_t next = end;
      if (is_space(next_character(text, next))) break;
      end = next;
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  if (!text.empty()) parts.push_back(text);
  return parts;
}

Parts split_at_space_from_right(std::string_view text, size_t n_most) {
  Parts parts;
  for (text = strip_right(text); !text.empty() && parts.size() < n_most; text = strip_right(text)) {
    size_t begin = text.size();
    while (begin > 0) {
      size_t previous = begin - 1;
      while ((static_cast<unsigned char>(text[previous]) & 0xc0) == 0x80) --previous;
      size_t i = previous;
      if (is_space(next_character(text, i))) break;
      begin = previous;
    }
    parts.push_back(text.substr(begin));
    text = text.substr(0, begin);
  }
  if (!text.empty()) parts.push_back(text);
  std::ranges::reverse(parts);
  return parts;
}

Parts split_at(std::string_view text, std::string_view separator, size_t n_most) {
  Parts parts;
  size_t begin = 0;
  for (size_t end = find_text(text, separator);
       end != std::string_view::npos && parts.size() < n_most;
       end = find_text(text, separator, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// Found in the text turned around, where the last occurrence is the first.
Parts split_at_from_right(std::string_view text, std::string_view separator, size_t n_most) {
  const std::string reversed(text.rbegin(), text.rend());
  Parts parts = split_at(reversed, std::string(separator.rbegin(), separator.rend()), n_most);
  for (std::string_view& part : parts) {
    const auto from_end = static_cast<size_t>(part.data() - reversed.data()) + part.size();
    part = text.substr(text.size() - from_end, part.size());
  }
  std::ranges::reverse(parts);
  return parts;
}

Value list_of(Runtime& runtime, const Parts& parts) {
  List& list = runtime.make_list();
  for (const std::string_view part : parts) runtime.append(list, Value::string(part));
  return Value::list(list);
}

Value split(Runtime& runtime, Value self, const Arguments& arguments, bool from_right) {
  ArgumentReader reader(runtime, from_right ? "rsplit" : "split", arguments);
  const Value separator = reader.next_or("sep", Value::none());
  const int64_t most = reader.next_integer_or("maxsplit", -1);
  reader.done();
  const std::string_view text = self.as_string();
  runtime.step(text.size() / 16 + 1);
  runtime.expect_room(text.size() * sizeof(std::string_view));  // one part each, at the worst
  const size_t n_most = most < 0 ? kNoLimit : static_cast<size_t>(most);
  if (separator.is(Kind::none)) {
    return list_of(runtime, from_right ? split_at_space_from_right(text, n_most)
                                       : split_at_space(text, n_most));
  }
  if (!separator.is_string()) runtime.fail_kind("split: 'sep'", "a string", separator);
  if (separator.as_string().empty()) reader.fail("'sep' must not be empty");
  return list_of(runtime, from_right ? split_at_from_right(text, separator.as_string(), n_most)
                                     : split_at(text, separator.as_string(), n_most));
}

Value partition(Runtime& runtime, Value self, const Arguments& arguments, bool from_right) {
  ArgumentReader reader(runtime, "partition", arguments);
  const std::string_view separator = reader.next_text("sep");
  reader.done();
  if (separator.empty()) reader.fail("'sep' must not be empty");
  const std::string_view text = self.as_string();
  runtime.work(2 * text.size());
  const size_t at = from_right ? find_last_text(text, separator) : find_text(text, separator);
  const Value all = Value::string(text);
  const Value empty = Value::string("");
  if (at == std::string_view::npos) {
    return Value::tuple(from_right ? runtime.make_list({empty, empty, all})
                                   : runtime.make_list({all, empty, empty}));
  }
  return Value::tuple(
      runtime.make_list({Value::string(text.substr(0, at)), Value::string(separator),
                         Value::string(text.substr(at + separator.size()))}));
}

}  // namespace

Value split_text(Runtime& runtime, Value self, const Arguments& arguments) {
  return split(runtime, self, arguments, false);
}

Value split_text_from_right(Runtime& runtime, Value self, const Arguments& arguments) {
  return split(runtime, self, arguments, true);
}

Value split_text_into_lines(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "splitlines", arguments);
  const bool keep_ends = reader.next_boolean_or("keepends", false);
  reader.done();
  runtime.work(self.as_string().size());
  runtime.expect_room(self.as_string().size() * sizeof(std::string_view));
  return list_of(runtime, split_lines(self.as_string(), keep_ends));
}

Value partition_text(Runtime& runtime, Value self, const Arguments& arguments) {
  return partition(runtime, self, arguments, false);
}

Value partition_text_from_right(Runtime& runtime, Value self, const Arguments& arguments) {
  return partition(runtime, self, arguments, true);
}

}  // namespace sluice::text::jinja
