// What a template computes with: a small tagged value that is copied freely, and the containers it
// may point to. Containers are shared as in Python: an append is seen through every name. A value
// owns nothing; strings point into the template, the input or a Runtime (runtime.h), which
// also owns all containers, so that even a list inside itself is freed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace sluice::text::jinja {

class Value;
class Dict;
class Object;
class Runtime;

enum class Kind : uint8_t {
  undefined,
  none,
  boolean,
  integer,
  number,
  string,
  list,
  tuple,
  dict,
  object
};

// What an undefined value is the absence of, for the message when it is used after all.
enum class Absent : uint8_t { variable, attribute, element, result };

struct List {
  std::vector<Value> items;
  bool is_group = false;  // of the filter groupby: a tuple whose elements have names
};

class Value {
 public:
  Value() : Value(undefined(Absent::result, {})) {}
  static Value undefined(Absent what, std::string_view name) { return {name, what}; }
  static Value none() { return {Kind::none, {.integer = 0}}; }
  static Value boolean(bool value) { return {Kind::boolean, {.integer = value ? 1 : 0}}; }
  static Value integer(int64_t value) { return {Kind::integer, {.integer = value}}; }
  static Value number(double value) { return {Kind::number, {.number = value}}; }
  static Value string(std::string_view text) { return {text, Kind::string}; }
  static Value list(List& items) { return {Kind::list, {.list = &items}}; }
  static Value tuple(List& items) { return {Kind::tuple, {.list = &items}}; }
  static Value dict(Dict& entries) { return {Kind::dict, {.dict = &entries}}; }
  static Value object(Object& object) { return {Kind::object, {.object = &object}}; }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return kind_ == Kind::undefined; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_sequence() const { return kind_ == Kind::list || kind_ == Kind::tuple; }
  // As in Python, true and false are the integers 1 and 0.
  bool is_integral() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  bool is_numeric() const { return is_integral() || kind_ == Kind::number; }

  bool as_boolean() const;
  int64_t as_integer() const;  // of a boolean or an integer
  double as_number() const;    // of anything numeric
  std::string_view as_string() const;
  List& as_list() const;  // of a list or a tuple
  Dict& as_dict() const;
  Object& as_object() const;
  // Whether both are the same container, or equal scalars of one kind.
  bool same_as(Value other) const;

  std::string_view absent_name() const { return view(); }
  Absent absent_what() const { return absent_; }

 private:
  union Payload {
    int64_t integer;
    double number;
    const char* text;
    List* list;
    Dict* dict;
    Object* object;
  };

  Value(Kind kind, Payload payload) : kind_(kind), payload_(payload) {}
  Value(std::string_view text, Kind kind);
  Value(std::string_view name, Absent what) : Value(name, Kind::undefined) { absent_ = what; }
  std::string_view view() const { return {payload_.text, n_bytes_}; }

  Kind kind_;
  Absent absent_ = Absent::result;
  uint32_t n_bytes_ = 0;  // of text
  Payload payload_;
};

// "string", "dictionary" and so on, for messages.
std::string_view kind_name(Value value);

// Python's truth: not none, zero, empty or undefined.
bool is_true(Value value);

// Exact also between integers and floats; both numeric.
std::partial_ordering compare_numbers(Value a, Value b);

// A dictionary in order of insertion. Keys are strings, numbers, booleans or none; 1, 1.0 and true
// are the same key. Lookup in a large one goes through a tree, so that no choice of keys is slow.
class Dict {
 public:
  struct Entry {
    Value key, value;
  };
  static bool can_be_key(Value value);

  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  // Null where there is none. The pointer holds until the next change.
  const Value* find(Value key) const;
  const Value* find(std::string_view key) const { return find(Value::string(key)); }
  void set(Value key, Value value);
  bool erase(Value key);

 private:
  struct KeyLess {
    bool operator()(Value a, Value b) const;
  };
  static constexpr size_t kSearchedLinearly = 12;
  std::optional<size_t> position(Value key) const;
  void rebuild_index();

  std::vector<Entry> entries_;
  std::map<Value, size_t, KeyLess> index_;  // empty while entries_ are few
};

struct NamedArgument {
  std::string_view name;
  Value value;
};

struct Arguments {
  std::span<const Value> positional;
  std::span<const NamedArgument> named;
};

// Everything else that has a name in a template: macros, functions, `loop`, namespaces.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  virtual std::string describe(Runtime& runtime) const = 0;  // as it prints
  virtual std::optional<Value> attribute(Runtime& runtime, std::string_view name);
  virtual bool is_callable() const { return false; }
  virtual Value call(Runtime& runtime, const Arguments& arguments);  // only if is_callable()
};

}  // namespace sluice::text::jinja
