// See number.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/json_schema/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"

namespace sluice::text::grammar {
namespace {

constexpr int kIntegerDigits = 18;
constexpr int kNumberDigits = 15;
// Behind the point, where only one bound says how large numbers are.
constexpr int kUsualFraction = 5;

Decimal parse(std::string_view text) {
  Decimal out;
  out.negative = text.starts_with('-');
  if (out.negative) text.remove_prefix(1);
  const size_t point = std::min(text.find('.'), text.size());
  out.whole = text.substr(0, point);
  out.fraction = text.substr(std::min(point + 1, text.size()));
  while (out.fraction.ends_with('0')) out.fraction.pop_back();
  if (out.is_zero()) out.negative = false;
  return out;
}

int sign(int comparison) { return comparison < 0 ? -1 : comparison > 0 ? 1 : 0; }

// Without the signs. Strings of one length, and fractions, compare as text does.
int compare_magnitudes(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  if (a.whole != b.whole) return sign(a.whole.compare(b.whole));
  return sign(a.fraction.compare(b.fraction));
}

// Numbers without a sign, of at most so many digits before and behind the point, compared with a
// bound that has none either.
class Magnitudes {
 public:
  Magnitudes(int n_whole, int n_fraction, RuleSet& rules, JsonPieces& pieces)
      : n_whole_(n_whole), n_fraction_(n_fraction), rules_(rules), pieces_(pieces) {}

  ExprId all() { return sequence({whole_of_length(1, n_whole_), any_fraction()}); }

  ExprId at_least(const NumberBound& bound) {
    const std::string& b = bound.value.whole;
    const int n = static_cast<int>(b.size());
    std::vector<ExprId> ways;
    if (n < n_whole_) ways.push_back(sequence({whole_of_length(n + 1, n_whole_), any_fraction()}));
    add_same_length(b, '9', ways);
    if (n <= n_whole_) {
      ways.push_back(sequence({rules_.literal(b), fraction_at_least(bound)}));
    }
    return rules_.choice(std::move(ways));
  }

  ExprId at_most(const NumberBound& bound) {
    const std::string& b = bound.value.whole;
    const int n = static_cast<int>(b.size());
    if (n > n_whole_) return all();
    std::vector<ExprId> ways;
    if (n > 1) ways.push_back(sequence({whole_of_length(1, n - 1), any_fraction()}));
    add_same_length(b, '0', ways);
    ways.push_back(sequence({rules_.literal(b), fraction_at_most(bound)}));
    return rules_.choice(std::move(ways));
  }

 private:
  ExprId sequence(std::vector<ExprId> parts) { return rules_.sequence(std::move(parts)); }
  ExprId digit_between(char low, char high) {
    return rules_.characters(
        CodePointSet().add(static_cast<char32_t>(low), static_cast<char32_t>(high)));
  }

  ExprId whole_of_length(int min, int max) {
    const ExprId longer =
        sequence({digit_between('1', '9'), pieces_.digits(std::max(min, 1) - 1, max - 1)});
    return min > 1 ? longer : rules_.choice({rules_.literal("0"), longer});
  }

  ExprId any_fraction() {
    if (n_fraction_ == 0) return rules_.literal("");
    return rules_.optional(sequence({rules_.literal("."), pieces_.digits(1, n_fraction_)}));
  }

  // As many digits as b, and for some i: as b up to i, then on the side of `limit` (0 or 9), then
  // anything.
  void add_same_length(const std::string& b, char limit, std::vector<ExprId>& ways) {
    if (static_cast<int>(b.size()) > n_whole_) return;
    for (size_t i = 0; i < b.size(); ++i) {
      const char least = i == 0 && b.size() > 1 ? '1' : '0';
      const char low = limit == '0' ? least : static_cast<char>(b[i] + 1);
      const char high = limit == '0' ? static_cast<char>(b[i] - 1) : '9';
      if (low > high) continue;
      const int rest = static_cast<int>(b.size() - i - 1);
      ways.push_back(sequence({rules_.literal(b.substr(0, i)), digit_between(low, high),
                               pieces_.digits(rest, rest), any_fraction()}));
    }
  }

  // ".", the first i digits of the bound's fraction, a digit between, and anything.
  void add_fraction(const std::string& f, size_t i, char low, char high,
                    std::vector<ExprId>& ways) {
    const int rest = n_fraction_ - static_cast<int>(i) - 1;
    if (low > high || rest < 0) return;
    ways.push_back(sequence({rules_.literal(cat(".", f.substr(0, i))), digit_between(low, high),
                             pieces_.digits(0, rest)}));
  }

  ExprId fraction_at_least(const NumberBound& bound) {
    const std::string& f = bound.value.fraction;
    const int rest = n_fraction_ - static_cast<int>(f.size());
    std::vector<ExprId> ways;
    for (size_t i = 0; i < f.size(); ++i) {
      add_fraction(f, i, static_cast<char>(f[i] + 1), '9', ways);
    }
    if (bound.exclusive) {
      // The same digits, zeros, and then one that is none.
      for (int zeros = 0; zeros < rest; ++zeros) {
        const std::string longer = f + std::string(static_cast<size_t>(zeros), '0');
        add_fraction(longer, longer.size(), '1', '9', ways);
      }
    } else if (f.empty()) {
      return any_fraction();
    } else if (rest >= 0) {
      ways.push_back(sequence({rules_.literal(cat(".", f)), pieces_.digits(0, rest)}));
    }
    return rules_.choice(std::move(ways));
  }

