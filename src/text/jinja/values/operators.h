// The operators of expressions, with Python's meaning. Each refuses kinds it is not made for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

#include "text/jinja/runtime.h"

namespace sluice::text::jinja {

enum class BinaryOp : uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class CompareOp : uint8_t { eq, ne, lt, le, gt, ge, in, not_in };
enum class UnaryOp : uint8_t { plus, minus, logical_not };

Value compute(Runtime& runtime, BinaryOp op, Value a, Value b);
Value compute(Runtime& runtime, UnaryOp op, Value a);

bool compare(Runtime& runtime, CompareOp op, Value a, Value b);
bool equal(Runtime& runtime, Value a, Value b);
// Numbers, strings and sequences have an order, each kind among itself.
std::partial_ordering order(Runtime& runtime, Value a, Value b);
bool contains(Runtime& runtime, Value container, Value item);

// Where `part` begins in `text`, or npos; in linear time whatever the two are.
size_t find_text(std::string_view text, std::string_view part, size_t from = 0);

}  // namespace sluice::text::jinja
