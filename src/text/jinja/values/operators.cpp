// Arithmetic of operators.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/operators.h"

#include <cmath>

#include "text/jinja/builtins/format.h"

namespace sluice::text::jinja {
namespace {

std::string_view symbol(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
      return "+";
    case BinaryOp::subtract:
      return "-";
    case BinaryOp::multiply:
      return "*";
    case BinaryOp::divide:
      return "/";
    case BinaryOp::floor_divide:
      return "//";
    case BinaryOp::modulo:
      return "%";
    case BinaryOp::power:
      return "**";
  }
  return "?";
}

[[noreturn]] void fail_operands(const Runtime& runtime, BinaryOp op, Value a, Value b) {
  if (a.is_undefined()) runtime.fail_undefined(a);
  if (b.is_undefined()) runtime.fail_undefined(b);
  const bool text = op == BinaryOp::add && (a.is_string() || b.is_string());
  runtime.fail(cat("operator ", symbol(op), " cannot be applied to ", kind_name(a), " and ",
                   kind_name(b), text ? "; ~ joins anything as text" : ""));
}

[[noreturn]] void fail_overflow(const Runtime& runtime, BinaryOp op) {
  runtime.fail(cat("operator ", symbol(op), ": the result does not fit 64 bits"));
}

void expect_divisor(const Runtime& runtime, BinaryOp op, Value b) {
  if (b.as_number() == 0) runtime.fail(cat("operator ", symbol(op), ": division by zero"));
}

// Rounds towards minus infinity, as Python does; b != 0.
int64_t floor_divide(const Runtime& runtime, int64_t a, int64_t b) {
  if (b == -1) {
    int64_t negated = 0;
    if (__builtin_sub_overflow(int64_t{0}, a, &negated)) {
      fail_overflow(runtime, BinaryOp::floor_divide);
    }
    return negated;
  }
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// Has the sign of b, as in Python; b != 0.
int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double floor_modulo(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

int64_t integer_power(const Runtime& runtime, int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      fail_overflow(runtime, BinaryOp::power);
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      fail_overflow(runtime, BinaryOp::power);
    }
  }
  return result;
}

Value power(Runtime& runtime, Value a, Value b) {
  if (a.is_integral() && b.is_integral() && b.as_integer() >= 0) {
    return Value::integer(integer_power(runtime, a.as_integer(), b.as_integer()));
  }
  if (a.as_number() == 0 && b.as_number() < 0) expect_divisor(runtime, BinaryOp::power, a);
  const double result = std::pow(a.as_number(), b.as_number());
  if (!std::isfinite(result) && std::isfinite(a.as_number()) && std::isfinite(b.as_number())) {
    runtime.fail("operator **: the result is not a number that a float can hold");
  }
  return Value::number(result);
}

Value compute_integers(const Runtime& runtime, BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case BinaryOp::add:
      if (__builtin_add_overflow(a, b, &result)) fail_overflow(runtime, op);
      break;
    case BinaryOp::subtract:
      if (__builtin_sub_overflow(a, b, &result)) fail_overflow(runtime, op);
      break;
    case BinaryOp::multiply:
      if (__builtin_mul_overflow(a, b, &result)) fail_overflow(runtime, op);
      break;
    case BinaryOp::floor_divide:
      result = floor_divide(runtime, a, b);
      break;
    default:
      result = floor_modulo(a, b);
  }
  return Value::integer(result);
}

Value compute_floats(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::add:
      return Value::number(a + b);
    case BinaryOp::subtract:
      return Value::number(a - b);
    case BinaryOp::multiply:
      return Value::number(a * b);
    case BinaryOp::divide:
      return Value::number(a / b);
    case BinaryOp::floor_divide:
      return Value::number(std::floor(a / b));
    default:
      return Value::number(floor_modulo(a, b));
  }
}

Value compute_numbers(Runtime& runtime, BinaryOp op, Value a, Value b) {
  if (op == BinaryOp::power) return power(runtime, a, b);
  if (op == BinaryOp::divide || op == BinaryOp::floor_divide || op == BinaryOp::modulo) {
    expect_divisor(runtime, op, b);
  }
  if (a.is_integral() && b.is_integral() && op != BinaryOp::divide) {
    return compute_integers(runtime, op, a.as_integer(), b.as_integer());
  }
  return compute_floats(op, a.as_number(), b.as_number());
}

Value join_sequences(Runtime& runtime, Value a, Value b) {
  List& joined = runtime.make_list();
  for (const Value item : a.as_list().items) runtime.append(joined, item);
  for (const Value item : b.as_list().items) runtime.append(joined, item);
  return a.is(Kind::list) ? Value::list(joined) : Value::tuple(joined);
}

Value repeat(Runtime& runtime, Value what, int64_t n_times) {
  const auto n = static_cast<size_t>(std::max<int64_t>(n_times, 0));
  if (what.is_string()) {
    TextBuilder text(runtime);
    text.repeat(what.as_string(), n);
    return text.finish();
  }
  List& repeated = runtime.make_list();
  const std::vector<Value>& items = what.as_list().items;
  for (size_t i = 0; i < n && !items.empty(); ++i) {
    for (const Value item : items) runtime.append(repeated, item);
  }
  return what.is(Kind::list) ? Value::list(repeated) : Value::tuple(repeated);
}

}  // namespace

Value compute(Runtime& runtime, BinaryOp op, Value a, Value b) {
  if (a.is_numeric() && b.is_numeric()) return compute_numbers(runtime, op, a, b);
  if (op == BinaryOp::modulo && a.is_string()) return format_percent(runtime, a.as_string(), b);
  if (op == BinaryOp::add) {
    if (a.is_string() && b.is_string()) {
      TextBuilder text(runtime);
      text.add(a.as_string());
      text.add(b.as_string());
      return text.finish();
    }
    if (a.is_sequence() && a.kind() == b.kind()) return join_sequences(runtime, a, b);
  }
  if (op == BinaryOp::multiply) {
    const bool repeats_a = a.is_string() || a.is_sequence();
    const bool repeats_b = b.is_string() || b.is_sequence();
    if (repeats_a && b.is_integral()) return repeat(runtime, a, b.as_integer());
    if (repeats_b && a.is_integral()) return repeat(runtime, b, a.as_integer());
  }
  fail_operands(runtime, op, a, b);
}

Value compute(Runtime& runtime, UnaryOp op, Value a) {
  if (op == UnaryOp::logical_not) return Value::boolean(!is_true(a));
  if (!a.is_numeric()) runtime.fail_kind("the operand of a sign", "a number", a);
  if (a.is(Kind::number)) {
    return Value::number(op == UnaryOp::minus ? -a.as_number() : a.as_number());
  }
  if (op == UnaryOp::plus) return Value::integer(a.as_integer());
  return compute_integers(runtime, BinaryOp::subtract, 0, a.as_integer());
}

}  // namespace sluice::text::jinja
