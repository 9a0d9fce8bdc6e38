// The tokenizer as a whole: special tokens, BOS and EOS, pieces, and what it refuses.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "unit/text/tokenizer/samples.h"

namespace sluice::text {
namespace {

TEST(Tokenizer, ControlTokensAreTextUnlessTheyAreParsed) {
  TokenizerData data = byte_data();
  const TokenId start = add_token(data, "<|x|>", TokenKind::control);
  const Tokenizer t(std::move(data));
  EXPECT_EQ(t.encode("a<|x|>", kPlain), (Ids{'a', '<', '|', 'x', '|', '>'}));
  EXPECT_EQ(t.encode("a<|x|>", kParsed), (Ids{'a', start}));
}

TEST(Tokenizer, UserDefinedTokensAreAlwaysFoundAndUnknownOnesWhenParsed) {
  TokenizerData data = byte_data();
  const TokenId user = add_token(data, "<t>", TokenKind::user_defined);
  const TokenId unknown = add_token(data, "<u>", TokenKind::unknown);
  const TokenId unused = add_token(data, "<v>", TokenKind::unused);
  const Tokenizer t(std::move(data));
  EXPECT_EQ(t.encode("<t>", kPlain), Ids{user});
  EXPECT_EQ(t.encode("<t>", kParsed), Ids{user});
  EXPECT_EQ(t.encode("<u>", kPlain), (Ids{'<', 'u', '>'}));
  EXPECT_EQ(t.encode("<u>", kParsed), Ids{unknown});
  EXPECT_EQ(t.encode("<v>", kParsed), (Ids{'<', 'v', '>'}));
  EXPECT_EQ(t.token_kind(unused), TokenKind::unused);
}

TEST(Tokenizer, PiecesAreMergedApart) {
  TokenizerData data = byte_data("qwen2");
  add_merge(data, "a", "1");
  add_merge(data, "1", "2");
  add_merge(data, "a", "b");
  const Tokenizer t(std::move(data));
  EXPECT_EQ(t.decode(t.encode("ab12", kPlain)), "ab12");
  EXPECT_EQ(t.encode("ab12", kPlain), (Ids{258, '1', '2'}));
}

TEST(Tokenizer, WholePiecesWinOverMergesWhereTheFamilySaysSo) {
  for (const auto& [pre, ids] :
       {std::pair("llama-bpe", Ids{257}), std::pair("tekken", Ids{257}),
        std::pair("qwen2", Ids{'a', 256}), std::pair("glm4", Ids{'a', 256})}) {
    TokenizerData data = byte_data(pre);
    add_merge(data, "b", "c");  // so abc is never merged
    add_token(data, "abc");
    const Tokenizer t(std::move(data));
    EXPECT_EQ(t.encode("abc", kPlain), ids) << pre;
  }
}

// A whole piece that has the text of a control token stays text.
TEST(Tokenizer, AWholePieceIsNeverASpecialToken) {
  TokenizerData data = byte_data("llama-bpe");
  const TokenId word = add_token(data, "abc", TokenKind::control);
  const Tokenizer t(std::move(data));
  EXPECT_EQ(t.encode("abc", kPlain), (Ids{'a', 'b', 'c'}));
  EXPECT_EQ(t.encode("abc", kParsed), Ids{word});
}

TEST(Tokenizer, BosIsAddedByTheFamilyUnlessTheFileSaysOtherwise) {
  struct Case {
    const char* pre;
    std::optional<bool> add_bos;
    bool has_bos;
    bool expected;
  };
  for (const Case& c : {Case{"llama-bpe", {}, true, true}, Case{"tekken", {}, true, true},
                        Case{"qwen2", {}, true, false}, Case{"gpt-2", {}, true, false},
                        Case{"glm4", {}, true, false}, Case{"llama-bpe", false, true, false},
                        Case{"qwen2", true, true, true}, Case{"llama-bpe", {}, false, false},
                        Case{"qwen2", true, false, false}}) {
    TokenizerData data = byte_data(c.pre);
    const TokenId bos = add_token(data, "<s>", TokenKind::control);
    if (c.has_bos) data.ids.bos = bos;
    data.add_bos = c.add_bos;
    const Tokenizer t(std::move(data));
    EXPECT_EQ(t.adds_bos(), c.expected) << c.pre;
    EXPECT_EQ(t.encode("a", {}), c.expected ? (Ids{bos, 'a'}) : Ids{'a'}) << c.pre;
    EXPECT_EQ(t.encode("a", kPlain), Ids{'a'}) << c.pre;
    EXPECT_EQ(t.encode("", {}), c.expected ? Ids{bos} : Ids{}) << c.pre;
  }
}

TEST(Tokenizer, EosIsAddedOnlyWhereTheFileSaysSo) {
  for (const bool has_eos : {true, false}) {
    for (const std::optional<bool> add_eos : {std::optional<bool>(), {false}, {true}}) {
      TokenizerData data = byte_data();
      const TokenId eos = add_token(data, "</s>", TokenKind::control);
      if (has_eos) data.ids.eos = eos;
      data.add_eos = add_eos;
      const Tokenizer t(std::move(data));
      const bool expected = has_eos && add_eos == true;
      EXPECT_EQ(t.adds_eos(), expected);
      EXPECT_EQ(t.encode("a", {}), expected ? (Ids{'a', eos}) : Ids{'a'});
    }
  }
}

TEST(Tokenizer, PiecesAreRawBytes) {
  TokenizerData data = byte_data();
  const TokenId word = add_token(data, in_alphabet(" \xe4\xb8"));
  const TokenId user = add_token(data, "\xc4\xa0user", TokenKind::user_defined);
  const TokenId byte = add_token(data, "<0x41>", TokenKind::byte);
  const TokenId odd_byte = add_token(data, "<byte>", TokenKind::byte);
  const Tokenizer t(std::move(data));
  EXPECT_EQ(t.piece(word, false), " \xe4\xb8");
  EXPECT_EQ(t.piece(user, false), "\xc4\xa0user");  // text as it is, not in the byte alphabet
  EXPECT_EQ(t.piece(byte, false), "A");
  EXPECT_EQ(t.piece(odd_byte, false), "<byte>");
  EXPECT_EQ(t.token_text(word), in_alphabet(" \xe4\xb8"));
}

TEST(Tokenizer, SpecialPiecesAreEmptyUnlessAskedFor) {
  TokenizerData data = byte_data();
  const TokenId control = add_token(data, "<|c|>", TokenKind::control);
  const TokenId unknown = add_token(data, "<|u|>", TokenKind::unknown);
  const TokenId unused = add_token(data, "[PAD9]", TokenKind::unused);
  const TokenId user = add_token(data, "<|d|>", TokenKind::user_defined);
  const Tokenizer t(std::move(data));
  for (const TokenId id : {control, unknown, unused}) {
    EXPECT_EQ(t.piece(id, false), "") << id;
    EXPECT_EQ(t.piece(id, true), t.token_text(id)) << id;
  }
  EXPECT_EQ(t.piece(user, false), "<|d|>");
  EXPECT_EQ(t.decode(Ids{'a', control, user, 'b'}), "a<|d|>b");
  EXPECT_EQ(t.decode(Ids{'a', control, user, 'b'}, true), "a<|c|><|d|>b");
}

TEST(Tokenizer, TheFrameOfHarmonyIsShownAndStillNotParsed) {
  TokenizerData data = byte_data("gpt-4o");
  Ids frame;
  for (const char* text : {"<|start|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|end|>"}) {
    frame.push_back(add_token(data, text, TokenKind::control));
  }
  const TokenId done = add_token(data, "<|return|>", TokenKind::control);
  add_token(data, "<|call|>", TokenKind::control);
  const Tokenizer t(std::move(data));
  for (const TokenId id : frame) {
    EXPECT_EQ(t.piece(id, false), t.token_text(id));
    EXPECT_FALSE(t.is_end_of_generation(id));
    EXPECT_EQ(t.encode(t.token_text(id), kParsed), Ids{id});
    EXPECT_GT(t.encode(t.token_text(id), kPlain).size(), 1u);
  }
  EXPECT_EQ(t.piece(done, false), "");
  EXPECT_TRUE(t.is_end_of_generation(done));
}

TEST(Tokenizer, RefusesIdsThatAreNotInTheVocabulary) {
  const Tokenizer t(byte_data());
  for (const TokenId bad : {-1, 256}) {
    const auto refused = [&](const auto& call) {
      try {
        call();
        ADD_FAILURE() << "expected an Error for " << bad;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::bad_request);
        EXPECT_EQ(error.what(),
                  cat("token id ", bad, " is not in the vocabulary; expected 0 to 255"));
      }
    };
    refused([&] { t.piece(bad, true); });
    refused([&] { t.decode(Ids{'a', bad}); });
    refused([&] { t.is_end_of_generation(bad); });
    refused([&] { t.token_text(bad); });
    refused([&] { t.token_kind(bad); });
  }
}

TEST(Tokenizer, RefusesATextThatIsTooLong) {
  const Tokenizer t(byte_data());
  const std::string one = "x";
  const std::string_view text(one.data(), Tokenizer::kMaxTextBytes + 1);
  try {
    t.encode(text, {});  // is refused before it is read
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_request);
    EXPECT_STREQ(error.what(), "a text of 268435457 bytes; expected at most 268435456");
  }
}

