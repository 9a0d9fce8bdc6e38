// Characters: their cases, classes and spaces. The samples were checked against Python 3.11.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/unicode.h"

#include <gtest/gtest.h>

namespace sluice::text::jinja {
namespace {

TEST(JinjaUnicode, ReadsAndWritesEveryLength) {
  for (const uint32_t c :
       {0x0u, 0x41u, 0x7fu, 0x80u, 0x7ffu, 0x800u, 0xffffu, 0x10000u, 0x10ffffu}) {
    std::string text;
    append_character(text, c);
    size_t i = 0;
    EXPECT_EQ(next_character(text, i), c);
    EXPECT_EQ(i, text.size()) << c;
    EXPECT_EQ(n_characters(text + text), 2u) << c;
  }
}

TEST(JinjaUnicode, ChangesCaseAsUnicodeSays) {
  EXPECT_EQ(to_upper("straße ñ ǆ ﬁ ά ж ա ა ŉ"), "STRASSE Ñ Ǆ FI Ά Ж Ա Ა ʼN");
  EXPECT_EQ(to_lower("ÄÉ ΑΒΓ ЖЩ Ǆ Ḁ Ⴀ 𐐀"), "äé αβγ жщ ǆ ḁ ⴀ 𐐨");
  EXPECT_EQ(to_lower("ΟΔΟΣ ΣΣ Σ ΑΣ, AΣ1 1Σ ΣA"), "οδος σς σ ας, aς1 1σ σa");
  EXPECT_EQ(to_upper("ς µ ÿ ı"), "Σ Μ Ÿ I");
  EXPECT_EQ(to_upper("你 1 _ 👋"), "你 1 _ 👋");
}

TEST(JinjaUnicode, KnowsWhichCharactersHaveCases) {
  for (const char* c : {"a", "Z", "é", "ß", "Ж"}) EXPECT_TRUE(has_case(c)) << c;
  for (const char* c : {"1", " ", "你", "'"}) EXPECT_FALSE(has_case(c)) << c;
}

TEST(JinjaUnicode, KnowsPythonsSpaces) {
  for (const uint32_t c :
       {0x09u, 0x0du, 0x1cu, 0x1fu, 0x20u, 0x85u, 0xa0u, 0x1680u, 0x2009u, 0x3000u}) {
    EXPECT_TRUE(is_space(c)) << c;
  }
  for (const uint32_t c : {0x08u, 0x0eu, 0x1bu, 0x21u, 0x200bu, 0x180eu, 0xfeffu}) {
    EXPECT_FALSE(is_space(c)) << c;
  }
  EXPECT_EQ(strip_left("\u3000\n a "), "a ");
  EXPECT_EQ(strip_right(" a \u2028\u00a0"), " a");
  EXPECT_EQ(strip_right("\u3000"), "");
}

TEST(JinjaUnicode, KnowsClasses) {
  EXPECT_TRUE(consists_of(CharacterClass::letter, "aéß你ж"));
  EXPECT_FALSE(consists_of(CharacterClass::letter, "a\n"));
  EXPECT_FALSE(consists_of(CharacterClass::letter, ""));
  EXPECT_TRUE(consists_of(CharacterClass::digit, "09٣"));
  EXPECT_TRUE(consists_of(CharacterClass::alphanumeric, "a1é"));
  EXPECT_FALSE(consists_of(CharacterClass::alphanumeric, "a_"));
  EXPECT_TRUE(consists_of(CharacterClass::unprintable, "\u200b\u00a0"));
  EXPECT_FALSE(consists_of(CharacterClass::unprintable, "é"));
  EXPECT_EQ(n_words("one two_2, drei-vier é"), 5u);
  EXPECT_EQ(n_words(""), 0u);
}

}  // namespace
}  // namespace sluice::text::jinja
