// Methods of lists, tuples and dictionaries, for builtins.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "text/jinja/builtins/arguments.h"
#include "text/jinja/builtins/builtins.h"
#include "text/jinja/values/access.h"
#include "text/jinja/values/operators.h"

namespace sluice::text::jinja {
namespace {

// --- lists

Value append(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "append", arguments);
  const Value value = reader.next("object");
  reader.done();
  runtime.append(self.as_list(), value);
  return Value::none();
}

Value extend(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "extend", arguments);
  const Value more = reader.next("iterable");
  reader.done();
  const List& items = get_elements(runtime, more, "extend");
  const size_t n = items.items.size();  // the list may be extended by itself
  for (size_t i = 0; i < n; ++i) runtime.append(self.as_list(), items.items[i]);
  return Value::none();
}

Value pop(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "pop", arguments);
  int64_t index = reader.next_integer_or("index", -1);
  reader.done();
  std::vector<Value>& items = self.as_list().items;
  const auto n = std::ssize(items);
  if (index < 0) index += n;
  if (index < 0 || index >= n) reader.fail(cat("there is no such element, the list has ", n));
  runtime.work(static_cast<size_t>(n - index) * sizeof(Value));
  const Value value = items[static_cast<size_t>(index)];
  items.erase(items.begin() + index);
  return value;
}

Value insert(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "insert", arguments);
  int64_t index = reader.next_integer("index");
  const Value value = reader.next("object");
  reader.done();
  std::vector<Value>& items = self.as_list().items;
  const auto n = std::ssize(items);
  index = std::clamp<int64_t>(index < 0 ? index + n : index, 0, n);
  runtime.work(static_cast<size_t>(n - index) * sizeof(Value));
  runtime.append(self.as_list(), value);
  std::rotate(items.begin() + index, items.end() - 1, items.end());
  return Value::none();
}

int64_t position(Runtime& runtime, Value self, Value wanted) {
  const std::vector<Value>& items = self.as_list().items;
  const auto found =
      std::ranges::find_if(items, [&](Value item) { return equal(runtime, item, wanted); });
  return found == items.end() ? -1 : found - items.begin();
}

// Where the one argument of index() and remove() stands in the list; fails where it does not.
int64_t position_of_argument(Runtime& runtime, Value self, const Arguments& arguments,
                             std::string_view method) {
  ArgumentReader reader(runtime, method, arguments);
  const Value wanted = reader.next("value");
  reader.done();
  const int64_t at = position(runtime, self, wanted);
  if (at < 0) reader.fail("the value is not in the list; test with 'in' first");
  return at;
}

Value index(Runtime& runtime, Value self, const Arguments& arguments) {
  return Value::integer(position_of_argument(runtime, self, arguments, "index"));
}

Value remove(Runtime& runtime, Value self, const Arguments& arguments) {
  const int64_t at = position_of_argument(runtime, self, arguments, "remove");
  std::vector<Value>& items = self.as_list().items;
  runtime.work(items.size() * sizeof(Value));
  items.erase(items.begin() + at);
  return Value::none();
}

Value count(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "count", arguments);
  const Value wanted = reader.next("value");
  reader.done();
  return Value::integer(std::ranges::count_if(
      self.as_list().items, [&](Value item) { return equal(runtime, item, wanted); }));
}

Value reverse(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "reverse", arguments).done();
  runtime.work(self.as_list().items.size() * sizeof(Value));
  std::ranges::reverse(self.as_list().items);
  return Value::none();
}

Value copy_list(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "copy", arguments).done();
  runtime.step(self.as_list().items.size());
  runtime.expect_room(self.as_list().items.size() * sizeof(Value));
  return Value::list(runtime.make_list(self.as_list().items));
}

Value clear_list(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "clear", arguments).done();
  self.as_list().items.clear();
  return Value::none();
}

// --- dictionaries

Value items(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "items", arguments).done();
  List& pairs = runtime.make_list();
  for (const auto& [key, value] : self.as_dict().entries()) {
    runtime.append(pairs, Value::tuple(runtime.make_list({key, value})));
  }
  return Value::list(pairs);
}

Value keys(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "keys", arguments).done();
  return Value::list(get_elements(runtime, self, "keys"));
}

Value values(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "values", arguments).done();
  List& list = runtime.make_list();
  for (const Dict::Entry& entry : self.as_dict().entries()) runtime.append(list, entry.value);
  return Value::list(list);
}

Value get(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "get", arguments);
  const Value key = reader.next("key");
  const Value fallback = reader.next_or("default", Value::none());
  reader.done();
  const Value* value = self.as_dict().find(key);
  return value == nullptr ? fallback : *value;
}

void update_from(Runtime& runtime, Dict& dict, Value other) {
  if (other.is(Kind::dict)) {
    // By index: the dictionary may be updated with itself.
    for (size_t i = 0; i < other.as_dict().size(); ++i) {
      const Dict::Entry entry = other.as_dict().entries()[i];
      runtime.set(dict, entry.key, entry.value);
    }
    return;
  }
  for (const Value pair : get_elements(runtime, other, "update").items) {
    if (!pair.is_sequence() || pair.as_list().items.size() != 2) {
      runtime.fail_kind("update: each element", "a pair", pair);
    }
    runtime.set(dict, pair.as_list().items[0], pair.as_list().items[1]);
  }
}

Value update(Runtime& runtime, Value self, const Arguments& arguments) {
  if (arguments.positional.size() > 1) runtime.fail("update: takes one dictionary, and names");
  for (const Value other : arguments.positional) update_from(runtime, self.as_dict(), other);
  for (const auto& [name, value] : arguments.named) {
    runtime.set(self.as_dict(), Value::string(name), value);
  }
  return Value::none();
}

Value pop_key(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "pop", arguments);
  const Value key = reader.next("key");
  const std::optional<Value> fallback = reader.next_if_given("default");
  reader.done();
  const Value* found = self.as_dict().find(key);
  if (found == nullptr && !fallback) reader.fail("there is no such key; give a default");
  if (found == nullptr) return *fallback;
  const Value value = *found;
  runtime.step(self.as_dict().size());  // the order of the rest is made anew
  self.as_dict().erase(key);
  return value;
}

Value set_default(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "setdefault", arguments);
  const Value key = reader.next("key");
  const Value fallback = reader.next_or("default", Value::none());
  reader.done();
  if (const Value* found = self.as_dict().find(key)) return *found;
  runtime.set(self.as_dict(), key, fallback);
  return fallback;
}

Value copy_dict(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader(runtime, "copy", arguments).done();
  Dict& copy = runtime.make_dict();
  update_from(runtime, copy, self);
  return Value::dict(copy);
}

}  // namespace

const BuiltinTable& list_methods() {
  static const BuiltinTable table = {
      {"append", append}, {"clear", clear_list}, {"copy", copy_list}, {"count", count},
      {"extend", extend}, {"index", index},      {"insert", insert},  {"pop", pop},
      {"remove", remove}, {"reverse", reverse},
  };
  return table;
}

const BuiltinTable& tuple_methods() {
  static const BuiltinTable table = {{"count", count}, {"index", index}};
  return table;
}

const BuiltinTable& dict_methods() {
  static const BuiltinTable table = {
      {"copy", copy_dict}, {"get", get},       {"items", items},
      {"keys", keys},      {"pop", pop_key},   {"setdefault", set_default},
      {"update", update},  {"values", values},
  };
  return table;
}

}  // namespace sluice::text::jinja