TEST(Tokenizer, RefusesATypeItDoesNotKnow) {
  TokenizerData data = byte_data();
  data.model = "bert";
  data.origin = "m.gguf";
  try {
    const Tokenizer t(std::move(data));
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsupported_model);
    EXPECT_STREQ(error.what(), "m.gguf: a tokenizer of type 'bert'; expected gpt2 or llama");
  }
}

TEST(Tokenizer, RefusesAnUnknownPreTokenizerByName) {
  TokenizerData data = byte_data("bert-bge");
  data.origin = "m.gguf";
  try {
    const Tokenizer t(std::move(data));
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsupported_model);
    EXPECT_TRUE(std::string(error.what()).starts_with("m.gguf: pre-tokenizer 'bert-bge' is not"));
  }
}

TEST(Tokenizer, WarnsWhereTheFileNamesNoPreTokenizer) {
  const Tokenizer unnamed(byte_data(""));
  ASSERT_EQ(unnamed.warnings().size(), 1u);
  EXPECT_NE(unnamed.warnings()[0].find("names no pre-tokenizer"), std::string::npos);
  EXPECT_TRUE(Tokenizer(byte_data("default")).warnings().empty());
}

TEST(Tokenizer, WorksAfterAMove) {
  Tokenizer first(word_data("llama-bpe"));
  const Ids ids = first.encode("the <|im_start|> 123", kWhole);
  const Tokenizer second = std::move(first);
  EXPECT_EQ(second.encode("the <|im_start|> 123", kWhole), ids);
  EXPECT_EQ(second.decode(ids, true), "the <|im_start|> 123");
}

TEST(Tokenizer, PassesOnWhatMustNotBeSampled) {
  TokenizerData data = byte_data();
  data.suppress_tokens = {3, 5};
  const Tokenizer t(std::move(data));
  EXPECT_EQ(Ids(t.suppress_tokens().begin(), t.suppress_tokens().end()), (Ids{3, 5}));
  EXPECT_EQ(t.n_tokens(), 256);
}

}  // namespace
}  // namespace sluice::text
