// Utf8Stream: text comes out as soon as it is decided, never in halves, and however it was cut.
// SPDX-License-Identifier: Apache-2.0
#include "text/utf8_stream.h"

#include <gtest/gtest.h>

#include <string>

#include "text/utf8.h"
#include "unit/text/tokenizer/samples.h"

namespace sluice::text {
namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";

TEST(Utf8Stream, HoldsBackAnIncompleteCharacterUntilItsLastByte) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xf0"), "a");
  EXPECT_EQ(stream.push("\x9f"), "");
  EXPECT_EQ(stream.push("\x98"), "");
  EXPECT_EQ(stream.push("\x80"
                        "b"),
            "\xf0\x9f\x98\x80"
            "b");
  EXPECT_EQ(stream.flush(), "");
}

TEST(Utf8Stream, AnInvalidByteBecomesAReplacementAtOnce) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xff"
                        "b"),
            std::string("a") + kReplacement + "b");
  EXPECT_EQ(stream.push("\xed\xa0\x80"), std::string(kReplacement) + kReplacement + kReplacement);
}

TEST(Utf8Stream, ABrokenCharacterIsOneReplacementAndTheRestGoesOn) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xe4\xb8"), "");
  EXPECT_EQ(stream.push("A"), std::string(kReplacement) + "A");
}

TEST(Utf8Stream, FlushReplacesWhatNeverCameToAnEndAndStartsAnew) {
  Utf8Stream stream;
  EXPECT_EQ(stream.flush(), "");
  EXPECT_EQ(stream.push("x\xf0\x9f\x98"), "x");
  EXPECT_EQ(stream.flush(), kReplacement);
  EXPECT_EQ(stream.flush(), "");
  EXPECT_EQ(stream.push("\x80"), kReplacement);
}

// All at once, byte by byte and in random parts give the same text, valid at every step.
TEST(Utf8Stream, TheTextDoesNotDependOnHowItWasCut) {
  RandomTexts texts(7);
  for (int i = 0; i < 10000; ++i) {
    const std::string bytes = texts.next();
    Utf8Stream whole;
    std::string expected = whole.push(bytes);
    EXPECT_LE(bytes.size(), expected.size() + 3) << "text " << i << ": more than 3 bytes held back";
    expected += whole.flush();
    ASSERT_EQ(valid_utf8_length(expected), expected.size()) << "text " << i;
    if (valid_utf8_length(bytes) == bytes.size()) {
      ASSERT_EQ(expected, bytes) << "text " << i;
    }
    for (const int most : {1, 5}) {
      Utf8Stream cut;
      std::string got;
      for (size_t at = 0; at < bytes.size();) {
        const auto n = static_cast<size_t>(texts.number(1, most));
        const std::string out = cut.push(std::string_view(bytes).substr(at, n));
        ASSERT_EQ(valid_utf8_length(out), out.size()) << "text " << i << " at " << at;
        got += out;
        at += n;
      }
      got += cut.flush();
      ASSERT_EQ(got, expected) << "text " << i << " in parts of up to " << most;
    }
  }
}

}  // namespace
}  // namespace sluice::text
