// See access.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/access.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "text/jinja/values/unicode.h"

namespace sluice::text::jinja {
namespace {

Value absent_attribute(std::string_view name) { return Value::undefined(Absent::attribute, name); }

std::optional<Value> find_builtin_attribute(Runtime& runtime, Value object, std::string_view name) {
  if (object.is(Kind::object)) return object.as_object().attribute(runtime, name);
  if (object.is(Kind::tuple) && object.as_list().is_group) {
    if (name == "grouper") return object.as_list().items[0];
    if (name == "list") return object.as_list().items[1];
  }
  if (const Builtin method = find_method(object, name)) {
    return Value::object(runtime.make_object<BoundBuiltin>(name, object, method));
  }
  return std::nullopt;
}

Value get_element(const List& list, int64_t index) {
  const auto n = static_cast<int64_t>(list.items.size());
  if (index < 0) index += n;
  if (index < 0 || index >= n) return Value::undefined(Absent::element, {});
  return list.items[static_cast<size_t>(index)];
}

Value get_character(Runtime& runtime, std::string_view text, int64_t index) {
  runtime.work(text.size());
  const auto n = static_cast<int64_t>(n_characters(text));
  if (index < 0) index += n;
  if (index < 0 || index >= n) return Value::undefined(Absent::element, {});
  size_t at = 0;
  for (; index > 0; --index) at += n_character_bytes(text[at]);
  return Value::string(text.substr(at, n_character_bytes(text[at])));
}

// Python's rules for slices: the indices that are visited, start, start + step, ... before stop.
struct Range {
  int64_t start, stop, step;
  size_t n() const {
    if (step > 0 ? start >= stop : start <= stop) return 0;
    const uint64_t span = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                   : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
    const uint64_t stride =
        step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
    return (span - 1) / stride + 1;
  }
};

int64_t slice_part(const Runtime& runtime, Value value, int64_t fallback) {
  if (value.is(Kind::none)) return fallback;
  if (!value.is_integral()) runtime.fail_kind("each part of a slice", "an integer", value);
  return value.as_integer();
}

Range slice_range(const Runtime& runtime, int64_t n, Value start, Value stop, Value step) {
  Range range{0, 0, slice_part(runtime, step, 1)};
  if (range.step == 0) runtime.fail("the step of a slice must not be 0");
  const int64_t lowest = range.step > 0 ? 0 : -1;
  const int64_t highest = range.step > 0 ? n : n - 1;
  const auto clamped = [&](Value value, int64_t fallback) {
    if (value.is(Kind::none)) return fallback;
    const int64_t index = slice_part(runtime, value, 0);
    return std::clamp(index < 0 ? index + n : index, lowest, highest);
  };
  range.start = clamped(start, range.step > 0 ? 0 : n - 1);
  range.stop = clamped(stop, range.step > 0 ? n : -1);
  return range;
}

Value slice_text(Runtime& runtime, std::string_view text, Value start, Value stop, Value step) {
  runtime.work(text.size());
  if (is_ascii(text)) {
    const Range range = slice_range(runtime, static_cast<int64_t>(text.size()), start, stop, step);
    if (range.step == 1) {
      return Value::string(text.substr(static_cast<size_t>(range.start), range.n()));
    }
  }
  runtime.step(text.size());  // the list below
  runtime.expect_room(text.size() * sizeof(std::string_view));
  const std::vector<std::string_view> characters = split_characters(text);
  const Range range =
      slice_range(runtime, static_cast<int64_t>(characters.size()), start, stop, step);
  TextBuilder sliced(runtime);
  int64_t index = range.start;
  for (size_t i = range.n(); i > 0; --i, index += range.step) {
    sliced.add(characters[static_cast<size_t>(index)]);
    if (i == 1) break;  // the next index may not fit
  }
  return sliced.finish();
}

// A part of "a.b.0": digits are an index.
Value path_key(std::string_view part) {
  int64_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  const bool is_index = error == std::errc() && end == part.data() + part.size() && index >= 0;
  return is_index ? Value::integer(index) : Value::string(part);
}

}  // namespace

Value get_attribute(Runtime& runtime, Value object, std::string_view name) {
  if (object.is_undefined()) runtime.fail_undefined(object);
  if (const std::optional<Value> found = find_builtin_attribute(runtime, object, name)) {
    return *found;
  }
  if (object.is(Kind::dict)) {
    if (const Value* value = object.as_dict().find(name)) return *value;
  }
  return absent_attribute(name);
}

Value get_item(Runtime& runtime, Value object, Value key) {
  if (object.is_undefined()) runtime.fail_undefined(object);
  if (object.is(Kind::dict)) {
    if (const Value* value = object.as_dict().find(key)) return *value;
  } else if (key.is_integral() && object.is_sequence()) {
    return get_element(object.as_list(), key.as_integer());
  } else if (key.is_integral() && object.is_string()) {
    return get_character(runtime, object.as_string(), key.as_integer());
  }
  if (!key.is_string()) return Value::undefined(Absent::element, {});
  if (const std::optional<Value> found = find_builtin_attribute(runtime, object, key.as_string())) {
    return *found;
  }
  return absent_attribute(key.as_string());
}

Value get_path(Runtime& runtime, Value object, Value path, const std::optional<Value>& missing) {
  const auto step = [&](Value key) {
    const Value item = get_item(runtime, object, key);
    object = item.is_undefined() && missing ? *missing : item;
  };
  if (path.is_string()) {
    for (std::string_view rest = path.as_string();;) {
      runtime.step();
      const size_t dot = rest.find('.');
      step(path_key(rest.substr(0, dot)));
      if (dot == std::string_view::npos) break;
      rest.remove_prefix(dot + 1);
    }
  } else if (path.is_integral()) {
    step(path);
  } else {
    runtime.fail_kind("an attribute's name", "a string or integer", path);
  }
  return object;
}

Value get_slice(Runtime& runtime, Value object, Value start, Value stop, Value step) {
  if (object.is_undefined()) runtime.fail_undefined(object);
  if (object.is_string()) return slice_text(runtime, object.as_string(), start, stop, step);
  if (!object.is_sequence()) runtime.fail_kind("what is sliced", "a string or list", object);
  const std::vector<Value>& items = object.as_list().items;
  const Range range = slice_range(runtime, static_cast<int64_t>(items.size()), start, stop, step);
  List& slice = runtime.make_list();
  int64_t index = range.start;
  for (size_t i = range.n(); i > 0; --i, index += range.step) {
    runtime.append(slice, items[static_cast<size_t>(index)]);
    if (i == 1) break;
  }
  return object.is(Kind::list) ? Value::list(slice) : Value::tuple(slice);
}

List& get_elements(Runtime& runtime, Value value, std::string_view what) {
  switch (value.kind()) {
    case Kind::list:
    case Kind::tuple:
      return value.as_list();
    case Kind::undefined:
      return runtime.make_list();
    case Kind::string: {
      List& characters = runtime.make_list();
      const std::string_view text = value.as_string();
      for (size_t i = 0; i < text.size();) {
        const size_t n = n_character_bytes(text[i]);
        runtime.append(characters, Value::string(text.substr(i, n)));
        i += n;
      }
      return characters;
    }
    case Kind::dict: {
      List& keys = runtime.make_list();
      for (const Dict::Entry& entry : value.as_dict().entries()) runtime.append(keys, entry.key);
      return keys;
    }
    default:
      runtime.fail(cat(what, " wants a list, dictionary or string, not ", kind_name(value)));
  }
}

int64_t get_length(Runtime& runtime, Value value) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      runtime.work(value.as_string().size());
      return static_cast<int64_t>(n_characters(value.as_string()));
    case Kind::list:
    case Kind::tuple:
      return static_cast<int64_t>(value.as_list().items.size());
    case Kind::dict:
      return static_cast<int64_t>(value.as_dict().size());
    default:
      runtime.fail(cat(kind_name(value), " has no length"));
  }
}

Value call_value(Runtime& runtime, Value callee, const Arguments& arguments) {
  if (callee.is_undefined()) runtime.fail_undefined(callee);
  if (!callee.is(Kind::object) || !callee.as_object().is_callable()) {
    runtime.fail(cat(kind_name(callee), " is called, but it is not a function"));
  }
  const Runtime::Level level(runtime);
  runtime.step();
  return callee.as_object().call(runtime, arguments);
}

std::string BoundBuiltin::describe(Runtime& /*runtime*/) const {
  return cat("<function ", name_, ">");
}

}  // namespace sluice::text::jinja
