// Numbers between bounds, digit by digit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "text/grammar/rules.h"
#include "text/json_schema/pieces.h"

namespace sluice::text::grammar {

// A decimal number as written: no leading zeros but a single 0 before the point, no trailing zeros
// behind it.
struct Decimal {
  bool negative = false;
  std::string whole = "0";
  std::string fraction;

  static Decimal of(int64_t value);
  static Decimal of(uint64_t value);
  // The shortest decimal that is read back as `value`; which is finite.
  static Decimal of(double value);

  bool is_zero() const { return whole == "0" && fraction.empty(); }
};

// -1, 0 or 1.
int compare(const Decimal& a, const Decimal& b);

struct NumberBound {
  Decimal value;
  bool exclusive = false;
};

struct NumberRange {
  std::optional<NumberBound> low;
  std::optional<NumberBound> high;
  bool is_empty() const;
};

// Integers of up to 18 digits within the range; without bounds, JsonPieces::integer().
ExprId integer_between(const NumberRange& range, RuleSet& rules, JsonPieces& pieces);

// Numbers within the range with up to 15 digits, no exponent: so few that different ones are
// different doubles too, and a validator that compares doubles agrees. Without bounds,
// JsonPieces::number(). Throws Error if all numbers within the bounds have more digits.
ExprId number_between(const NumberRange& wanted, RuleSet& rules, JsonPieces& pieces);

}  // namespace sluice::text::grammar
