// Numbers under a schema: which are written, and bounds compared with arithmetic.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/sanitizers.h"
#include "text/json_schema/json_schema.h"
#include "text/json_schema/number.h"
#include "unit/text/grammar/accepts.h"
#include "unit/text/grammar/random.h"

namespace sluice::text {
namespace {

using test::expect_schema;
using test::schema_error;

// Of the many cases, all without sanitizers and one in four with them.
constexpr size_t kShare = sluice::test::kSanitized ? 4 : 1;

TEST(JsonSchemaNumber, WritesIntegers) {
  expect_schema(R"({"type":"integer"})",
                {"0", "7", "-1", "123456789012345678", "-999999999999999999"},
                {"", "-", "-0", "00", "01", "+1", "1.0", "1e3", "1234567890123456789", "\"1\""});
}

TEST(JsonSchemaNumber, WritesNumbers) {
  expect_schema(
      R"({"type":"number"})",
      {"0", "-0", "1.5", "-0.001", "1e5", "1E-10", "2.5e+99", "123456789012345.123456789012345"},
      {"", ".5", "1.", "01", "1e", "1e100", "1e+", "0x1", "NaN", "1234567890123456",
       "0.1234567890123456"});
}

// Every integer near the bounds, exclusive and not, on both sides of zero and of powers of ten.
TEST(JsonSchemaNumber, BoundsIntegersExactly) {
  const std::vector<int> ends = {-1001, -1000, -999, -101, -100, -99, -11, -10, -9,  -2,   -1,  0,
                                 1,     2,     9,    10,   11,   99,  100, 101, 999, 1000, 1001};
  size_t n_checked = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    for (size_t j = i; j < ends.size(); j += 3 * kShare) {
      for (const bool exclusive : {false, true}) {
        const int low = ends[i] + (exclusive ? 1 : 0), high = ends[j] - (exclusive ? 1 : 0);
        if (low > high) continue;
        const nlohmann::json schema = {{"type", "integer"},
                                       {exclusive ? "exclusiveMinimum" : "minimum", ends[i]},
                                       {exclusive ? "exclusiveMaximum" : "maximum", ends[j]}};
        const GrammarMatcher matcher = test::matcher_of(compile_json_schema(schema.dump()));
        for (int value = -1200; value <= 1200; ++value) {
          const bool expected = low <= value && value <= high;
          ASSERT_EQ(test::verdict(matcher, std::to_string(value)) == "match", expected)
              << schema << ": " << value;
          ++n_checked;
        }
      }
    }
  }
  EXPECT_GT(n_checked, 200000u / kShare);
}

TEST(JsonSchemaNumber, BoundsIntegersOnOneSide) {
  expect_schema(R"({"type":"integer","minimum":-5})", {"-5", "0", "999999999999999999"},
                {"-6", "-10", "-0"});
  expect_schema(R"({"type":"integer","maximum":-5})", {"-5", "-123456789012345678"},
                {"-4", "0", "5"});
  expect_schema(R"({"type":"integer","exclusiveMinimum":9.5})", {"10", "11"}, {"9", "0"});
  expect_schema(R"({"type":"integer","minimum":9.5,"maximum":12.9})", {"10", "12"}, {"9", "13"});
  expect_schema(R"({"type":"integer","minimum":3,"exclusiveMinimum":3})", {"4"}, {"3"});
  expect_schema(R"({"type":"integer","minimum":5,"exclusiveMinimum":3})", {"5"}, {"4"});
  expect_schema(R"({"minimum":9007199254740991,"type":"integer"})", {"9007199254740991"},
                {"9007199254740990"});
  // The usual bounds of 64-bit integers are beyond what is written, and no obstacle.
  expect_schema(
      R"({"type":"integer","minimum":-9223372036854775808,"maximum":18446744073709551615})",
      {"0", "-999999999999999999", "999999999999999999"}, {"1000000000000000000"});
}

// Decimals of up to two digits before and behind the point, against bounds with up to three.
TEST(JsonSchemaNumber, BoundsNumbersExactly) {
  size_t n_checked = 0;
  for (uint64_t seed = 0; seed < 60 / kShare; ++seed) {
    test::Dice dice(seed);
    const auto random_thousandths = [&] {
      const int value = static_cast<int>(dice.roll(24000)) - 12000;
      return dice.chance(2) ? value / 500 * 500 : value;
    };
    int low = random_thousandths(), high = random_thousandths();
    if (low > high) std::swap(low, high);
    const bool low_exclusive = dice.chance(2), high_exclusive = dice.chance(2);
    const bool has_low = !dice.chance(4), has_high = !dice.chance(4);
    if (low == high && (low_exclusive || high_exclusive)) continue;
    nlohmann::json schema = {{"type", "number"}};
    if (has_low) schema[low_exclusive ? "exclusiveMinimum" : "minimum"] = low / 1000.0;
    if (has_high) schema[high_exclusive ? "exclusiveMaximum" : "maximum"] = high / 1000.0;
    const GrammarMatcher matcher = test::matcher_of(compile_json_schema(schema.dump()));
    for (int value = -13000; value <= 13000; value += 10) {
      const bool above = !has_low || (low_exclusive ? value > low : value >= low);
      const bool below = !has_high || (high_exclusive ? value < high : value <= high);
      const std::string magnitude = std::to_string(std::abs(value) / 1000);
      const std::string hundredths = std::to_string(1000 + std::abs(value) % 1000).substr(1, 2);
      const std::string sign = value < 0 ? "-" : "";
      std::vector<std::string> spellings = {cat(sign, magnitude, ".", hundredths)};
      if (hundredths == "00") spellings.push_back(sign + magnitude);
      if (hundredths[1] == '0') spellings.push_back(cat(sign, magnitude, ".", hundredths[0]));
      spellings.push_back(cat(spellings[0], "000"));
      for (const std::string& text : spellings) {
        ASSERT_EQ(test::verdict(matcher, text) == "match", above && below)
            << "seed " << seed << ", " << schema << ": " << text;
        ++n_checked;
      }
    }
  }
  EXPECT_GT(n_checked, 100000u / kShare);
}

TEST(JsonSchemaNumber, WritesBoundedNumbersWithFewDigits) {
  expect_schema(R"({"type":"number","minimum":0,"maximum":1})",
                {"0", "1", "0.5", "1.0", "0.00000000000001", "0.99999999999999"},
                {"-0.1", "1.1", "1.00000000000001", "5e-1", "-0", "0.000000000000001"});
  expect_schema(R"({"type":"number","minimum":0})", {"0", "12345678.12345", "9999999999"},
                {"-1", "1e5", "12345678901"});
  // A bound with more digits than that gives way to the inner side.
  expect_schema(R"({"type":"number","maximum":18.369999999999997})",
                {"18.3699999999999", "18", "-5"}, {"18.37", "18.4"});
  expect_schema(R"({"type":"number","minimum":0.30000000000000004})", {"0.30000000000001", "1"},
                {"0.3", "0.30000000000000"});
  expect_schema(R"({"type":"number","maximum":1e300})", {"123", "-123.5"}, {"1e5"});
}

TEST(JsonSchemaNumber, RefusesBoundsWithoutNumbers) {
  EXPECT_EQ(schema_error(R"({"type":"integer","minimum":3,"maximum":2})"),
            "JSON schema, #: no number lies between the bounds");
  EXPECT_EQ(schema_error(R"({"type":"number","minimum":3,"exclusiveMaximum":3})"),
            "JSON schema, #: no number lies between the bounds");
  EXPECT_EQ(schema_error(R"({"type":"integer","exclusiveMinimum":3,"exclusiveMaximum":4})"),
            "nothing can ever match the grammar: # has no end or contradicts itself; give it an "
            "alternative that ends");
  EXPECT_EQ(schema_error(R"({"minimum":true})"),
            "JSON schema, #: found minimum true, expected a number");
  EXPECT_EQ(schema_error(R"({"type":"number","minimum":1e300})"),
            "JSON schema, #: found a bound of 301 digits, expected at most 15; numbers with bounds "
            "are not larger");
  EXPECT_EQ(
      schema_error(R"({"multipleOf":2})"),
      "JSON schema, #: multipleOf is not supported, and without it the output could be invalid; "
      "express it otherwise or remove it");
}

TEST(JsonSchemaDecimal, IsTheShortestThatReadsBack) {
  using grammar::Decimal;
  const auto shown = [](const Decimal& d) {
    return cat(d.negative ? "-" : "", d.whole, ".", d.fraction);
  };
  EXPECT_EQ(shown(Decimal::of(0.1)), "0.1");
  EXPECT_EQ(shown(Decimal::of(-0.0)), "0.");
  EXPECT_EQ(shown(Decimal::of(-1234.5)), "-1234.5");
  EXPECT_EQ(shown(Decimal::of(1e21)), "1000000000000000000000.");
  EXPECT_EQ(shown(Decimal::of(5e-324)).size(), 326u);
  EXPECT_EQ(shown(Decimal::of(int64_t{-40})), "-40.");
  EXPECT_EQ(shown(Decimal::of(~uint64_t{0})), "18446744073709551615.");
  const double values[] = {-100, -2.5, -2.25, -1, 0, 0.5, 0.75, 1, 1.5, 9, 10, 11.125};
  for (const double a : values) {
    for (const double b : values) {
      EXPECT_EQ(compare(Decimal::of(a), Decimal::of(b)), a < b   ? -1
                                                         : a > b ? 1
                                                                 : 0)
          << a << " " << b;
    }
  }
}

}  // namespace
}  // namespace sluice::text
