// Values, dictionaries, and their way from and to JSON.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/value.h"

#include <gtest/gtest.h>

#include <limits>

#include "text/jinja/values/json.h"
#include "unit/text/jinja/render.h"

namespace sluice::text::jinja {
namespace {

TEST(JinjaDict, KeepsTheOrderOfInsertion) {
  Dict dict;
  for (int i = 99; i >= 0; --i) dict.set(Value::integer(i), Value::integer(-i));
  dict.set(Value::integer(50), Value::integer(7));
  ASSERT_EQ(dict.size(), 100u);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(dict.entries()[i].key.as_integer(), 99 - static_cast<int64_t>(i));
  }
  EXPECT_EQ(dict.find(Value::integer(50))->as_integer(), 7);
}

TEST(JinjaDict, TakesEqualNumbersForOneKey) {
  Dict dict;
  dict.set(Value::integer(1), Value::string("a"));
  dict.set(Value::number(1.0), Value::string("b"));
  dict.set(Value::boolean(true), Value::string("c"));
  dict.set(Value::string("1"), Value::string("d"));
  dict.set(Value::none(), Value::string("e"));
  ASSERT_EQ(dict.size(), 3u);
  EXPECT_EQ(dict.find(Value::integer(1))->as_string(), "c");
  EXPECT_EQ(dict.find("1")->as_string(), "d");
  EXPECT_EQ(dict.find(Value::none())->as_string(), "e");
}

// Below and above the size from which a tree is searched.
TEST(JinjaDict, FindsAndErasesAtEverySize) {
  for (const int n : {1, 5, 12, 13, 14, 40}) {
    std::vector<std::string> names;
    for (int i = 0; i < n; ++i) names.push_back("key" + std::to_string(i * 7 % n));
    Dict dict;
    for (const std::string& name : names) dict.set(Value::string(name), Value::string(name));
    for (const std::string& name : names) {
      ASSERT_NE(dict.find(name), nullptr) << n << " " << name;
      EXPECT_EQ(dict.find(name)->as_string(), name) << n;
    }
    EXPECT_EQ(dict.find("nosuch"), nullptr);
    EXPECT_FALSE(dict.erase(Value::string("nosuch")));
    const size_t n_before = dict.size();
    EXPECT_TRUE(dict.erase(Value::string(names[0])));
    EXPECT_EQ(dict.size(), n_before - 1);
    EXPECT_EQ(dict.find(names[0]), nullptr);
    for (const auto& [key, value] : dict.entries()) {
      EXPECT_EQ(dict.find(key)->as_string(), value.as_string()) << n;
    }
  }
}

TEST(JinjaDict, HasNoKeyThatIsAContainer) {
  List list;
  Dict dict;
  EXPECT_FALSE(Dict::can_be_key(Value::list(list)));
  EXPECT_FALSE(Dict::can_be_key(Value::dict(dict)));
  EXPECT_FALSE(Dict::can_be_key(Value()));
  EXPECT_FALSE(Dict::can_be_key(Value::number(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_EQ(dict.find(Value::list(list)), nullptr);
}

TEST(JinjaValue, ComparesIntegersAndFloatsExactly) {
  constexpr int64_t kBig = (int64_t{1} << 53) + 1;
  EXPECT_TRUE(compare_numbers(Value::integer(kBig), Value::number(9007199254740992.0)) > 0);
  EXPECT_TRUE(compare_numbers(Value::number(9007199254740992.0), Value::integer(kBig)) < 0);
  EXPECT_TRUE(compare_numbers(Value::integer(-1), Value::number(-1.5)) > 0);
  EXPECT_TRUE(compare_numbers(Value::integer(std::numeric_limits<int64_t>::max()),
                              Value::number(1e19)) < 0);
  EXPECT_TRUE(compare_numbers(Value::integer(std::numeric_limits<int64_t>::min()),
                              Value::number(-1e19)) > 0);
  const Value nan = Value::number(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(compare_numbers(nan, nan), std::partial_ordering::unordered);
  EXPECT_EQ(compare_numbers(Value::integer(1), nan), std::partial_ordering::unordered);
}

TEST(JinjaJson, GoesThereAndBackUnchanged) {
  const Json json = Json::parse(
      R"({"z": [1, -2, 2.5, true, false, null, "é\n", [], {}], "a": {"b": {"c": [[1]]}}, "": ""})");
  Runtime runtime{Limits()};
  EXPECT_EQ(to_json(runtime, from_json(runtime, json)).dump(), json.dump());
}

TEST(JinjaJson, TurnsIntegersBeyond64SignedBitsIntoFloats) {
  const Json json =
      Json::parse("[18446744073709551615, 9223372036854775807, -9223372036854775808]");
  expect_renders(
      {{"{{ x }}", "[1.8446744073709552e+19, 9223372036854775807, -9223372036854775808]"}},
      {{"x", json}});
}

TEST(JinjaJson, RefusesTextThatIsNotUtf8) {
  const Failure failure = failure_of("{{ x }}", {{"x", "ab\xff"}});
  EXPECT_EQ(failure.code, Errc::bad_request);
  EXPECT_EQ(failure.text,
            "chat template, its input: the input has a string that is not valid UTF-8 at its byte "
            "2: 'ab'");
  EXPECT_EQ(render("{{ y }}", {{"x", "ab\xff"}}), "")
      << "what the template does not mention is not read";
}

TEST(JinjaJson, RefusesInputThatNestsTooDeep) {
  Json json = 1;
  for (int i = 0; i < 100'000; ++i) json = Json::array({std::move(json)});
  const Failure failure = failure_of("{{ x }}", {{"x", std::move(json)}});
  EXPECT_EQ(failure.code, Errc::bad_request);
  EXPECT_NE(failure.text.find("nest deeper than the limit"), std::string::npos) << failure.text;
}

TEST(JinjaJson, HasNoFormForFunctions) {
  Runtime runtime{Limits()};
  EXPECT_THROW(to_json(runtime, Value()), Error);
}

}  // namespace
}  // namespace sluice::text::jinja
