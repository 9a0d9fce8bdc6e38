// See value.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/value.h"

#include <cmath>
#include <limits>

namespace sluice::text::jinja {

static_assert(sizeof(Value) == 16);

Value::Value(std::string_view text, Kind kind)
    : kind_(kind), n_bytes_(static_cast<uint32_t>(text.size())), payload_{.text = text.data()} {
  CHECK(text.size() <= std::numeric_limits<uint32_t>::max());
}

bool Value::as_boolean() const {
  CHECK(kind_ == Kind::boolean);
  return payload_.integer != 0;
}

int64_t Value::as_integer() const {
  CHECK(is_integral());
  return payload_.integer;
}

double Value::as_number() const {
  CHECK(is_numeric());
  return kind_ == Kind::number ? payload_.number : static_cast<double>(payload_.integer);
}

std::string_view Value::as_string() const {
  CHECK(kind_ == Kind::string);
  return view();
}

List& Value::as_list() const {
  CHECK(is_sequence());
  return *payload_.list;
}

Dict& Value::as_dict() const {
  CHECK(kind_ == Kind::dict);
  return *payload_.dict;
}

Object& Value::as_object() const {
  CHECK(kind_ == Kind::object);
  return *payload_.object;
}

bool Value::same_as(Value other) const {
  if (kind_ != other.kind_) return false;
  switch (kind_) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::boolean:
    case Kind::integer:
      return payload_.integer == other.payload_.integer;
    case Kind::number:
      return payload_.number == other.payload_.number;
    case Kind::string:
      return view() == other.view();
    case Kind::list:
    case Kind::tuple:
      return payload_.list == other.payload_.list;
    case Kind::dict:
      return payload_.dict == other.payload_.dict;
    case Kind::object:
      return payload_.object == other.payload_.object;
  }
  return false;
}

std::string_view kind_name(Value value) {
  switch (value.kind()) {
    case Kind::undefined:
      return "undefined value";
    case Kind::none:
      return "none";
    case Kind::boolean:
      return "boolean";
    case Kind::integer:
      return "integer";
    case Kind::number:
      return "float";
    case Kind::string:
      return "string";
    case Kind::list:
      return "list";
    case Kind::tuple:
      return "tuple";
    case Kind::dict:
      return "dictionary";
    case Kind::object:
      return value.as_object().is_callable() ? "function" : "object";
  }
  return "value";
}

bool is_true(Value value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.as_integer() != 0;
    case Kind::number:
      return value.as_number() != 0;
    case Kind::string:
      return !value.as_string().empty();
    case Kind::list:
    case Kind::tuple:
      return !value.as_list().items.empty();
    case Kind::dict:
      return value.as_dict().size() > 0;
    case Kind::object:
      return true;
  }
  return false;
}

namespace {

// The double nearest to an integer may be another number, so the comparison is made on integers
// wherever the float is one that an int64 can hold.
std::partial_ordering compare_integer_and_float(int64_t a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (b >= kLimit) return std::partial_ordering::less;
  if (b < -kLimit) return std::partial_ordering::greater;
  const double whole = std::floor(b);
  const auto floor = static_cast<int64_t>(whole);
  if (a != floor) return a <=> floor;
  return b > whole ? std::partial_ordering::less : std::partial_ordering::equivalent;
}

}  // namespace

std::partial_ordering compare_numbers(Value a, Value b) {
  if (a.is_integral() && b.is_integral()) return a.as_integer() <=> b.as_integer();
  if (a.is_integral()) return compare_integer_and_float(a.as_integer(), b.as_number());
  if (b.is_integral()) return 0 <=> compare_integer_and_float(b.as_integer(), a.as_number());
  return a.as_number() <=> b.as_number();
}

std::optional<Value> Object::attribute(Runtime& /*runtime*/, std::string_view /*name*/) {
  return std::nullopt;
}

Value Object::call(Runtime& /*runtime*/, const Arguments& /*arguments*/) {
  CHECK(is_callable());
  return {};
}

}  // namespace sluice::text::jinja
