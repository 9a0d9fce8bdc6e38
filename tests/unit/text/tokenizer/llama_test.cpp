// The tokenizer of SentencePiece models as a whole: its defaults, and the space it puts in front.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "text/tokenizer/tokenizer.h"
#include "unit/text/tokenizer/samples.h"

namespace sluice::text {
namespace {

// "▁" and words of it, for llama.
#define SP "\xe2\x96\x81"
TokenizerData llama_data() {
  return spm_data({SP "hi", SP SP, "hi", SP "h", SP, "h", "i", "s>", "</", "<", ">", "/", "s"});
}

TEST(LlamaTokenizer, HasTheIdsOfSentencePieceUnlessTheFileSaysOtherwise) {
  const Tokenizer t(llama_data());
  EXPECT_EQ(t.ids().unknown, 0);
  EXPECT_EQ(t.bos(), 1);
  EXPECT_EQ(t.eos(), 2);
  EXPECT_TRUE(t.adds_bos());
  EXPECT_FALSE(t.adds_eos());
  EXPECT_EQ(Ids(t.end_of_generation().begin(), t.end_of_generation().end()), Ids{2});

  TokenizerData data = llama_data();
  data.ids = {.bos = 5, .eos = 6, .unknown = 7};
  data.add_bos = false;
  const Tokenizer other(std::move(data));
  EXPECT_EQ(other.ids().unknown, 7);
  EXPECT_EQ(other.bos(), 5);
  EXPECT_EQ(other.eos(), 6);
  EXPECT_FALSE(other.adds_bos());

  TokenizerData tiny;
  tiny.model = "llama";
  tiny.tokens = {"a", "b"};
  tiny.scores = {0, 0};
  const Tokenizer two(std::move(tiny));
  EXPECT_EQ(two.eos(), std::nullopt);
  EXPECT_EQ(two.bos(), 1);
}

TEST(LlamaTokenizer, PutsASpaceInFrontOfTextAndBehindSpecialTokens) {
  const Tokenizer t(llama_data());
  const TokenId sp_hi = *t.find(SP "hi");
  EXPECT_EQ(t.encode("hi", {}), (Ids{1, sp_hi}));
  EXPECT_EQ(t.encode("hi hi", kPlain), (Ids{sp_hi, sp_hi}));
  EXPECT_EQ(t.encode(" hi", kPlain), (Ids{*t.find(SP SP), *t.find("hi")}));
  EXPECT_EQ(t.encode("hi<s>hi</s>", kParsed), (Ids{sp_hi, 1, sp_hi, 2}));
  EXPECT_EQ(t.encode("</s>", kPlain), (Ids{*t.find(SP), *t.find("</"), *t.find("s>")}));
  EXPECT_EQ(t.encode("", {}), Ids{1});
}

TEST(LlamaTokenizer, WithoutSpacePrefixTakesTextAsItIs) {
  TokenizerData data = llama_data();
  data.add_space_prefix = false;
  const Tokenizer t(std::move(data));
  EXPECT_EQ(t.encode("hi hi", kPlain), (Ids{*t.find("hi"), *t.find(SP "hi")}));
  EXPECT_EQ(t.decode(t.encode(" hi", kPlain)), " hi");
}

TEST(LlamaTokenizer, DecodesWithoutTheSpaceInFront) {
  const Tokenizer t(llama_data());
  const TokenId sp_hi = *t.find(SP "hi");
  EXPECT_EQ(t.decode(Ids{1, sp_hi, sp_hi}), "hi hi");
  EXPECT_EQ(t.decode(Ids{sp_hi}), "hi");
  EXPECT_EQ(t.decode(Ids{1, sp_hi}, true), "<s>hi");
  EXPECT_EQ(t.decode(Ids{sp_hi, 2, sp_hi}, true), "hi</s> hi");
  EXPECT_EQ(t.decode(Ids{2, sp_hi}), " hi");  // only BOS may stand in front of it
  EXPECT_EQ(t.decode(Ids{*t.find("h"), *t.find(SP)}), "h ");
  EXPECT_EQ(t.decode(Ids{3 + 0xe4, 3 + 0xb8, 3 + 0xad}), "\xe4\xb8\xad");
}

TEST(LlamaTokenizer, NeedsNoPreTokenizer) {
  EXPECT_TRUE(Tokenizer(llama_data()).warnings().empty());
}
#undef SP

}  // namespace
}  // namespace sluice::text
