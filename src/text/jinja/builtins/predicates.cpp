// The tests of builtins.h: what may follow `is` in a template.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/builtins/arguments.h"
#include "text/jinja/builtins/builtins.h"
#include "text/jinja/values/operators.h"
#include "text/jinja/values/print.h"
#include "text/jinja/values/unicode.h"

namespace sluice::text::jinja {
namespace {

void expect_no_arguments(Runtime& runtime, const Arguments& arguments) {
  ArgumentReader(runtime, "test", arguments).done();
}

// A test that looks at the value alone.
template <bool (*predicate)(Value)>
Value check(Runtime& runtime, Value self, const Arguments& arguments) {
  expect_no_arguments(runtime, arguments);
  return Value::boolean(predicate(self));
}

template <Kind kind>
bool is_kind(Value value) {
  return value.is(kind);
}
bool is_defined(Value value) { return !value.is_undefined(); }
bool is_number(Value value) { return value.is_numeric(); }
bool is_true_itself(Value value) { return value.is(Kind::boolean) && value.as_boolean(); }
bool is_false_itself(Value value) { return value.is(Kind::boolean) && !value.as_boolean(); }
bool is_iterable(Value value) {
  return value.is_sequence() || value.is_string() || value.is(Kind::dict) || value.is_undefined();
}
bool is_callable(Value value) { return value.is(Kind::object) && value.as_object().is_callable(); }

// Of two values; the other one is the argument.
template <CompareOp op>
Value check_compare(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "test", arguments);
  const Value other = reader.next("other");
  reader.done();
  return Value::boolean(compare(runtime, op, self, other));
}

Value same_as(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "test 'sameas'", arguments);
  const Value other = reader.next("other");
  reader.done();
  return Value::boolean(self.same_as(other));
}

bool leaves(Runtime& runtime, Value self, int64_t divisor, double remainder) {
  if (!self.is_numeric()) runtime.fail_kind("what is divided", "a number", self);
  const Value found = compute(runtime, BinaryOp::modulo, self, Value::integer(divisor));
  return found.as_number() == remainder;
}

Value even(Runtime& runtime, Value self, const Arguments& arguments) {
  expect_no_arguments(runtime, arguments);
  return Value::boolean(leaves(runtime, self, 2, 0));
}

Value odd(Runtime& runtime, Value self, const Arguments& arguments) {
  expect_no_arguments(runtime, arguments);
  return Value::boolean(leaves(runtime, self, 2, 1));
}

Value divisible_by(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "test 'divisibleby'", arguments);
  const int64_t divisor = reader.next_integer("num");
  reader.done();
  return Value::boolean(leaves(runtime, self, divisor, 0));
}

// Whether all letters are of one case, and there is one.
template <std::string (*to_case)(std::string_view)>
Value is_in_case(Runtime& runtime, Value self, const Arguments& arguments) {
  expect_no_arguments(runtime, arguments);
  const std::string_view text = to_text(runtime, self).as_string();
  runtime.work(text.size());
  const bool has_letters = to_upper(text) != to_lower(text);
  return Value::boolean(has_letters && to_case(text) == text);
}

Value is_filter(Runtime& runtime, Value self, const Arguments& arguments) {
  expect_no_arguments(runtime, arguments);
  return Value::boolean(self.is_string() && find_filter(self.as_string()) != nullptr);
}

Value is_test(Runtime& runtime, Value self, const Arguments& arguments) {
  expect_no_arguments(runtime, arguments);
  return Value::boolean(self.is_string() && find_test(self.as_string()) != nullptr);
}

}  // namespace

const BuiltinTable& tests() {
  static const BuiltinTable table = {
      {"defined", check<is_defined>},
      {"undefined", check<is_kind<Kind::undefined>>},
      {"none", check<is_kind<Kind::none>>},
      {"string", check<is_kind<Kind::string>>},
      {"number", check<is_number>},
      {"integer", check<is_kind<Kind::integer>>},
      {"float", check<is_kind<Kind::number>>},
      {"mapping", check<is_kind<Kind::dict>>},
      {"iterable", check<is_iterable>},
      {"sequence", check<is_iterable>},  // both are Python's: what has a length and elements
      {"boolean", check<is_kind<Kind::boolean>>},
      {"true", check<is_true_itself>},
      {"false", check<is_false_itself>},
      {"callable", check<is_callable>},
      {"even", even},
      {"odd", odd},
      {"divisibleby", divisible_by},
      {"lower", is_in_case<to_lower>},
      {"upper", is_in_case<to_upper>},
      {"sameas", same_as},
      {"filter", is_filter},
      {"test", is_test},
      {"equalto", check_compare<CompareOp::eq>},
      {"eq", check_compare<CompareOp::eq>},
      {"==", check_compare<CompareOp::eq>},
      {"ne", check_compare<CompareOp::ne>},
      {"!=", check_compare<CompareOp::ne>},
      {"gt", check_compare<CompareOp::gt>},
      {"greaterthan", check_compare<CompareOp::gt>},
      {">", check_compare<CompareOp::gt>},
      {"ge", check_compare<CompareOp::ge>},
      {">=", check_compare<CompareOp::ge>},
      {"lt", check_compare<CompareOp::lt>},
      {"lessthan", check_compare<CompareOp::lt>},
      {"<", check_compare<CompareOp::lt>},
      {"le", check_compare<CompareOp::le>},
      {"<=", check_compare<CompareOp::le>},
      {"in", check_compare<CompareOp::in>},
  };
  return table;
}

}  // namespace sluice::text::jinja
