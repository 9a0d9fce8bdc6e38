// The byte alphabet of byte-level BPE: its anchors, and that nothing is lost in it.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::text {
namespace {

// The code point of a string that is exactly one character of one or two bytes of valid UTF-8; -1
// for anything else.
int only_character(const std::string& text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.size() == 1 && byte(0) < 0x80) return byte(0);
  if (text.size() != 2 || byte(0) < 0xc2 || byte(0) > 0xdf || (byte(1) & 0xc0) != 0x80) return -1;
  return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
}

TEST(ByteAlphabet, GivesEachByteACharacterOfItsOwn) {
  std::set<int> seen;
  for (size_t b = 0; b < 256; ++b) {
    const int character = only_character(byte_alphabet()[b]);
    EXPECT_GE(character, 0) << "byte " << b << " is not one valid UTF-8 character";
    EXPECT_TRUE(seen.insert(character).second) << "byte " << b << " shares U+" << character;
  }
}

TEST(ByteAlphabet, HasTheAnchorsOfGpt2) {
  struct Anchor {
    int byte, character;
  };
  for (const Anchor& a :
       {Anchor{0x00, 0x100}, Anchor{'\n', 0x10a}, Anchor{' ', 0x120}, Anchor{'!', '!'},
        Anchor{'A', 'A'}, Anchor{'~', '~'}, Anchor{0x7f, 0x121}, Anchor{0x80, 0x122},
        Anchor{0xa0, 0x142}, Anchor{0xa1, 0xa1}, Anchor{0xac, 0xac}, Anchor{0xad, 0x143},
        Anchor{0xae, 0xae}, Anchor{0xff, 0xff}}) {
    EXPECT_EQ(only_character(byte_alphabet()[static_cast<size_t>(a.byte)]), a.character)
        << "byte " << a.byte;
  }
}

// Spec 4.2: 0x21-0x7e, 0xa1-0xac and 0xae-0xff stand for themselves, the other 68 follow from
// U+0100 on in their order.
TEST(ByteAlphabet, MovesThe68OtherBytesBehindLatin1InOrder) {
  int next = 0x100;
  for (int b = 0; b < 256; ++b) {
    const bool itself = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    EXPECT_EQ(only_character(byte_alphabet()[static_cast<size_t>(b)]), itself ? b : next++)
        << "byte " << b;
  }
  EXPECT_EQ(next, 0x144);
}

}  // namespace
}  // namespace sluice::text
