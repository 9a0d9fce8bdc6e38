// See runtime.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/runtime.h"

#include "base/units.h"

namespace sluice::text::jinja {
namespace {

// What the entry of a dictionary costs, its share of the tree included.
constexpr size_t kEntryBytes = sizeof(Dict::Entry) + 80;

}  // namespace

Runtime::Runtime(const Limits& limits) : limits_(limits), steps_left_(limits.steps) {
  CHECK(limits.value_bytes <= kLargestLimit && limits.output_bytes <= kLargestLimit);
}

void Runtime::charge_output(size_t n_bytes) {
  if (n_bytes > limits_.output_bytes - output_bytes_) {
    fail(cat("the output grows beyond the limit of ", format_bytes(limits_.output_bytes),
             "; shorten the conversation, or use another template"));
  }
  output_bytes_ += n_bytes;
}

void Runtime::expect_room(size_t n_bytes) const {
  if (n_bytes > limits_.value_bytes - value_bytes_) fail_value_bytes();
}

void Runtime::charge(size_t n_bytes) {
  expect_room(n_bytes);
  value_bytes_ += n_bytes;
}

Value Runtime::make_string(std::string text) {
  if (text.empty()) return Value::string({});
  charge(sizeof(std::string) + text.size());
  return Value::string(strings_.emplace_back(std::move(text)));
}

List& Runtime::make_list() {
  charge(sizeof(List));
  return lists_.emplace_back();
}

List& Runtime::make_list(std::vector<Value> items) {
  charge(sizeof(List) + items.size() * sizeof(Value));
  List& list = lists_.emplace_back();
  list.items = std::move(items);
  return list;
}

Dict& Runtime::make_dict() {
  charge(sizeof(Dict));
  return dicts_.emplace_back();
}

void Runtime::append(List& list, Value value) {
  step();
  charge(2 * sizeof(Value));  // a vector that grows may hold as much again
  list.items.push_back(value);
}

void Runtime::set(Dict& dict, Value key, Value value) {
  step();
  if (key.is_undefined()) fail_undefined(key);
  if (!Dict::can_be_key(key)) {
    fail_kind("a dictionary key", "a string, number, boolean or none", key);
  }
  const size_t n_before = dict.size();
  dict.set(key, value);
  if (dict.size() > n_before) charge(kEntryBytes);
}

void Runtime::fail_steps() {
  steps_left_ = 0;
  fail(cat("the template takes more than the limit of ", limits_.steps,
           " steps; shorten the conversation, or use another template"));
}

void Runtime::fail_depth() {
  // The Level that failed was never built, so nothing counts it down again.
  --depth_;
  fail(cat("calls, expressions or values nest deeper than the limit of ", limits_.depth,
           " levels; a macro may be calling itself without end"));
}

void Runtime::fail_value_bytes() const {
  fail(cat("the template's values need more than the limit of ", format_bytes(limits_.value_bytes),
           "; shorten the conversation, or use another template"));
}

void Runtime::fail_undefined(Value value) const {
  const std::string name = quoted(value.absent_name());
  switch (value.absent_what()) {
    case Absent::variable:
      fail(cat(name, " is undefined; it is neither given nor set before this place"));
    case Absent::attribute:
      fail(cat("there is no attribute or key ", name, "; test with 'is defined' first"));
    case Absent::element:
      fail("there is no such element; test the length first");
    case Absent::result:
      fail("the value is undefined; test with 'is defined' first");
  }
  fail("the value is undefined");
}

void Runtime::fail_kind(std::string_view what, std::string_view expected, Value value) const {
  if (value.is_undefined()) fail_undefined(value);
  fail(cat(what, " must be ", expected, ", not ", kind_name(value)));
}

void TextBuilder::repeat(std::string_view text, size_t n_times) {
  if (text.empty() || n_times == 0) return;
  // Divided, not multiplied: the product may be larger than any integer.
  if (n_times > kLargestLimit / text.size()) runtime_.expect_room(2 * kLargestLimit);
  runtime_.expect_room(text_.size() + text.size() * n_times);
  runtime_.work(text.size() * n_times);
  text_.reserve(text_.size() + text.size() * n_times);
  for (size_t i = 0; i < n_times; ++i) text_.append(text);
}

}  // namespace sluice::text::jinja
