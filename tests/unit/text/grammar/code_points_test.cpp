// Character sets, and their bytes compared with the encoding of every single character.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/code_points.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "text/utf8.h"
#include "unit/text/grammar/random.h"

namespace sluice::text::grammar {
namespace {

bool is_surrogate(char32_t c) { return c >= 0xd800 && c <= 0xdfff; }

std::string utf8(char32_t c) {
  std::string out;
  append_utf8(out, c);
  return out;
}

TEST(GrammarCodePointSet, AgreesWithAPlainSetOnRandomRanges) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    test::Dice dice(seed);
    CodePointSet set;
    std::set<char32_t> expected;
    for (int i = 0; i < 8; ++i) {
      const auto first = static_cast<char32_t>(0xd7e0 + dice.roll(2100));
      const auto last = static_cast<char32_t>(first + dice.roll(40));
      set.add(first, last);
      for (char32_t c = first; c <= last; ++c) {
        if (!is_surrogate(c)) expected.insert(c);
      }
    }
    ASSERT_EQ(set.size(), expected.size()) << "seed " << seed;
    const CodePointSet others = set.negated();
    for (char32_t c = 0xd7d0; c < 0xe080; ++c) {
      ASSERT_EQ(set.contains(c), expected.contains(c))
          << "seed " << seed << ", U+" << std::hex << +c;
      ASSERT_EQ(others.contains(c), !is_surrogate(c) && !expected.contains(c)) << +c;
    }
    EXPECT_EQ(others.negated().ranges(), set.ranges());
    for (size_t i = 1; i < set.ranges().size(); ++i) {
      EXPECT_GT(set.ranges()[i].first, set.ranges()[i - 1].last + 1) << "ranges touch";
    }
    EXPECT_TRUE(CodePointSet(set).remove(set).empty());
  }
}

TEST(GrammarCodePointSet, OfATextHasItsCharacters) {
  const CodePointSet set = CodePointSet::of("bé世😀b");
  EXPECT_EQ(set.size(), 4u);
  for (const char32_t c : {U'b', U'é', U'世', U'😀'}) EXPECT_TRUE(set.contains(c));
  EXPECT_FALSE(set.contains('a'));
}

TEST(GrammarUtf8, EveryCharacterIsValidAndDecodesToItself) {
  for (char32_t c = 0; c <= kLastCodePoint; ++c) {
    if (is_surrogate(c)) continue;
    const std::string bytes = utf8(c);
    ASSERT_EQ(valid_utf8_length(bytes), bytes.size()) << "U+" << std::hex << +c;
    size_t at = 0;
    ASSERT_EQ(decode_utf8(bytes, at), c);
    ASSERT_EQ(at, bytes.size());
  }
}

// How many sequences have a byte of each range in turn for this string.
int n_matching(const std::vector<ByteRangeSequence>& sequences, const std::string& bytes) {
  int n = 0;
  for (const ByteRangeSequence& sequence : sequences) {
    bool matches = sequence.n_bytes == bytes.size();
    for (size_t i = 0; matches && i < bytes.size(); ++i) {
      const auto byte = static_cast<uint8_t>(bytes[i]);
      matches = sequence.ranges[i].first <= byte && byte <= sequence.ranges[i].last;
    }
    n += matches ? 1 : 0;
  }
  return n;
}

TEST(GrammarUtf8Sequences, MatchTheCharactersOfARangeOnceAndNoOthers) {
  // Ends at the borders of encoded lengths and of continuation bytes, and beside them.
  const char32_t ends[] = {0,       0x41,    0x7f,    0x80,     0x81,    0xbf,   0xc0,
                           0x7ff,   0x800,   0xfff,   0x1000,   0xd7ff,  0xe000, 0xffff,
                           0x10000, 0x3ffff, 0x40000, 0x10fffe, 0x10ffff};
  for (const char32_t first : ends) {
    for (const char32_t last : ends) {
      if (last < first) continue;
      const CodePointSet set = CodePointSet().add(first, last);
      for (const CodePointRange& range : set.ranges()) {
        const auto sequences = utf8_sequences(range);
        for (const char32_t c : ends) {
          for (const int step : {-1, 0, 1}) {
            const char32_t near = c == 0 ? 0 : static_cast<char32_t>(static_cast<int>(c) + step);
            if (is_surrogate(near) || near > kLastCodePoint) continue;
            const int expected = range.first <= near && near <= range.last ? 1 : 0;
            ASSERT_EQ(n_matching(sequences, utf8(near)), expected)
                << std::hex << +range.first << "-" << +range.last << ": U+" << +near;
          }
        }
      }
    }
  }
}

TEST(GrammarUtf8Sequences, OfAllCharactersAreExactlyUtf8) {
  std::vector<ByteRangeSequence> sequences;
  const CodePointSet all = CodePointSet::all();
  for (const CodePointRange& range : all.ranges()) {
    for (const ByteRangeSequence& sequence : utf8_sequences(range)) sequences.push_back(sequence);
  }
  // All strings of two bytes, and of three whose last is a continuation: overlong forms and
  // surrogates are among them.
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      for (const std::string_view tail : {"", "\x80", "\xbf", "\x80\x80", "\xbf\xbf"}) {
        std::string bytes = {static_cast<char>(a), static_cast<char>(b)};
        bytes += tail;
        const bool is_character = next_utf8(bytes).state == Utf8State::complete &&
                                  next_utf8(bytes).n_bytes == bytes.size();
        ASSERT_EQ(n_matching(sequences, bytes), is_character ? 1 : 0) << a << " " << b;
      }
    }
  }
}

}  // namespace
}  // namespace sluice::text::grammar