  ExprId fraction_at_most(const NumberBound& bound) {
    const std::string& f = bound.value.fraction;
    const int rest = n_fraction_ - static_cast<int>(f.size());
    std::vector<ExprId> ways;
    if (!f.empty() || !bound.exclusive) ways.push_back(rules_.literal(""));
    for (size_t i = 0; i < f.size(); ++i) {
      add_fraction(f, i, '0', static_cast<char>(f[i] - 1), ways);
      if (i > 0 && static_cast<int>(i) <= n_fraction_) {
        ways.push_back(rules_.literal(cat(".", f.substr(0, i))));
      }
    }
    const ExprId zero = rules_.literal("0");
    if (!bound.exclusive && rest >= 0 && !(f.empty() && rest == 0)) {
      ways.push_back(
          sequence({rules_.literal(cat(".", f)), rules_.repeat(zero, f.empty() ? 1 : 0, rest)}));
    }
    return rules_.choice(std::move(ways));
  }

  const int n_whole_;
  const int n_fraction_;
  RuleSet& rules_;
  JsonPieces& pieces_;
};

// Signs: a number below zero is at least the bound if its magnitude is at most the bound's.
ExprId between(const NumberRange& range, Magnitudes numbers, RuleSet& rules) {
  const auto negative = [&](ExprId magnitude) {
    return rules.sequence({rules.literal("-"), magnitude});
  };
  const ExprId below_zero = negative(numbers.at_least({Decimal(), true}));  // -0 is not written
  ExprId out = rules.choice({numbers.all(), below_zero});
  if (range.low) {
    const bool is_negative = range.low->value.negative;
    out = rules.both(out, is_negative
                              ? rules.choice({numbers.all(), negative(numbers.at_most(*range.low))})
                              : numbers.at_least(*range.low));
  }
  if (range.high) {
    const bool is_negative = range.high->value.negative;
    out = rules.both(out, is_negative ? negative(numbers.at_least(*range.high))
                                      : rules.choice({below_zero, numbers.at_most(*range.high)}));
  }
  return out;
}

int n_digits(const std::string& digits) { return static_cast<int>(digits.size()); }

// A bound with so many digits behind the point, on the inner side of the one it was: magnitudes
// grow where the bound keeps numbers away from zero.
void shorten(NumberBound& bound, int n_fraction, bool grow) {
  Decimal& value = bound.value;
  if (n_digits(value.fraction) <= n_fraction) return;
  std::string digits = value.whole + value.fraction.substr(0, static_cast<size_t>(n_fraction));
  if (grow) {
    size_t i = digits.size();
    while (i > 0 && digits[i - 1] == '9') digits[--i] = '0';
    if (i == 0) {
      digits = cat("1", digits);
    } else {
      ++digits[i - 1];
    }
  }
  digits.insert(digits.end() - n_fraction, '.');
  const bool negative = value.negative;
  value = parse(digits);
  value.negative = negative && !value.is_zero();
  bound.exclusive = false;
}

}  // namespace

Decimal Decimal::of(int64_t value) { return parse(std::to_string(value)); }
Decimal Decimal::of(uint64_t value) { return parse(std::to_string(value)); }

Decimal Decimal::of(double value) {
  std::array<char, 1100> buffer;  // the smallest double has 1074 digits behind the point
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  CHECK(error == std::errc());
  return parse({buffer.data(), static_cast<size_t>(end - buffer.data())});
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return a.negative ? compare_magnitudes(b, a) : compare_magnitudes(a, b);
}

bool NumberRange::is_empty() const {
  if (!low || !high) return false;
  const int order = compare(low->value, high->value);
  return order > 0 || (order == 0 && (low->exclusive || high->exclusive));
}

ExprId integer_between(const NumberRange& range, RuleSet& rules, JsonPieces& pieces) {
  if (!range.low && !range.high) return pieces.integer();
  return between(range, Magnitudes(kIntegerDigits, 0, rules, pieces), rules);
}

ExprId number_between(const NumberRange& wanted, RuleSet& rules, JsonPieces& pieces) {
  if (!wanted.low && !wanted.high) return pieces.number();
  // Bounds beyond all numbers that are written here say nothing.
  NumberRange range = wanted;
  const auto is_far = [](const NumberBound& b) { return n_digits(b.value.whole) > kNumberDigits; };
  if (range.low && range.low->value.negative && is_far(*range.low)) range.low.reset();
  if (range.high && !range.high->value.negative && is_far(*range.high)) range.high.reset();
  int whole = 1, fraction = 0;
  for (const auto& bound : {range.low, range.high}) {
    if (bound) whole = std::max(whole, n_digits(bound->value.whole));
  }
  if (whole > kNumberDigits) {
    throw Error(Errc::bad_request, cat("found a bound of ", whole, " digits, expected at most ",
                                       kNumberDigits, "; numbers with bounds are not larger"));
  }
  if (range.low) shorten(*range.low, kNumberDigits - whole, !range.low->value.negative);
  if (range.high) shorten(*range.high, kNumberDigits - whole, range.high->value.negative);
  for (const auto& bound : {range.low, range.high}) {
    if (bound) fraction = std::max(fraction, n_digits(bound->value.fraction));
  }
  // With both bounds, what they leave goes behind the point; with one, numbers may grow.
  const bool both = range.low && range.high;
  const int room = kNumberDigits - whole;
  fraction = both ? room : std::max(fraction, std::min(kUsualFraction, room));
  return between(range, Magnitudes(kNumberDigits - fraction, fraction, rules, pieces), rules);
}

}  // namespace sluice::text::grammar
