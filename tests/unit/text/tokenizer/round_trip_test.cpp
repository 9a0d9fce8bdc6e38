// Nothing is lost: 10,000 random strings, of all bytes and many scripts, through every
// pre-tokenizer and through llama's tokenizer and back.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/tokenizer.h"
#include "unit/text/tokenizer/samples.h"

namespace sluice::text {
namespace {

constexpr int kTexts = 10000;

class RoundTrip : public testing::TestWithParam<std::string> {};

TEST_P(RoundTrip, DecodingGivesBackEveryByte) {
  const Tokenizer t(word_data(GetParam()));
  RandomTexts texts(1);
  for (int i = 0; i < kTexts; ++i) {
    const std::string text = texts.next();
    ASSERT_EQ(t.decode(t.encode(text, kPlain), true), text) << "text " << i;
    ASSERT_EQ(t.decode(t.encode(text, kWhole), true), text) << "text " << i << ", parsed";
  }
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const std::string_view name : PreTokenizer::names()) names.emplace_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(OfEach, RoundTrip, testing::ValuesIn(all_names()), [](const auto& test) {
  std::string name = test.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

// But for U+2581, which is a space from then on.
TEST(RoundTripSpm, DecodingGivesBackEveryByte) {
  for (const bool add_space_prefix : {true, false}) {
    TokenizerData data = spm_data({"\xe2\x96\x81the", "\xe2\x96\x81\xe2\x96\x81", "12", "in", "ing",
                                   "\xe2\x96\x81", "e", "t", "h", "\xe4\xb8\xad\xe6\x96\x87", "s>",
                                   "\xd0\xbf\xd1\x80", "</", "\xcc\x81", "i", "n", "g"});
    data.add_space_prefix = add_space_prefix;
    const Tokenizer t(std::move(data));
    RandomTexts texts(2);
    for (int i = 0; i < kTexts; ++i) {
      const std::string text = texts.next();
      if (text.find(kSpmSpace) != std::string::npos) continue;
      ASSERT_EQ(t.decode(t.encode(text, {.add_special = true, .parse_special = false})), text)
          << "text " << i << ", add_space_prefix " << add_space_prefix;
    }
  }
}

}  // namespace
}  // namespace sluice::text
