// Long texts without a place to cut them. What these tests must see is work that grows with the
// square of a length: of a megabyte that is 10^12 steps, and the test's time limit ends it.
// bench_text prints the time.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "support/sanitizers.h"
#include "text/tokenizer/tokenizer.h"
#include "unit/text/tokenizer/long_texts.h"

namespace sluice::text {
namespace {

constexpr size_t kLengthTokens = 20000;
constexpr size_t kMegabyte = size_t{1} << (sluice::test::kSanitized ? 17 : 20);

void expect_whole(const Tokenizer& tokenizer, const std::string& text, const std::string& what) {
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, kParsed)), text) << what;
}

TEST(TokenizerLength, AMegabyteWithoutASpaceComesBackWhole) {
  const TokenizerData data = prose_data(kLengthTokens);
  for (const char* pre : {"qwen2", "gpt-4o", "gpt-2", "deepseek-llm", "deepseek-v3"}) {
    TokenizerData named = data;
    named.pre = pre;
    const Tokenizer tokenizer(std::move(named));
    for (const auto& [what, text] : runs_without_an_end(kMegabyte)) {
      expect_whole(tokenizer, text, cat(pre, ", ", what));
    }
  }
}

TEST(TokenizerLength, AMegabyteForLlamaComesBackWhole) {
  const Tokenizer tokenizer(spm_prose_data(kLengthTokens));
  expect_whole(tokenizer, Prose().text(kMegabyte), "prose");
  expect_whole(tokenizer, std::string(kMegabyte, 'e'), "one letter");
}

}  // namespace
}  // namespace sluice::text
