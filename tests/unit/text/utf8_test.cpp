// UTF-8: which byte strings are characters, which may become one, and which never will.
// SPDX-License-Identifier: Apache-2.0
#include "text/utf8.h"

#include <gtest/gtest.h>

#include <string>

#include "unit/text/tokenizer/samples.h"

namespace sluice::text {
namespace {

struct Utf8Case {
  const char* name;
  std::string bytes;
  Utf8State state;
  size_t n_bytes;
};

TEST(Utf8, EveryCharacterIsCompleteAndItsBeginningsAreIncomplete) {
  for (unsigned code = 0; code <= 0x10ffff; ++code) {
    if (code >= 0xd800 && code < 0xe000) continue;
    const std::string c = RandomTexts::utf8(code);
    const Utf8Unit whole = next_utf8(c + "\xff");
    ASSERT_EQ(whole.state, Utf8State::complete) << "U+" << std::hex << code;
    ASSERT_EQ(whole.n_bytes, c.size()) << "U+" << std::hex << code;
    for (size_t n = 1; n < c.size(); ++n) {
      const Utf8Unit part = next_utf8(std::string_view(c).substr(0, n));
      ASSERT_EQ(part.state, Utf8State::incomplete) << "U+" << std::hex << code << ", " << n;
      ASSERT_EQ(part.n_bytes, n) << "U+" << std::hex << code;
    }
  }
}

TEST(Utf8, WhatIsNoCharacterIsInvalidUpToTheByteThatShowsIt) {
  const Utf8Case cases[] = {
      {"a continuation byte", "\x80", Utf8State::invalid, 1},
      {"C0, always too long", "\xc0\x80", Utf8State::invalid, 1},
      {"C1, always too long", "\xc1\xbf", Utf8State::invalid, 1},
      {"two bytes, the second missing",
       "\xc2"
       "A",
       Utf8State::invalid, 1},
      {"three bytes, too long", "\xe0\x9f\xbf", Utf8State::invalid, 1},
      {"a surrogate", "\xed\xa0\x80", Utf8State::invalid, 1},
      {"three bytes, the third missing",
       "\xe4\xb8"
       "A",
       Utf8State::invalid, 2},
      {"four bytes, too long", "\xf0\x8f\xbf\xbf", Utf8State::invalid, 1},
      {"four bytes, above U+10FFFF", "\xf4\x90\x80\x80", Utf8State::invalid, 1},
      {"four bytes, the fourth missing", "\xf0\x9f\x98 ", Utf8State::invalid, 3},
      {"F5, above U+10FFFF", "\xf5\x80\x80\x80", Utf8State::invalid, 1},
      {"FF", "\xff", Utf8State::invalid, 1},
      {"a surrogate's beginning that is the end", "\xed", Utf8State::incomplete, 1},
      {"three of four bytes", "\xf0\x9f\x98", Utf8State::incomplete, 3},
  };
  for (const Utf8Case& c : cases) {
    const Utf8Unit unit = next_utf8(c.bytes);
    EXPECT_EQ(unit.state, c.state) << c.name;
    EXPECT_EQ(unit.n_bytes, c.n_bytes) << c.name;
  }
}

TEST(Utf8, TheValidBeginningEndsBeforeTheFirstBadByte) {
  EXPECT_EQ(valid_utf8_length(""), 0u);
  EXPECT_EQ(valid_utf8_length("abc"), 3u);
  EXPECT_EQ(valid_utf8_length("a\xc3\xa4z"), 4u);
  EXPECT_EQ(valid_utf8_length("a\xc3\xa4\xff z"), 3u);
  EXPECT_EQ(valid_utf8_length("a\xe4\xb8"), 1u);
  EXPECT_EQ(valid_utf8_length("\x80"), 0u);
  EXPECT_EQ(valid_utf8_length(std::string("a\0b", 3)), 3u);
}

}  // namespace
}  // namespace sluice::text
