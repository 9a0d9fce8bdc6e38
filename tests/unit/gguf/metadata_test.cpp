// The getters: what they widen, what they refuse, and how they say so.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/metadata.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/gguf/temp_dir.h"

namespace sluice::gguf::test {
namespace {

constexpr auto kMax64 = std::numeric_limits<uint64_t>::max();

Metadata sample() {
  Metadata m("dir/m.gguf");
  m.set("u8", uint8_t{200});
  m.set("i8", int8_t{-3});
  m.set("u16", uint16_t{60000});
  m.set("i16", int16_t{-30000});
  m.set("u32", uint32_t{4000000000});
  m.set("i32", int32_t{-2000000000});
  m.set("u64", uint64_t{1} << 62);
  m.set("i64", std::numeric_limits<int64_t>::min());
  m.set("u64_max", kMax64);
  m.set("f32", 1.5f);
  m.set("f64", 0.25);
  m.set("bool", true);
  m.set("string", "text");
  m.set("ints", std::vector<uint16_t>{3, 1, 2});
  m.set("bools", std::vector<bool>{true, false, true});
  m.set("floats", std::vector<float>{1, 2});
  m.set("strings", std::vector<std::string>{"a", "b"});
  return m;
}

TEST(Metadata, KeepsTheOrderAndThePlaceOfAReplacedKey) {
  Metadata m;
  m.set("c", 1u);
  m.set("a", 2u);
  m.set("b", 3u);
  m.set("a", "four");
  ASSERT_EQ(m.entries().size(), 3u);
  EXPECT_EQ(m.entries()[0].key, "c");
  EXPECT_EQ(m.entries()[1].key, "a");
  EXPECT_EQ(m.entries()[2].key, "b");
  EXPECT_EQ(m.get_string("a"), "four");
  EXPECT_EQ(m.find("d"), nullptr);
  EXPECT_TRUE(m.contains("b"));
}

TEST(Metadata, ReadsIntegersOfAnyWidthAndSign) {
  const Metadata m = sample();
  EXPECT_EQ(m.get_int("u8"), 200);
  EXPECT_EQ(m.get_int("i8"), -3);
  EXPECT_EQ(m.get_int("u16"), 60000);
  EXPECT_EQ(m.get_int("i16"), -30000);
  EXPECT_EQ(m.get_int("u32"), 4000000000);
  EXPECT_EQ(m.get_int("i32"), -2000000000);
  EXPECT_EQ(m.get_int("u64"), int64_t{1} << 62);
  EXPECT_EQ(m.get_int("i64"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(m.get_int("bool"), 1);
}

TEST(Metadata, RefusesIntegersOutOfRangeWithNumberAndRange) {
  const Metadata m = sample();
  EXPECT_EQ(error_of([&] { m.get_int("u64_max"); }),
            "dir/m.gguf: key 'u64_max' is 18446744073709551615; expected an integer from "
            "-9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(error_of([&] { m.get_int("i8", {.min = 1, .max = 9}); }),
            "dir/m.gguf: key 'i8' is -3; expected an integer from 1 to 9");
  EXPECT_EQ(m.get_int("u8", {.min = 200, .max = 200}), 200);
  EXPECT_PRED2(contains, error_of([&] { m.get_ints("ints", {.min = 2, .max = 9}); }), "is 1;");
}

TEST(Metadata, NamesFileKeyFoundTypeAndExpectation) {
  const Metadata m = sample();
  EXPECT_EQ(error_of([&] { m.get_int("none"); }),
            "dir/m.gguf: key 'none' is missing; expected an integer");
  EXPECT_EQ(error_of([&] { m.get_int("string"); }),
            "dir/m.gguf: key 'string' is of type string; expected an integer");
  EXPECT_EQ(error_of([&] { m.get_int("ints"); }),
            "dir/m.gguf: key 'ints' is of type array of 3 u16; expected an integer");
  EXPECT_EQ(error_of([&] { m.get_int("f32"); }),
            "dir/m.gguf: key 'f32' is of type f32; expected an integer");
  EXPECT_EQ(error_of([&] { m.get_float("bool"); }),
            "dir/m.gguf: key 'bool' is of type bool; expected a number");
  EXPECT_EQ(error_of([&] { m.get_string("u8"); }),
            "dir/m.gguf: key 'u8' is of type u8; expected a string");
  EXPECT_EQ(error_of([&] { m.get_bool_or("u8", true); }),
            "dir/m.gguf: key 'u8' is of type u8; expected a bool");
  EXPECT_EQ(error_of([&] { m.get_ints("floats"); }),
            "dir/m.gguf: key 'floats' is of type array of 2 f32; expected an integer or an array "
            "of integers");
  EXPECT_EQ(error_of([&] { m.get_strings("string"); }),
            "dir/m.gguf: key 'string' is of type string; expected an array of string");
}

TEST(Metadata, FallsBackOnlyWhenTheKeyIsMissing) {
  const Metadata m = sample();
  EXPECT_EQ(m.get_int_or("none", 7), 7);
  EXPECT_EQ(m.get_int_or("u8", 7), 200);
  EXPECT_EQ(m.get_float_or("none", 0.5f), 0.5f);
  EXPECT_EQ(m.get_float_or("f32", 0.5f), 1.5f);
  EXPECT_TRUE(m.get_bool_or("none", true));
  EXPECT_TRUE(m.get_bool_or("bool", false));
  EXPECT_EQ(m.get_string_or("none", "x"), "x");
  EXPECT_EQ(m.get_string_or("string", "x"), "text");
  EXPECT_PRED2(contains, error_of([&] { m.get_int_or("string", 7); }), "type string");
  EXPECT_PRED2(contains, error_of([&] { m.get_float_or("string", 7); }), "type string");
}

TEST(Metadata, ReadsFloatsFromBothWidthsAndFromIntegers) {
  const Metadata m = sample();
  EXPECT_EQ(m.get_float("f32"), 1.5f);
  EXPECT_EQ(m.get_float("f64"), 0.25f);
  EXPECT_EQ(m.get_float("i16"), -30000.0f);
}

TEST(Metadata, RefusesNumbersThatAreNotFiniteFloats) {
  Metadata m("m.gguf");
  m.set("nan", std::nanf(""));
  m.set("inf", -std::numeric_limits<double>::infinity());
  m.set("big", 1e300);
  for (const char* key : {"nan", "inf", "big"}) {
    EXPECT_PRED2(contains, error_of([&] { m.get_float(key); }), "expected a finite 32-bit number");
  }
}

TEST(Metadata, ReadsIntegerListsFromScalarsAndArrays) {
  const Metadata m = sample();
  EXPECT_EQ(m.get_ints("i8"), (std::vector<int64_t>{-3}));
  EXPECT_EQ(m.get_ints("ints"), (std::vector<int64_t>{3, 1, 2}));
  EXPECT_EQ(m.get_ints("bools"), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(m.get_strings("strings"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(m.get_floats("floats"), (std::vector<float>{1, 2}));
}

TEST(Metadata, GivesEachLayerItsOwnOrTheCommonValue) {
  const Metadata m = sample();
  EXPECT_EQ(m.get_int_per_layer("u8", 2), (std::vector<int64_t>{200, 200}));
  EXPECT_EQ(m.get_int_per_layer("ints", 3), (std::vector<int64_t>{3, 1, 2}));
  EXPECT_EQ(error_of([&] { m.get_int_per_layer("ints", 4); }),
            "dir/m.gguf: key 'ints' is of type array of 3 u16; expected one value, or 4, one for "
            "each layer");
}

}  // namespace
}  // namespace sluice::gguf::test
