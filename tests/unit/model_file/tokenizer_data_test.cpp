// The tokenizer's keys of a GGUF file: what they become, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "model_file/tokenizer_data.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::model_file {
namespace {

using Strings = std::vector<std::string>;

gguf::Metadata small_metadata() {
  gguf::Metadata m("m.gguf");
  m.set("tokenizer.ggml.model", std::string("gpt2"));
  m.set("tokenizer.ggml.pre", std::string("qwen2"));
  m.set("tokenizer.ggml.tokens", Strings{"a", "b", "ab", "<|im_end|>"});
  m.set("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1, 1, 3});
  m.set("tokenizer.ggml.merges", Strings{"a b"});
  return m;
}

TEST(TokenizerData, TakesEveryKey) {
  gguf::Metadata m = small_metadata();
  m.set("tokenizer.ggml.scores", std::vector<float>{0.5f, 1, 2, 3});
  m.set("tokenizer.ggml.bos_token_id", uint32_t{0});
  m.set("tokenizer.ggml.eos_token_id", uint32_t{1});
  m.set("tokenizer.ggml.eot_token_id", int32_t{2});
  m.set("tokenizer.ggml.eom_token_id", uint64_t{3});
  m.set("tokenizer.ggml.unknown_token_id", uint32_t{0});
  m.set("tokenizer.ggml.padding_token_id", uint32_t{1});
  m.set("tokenizer.ggml.fim_pre_token_id", uint32_t{0});
  m.set("tokenizer.ggml.fim_suf_token_id", uint32_t{1});
  m.set("tokenizer.ggml.fim_mid_token_id", uint32_t{2});
  m.set("tokenizer.ggml.fim_pad_token_id", uint32_t{3});
  m.set("tokenizer.ggml.fim_rep_token_id", uint32_t{2});
  m.set("tokenizer.ggml.fim_sep_token_id", uint32_t{1});
  m.set("tokenizer.ggml.add_bos_token", true);
  m.set("tokenizer.ggml.add_eos_token", false);
  m.set("tokenizer.ggml.add_space_prefix", true);
  m.set("tokenizer.ggml.suppress_tokens", std::vector<int32_t>{2, -1, 4, 1});
  const text::TokenizerData d = read_tokenizer_data(m);
  EXPECT_EQ(d.origin, "m.gguf");
  EXPECT_EQ(d.model, "gpt2");
  EXPECT_EQ(d.pre, "qwen2");
  EXPECT_EQ(d.tokens, (Strings{"a", "b", "ab", "<|im_end|>"}));
  EXPECT_EQ(d.kinds[3], text::TokenKind::control);
  EXPECT_EQ(d.kinds[0], text::TokenKind::normal);
  EXPECT_EQ(d.scores, (std::vector<float>{0.5f, 1, 2, 3}));
  EXPECT_EQ(d.merges, Strings{"a b"});
  EXPECT_EQ(d.ids.bos, 0);
  EXPECT_EQ(d.ids.eos, 1);
  EXPECT_EQ(d.ids.eot, 2);
  EXPECT_EQ(d.ids.eom, 3);
  EXPECT_EQ(d.ids.unknown, 0);
  EXPECT_EQ(d.ids.padding, 1);
  EXPECT_EQ(d.ids.fim_prefix, 0);
  EXPECT_EQ(d.ids.fim_suffix, 1);
  EXPECT_EQ(d.ids.fim_middle, 2);
  EXPECT_EQ(d.ids.fim_pad, 3);
  EXPECT_EQ(d.ids.fim_repo, 2);
  EXPECT_EQ(d.ids.fim_separator, 1);
  EXPECT_EQ(d.add_bos, true);
  EXPECT_EQ(d.add_eos, false);
  EXPECT_EQ(d.add_space_prefix, true);
  EXPECT_EQ(d.suppress_tokens, (std::vector<TokenId>{2, 1}));  // without those that are no tokens
}

TEST(TokenizerData, WhatAFileDoesNotSayIsMissing) {
  gguf::Metadata m("m.gguf");
  m.set("tokenizer.ggml.model", std::string("llama"));
  m.set("tokenizer.ggml.tokens", Strings{"a"});
  const text::TokenizerData d = read_tokenizer_data(m);
  EXPECT_EQ(d.pre, "");
  EXPECT_TRUE(d.kinds.empty());
  EXPECT_TRUE(d.scores.empty());
  EXPECT_TRUE(d.merges.empty());
  EXPECT_TRUE(d.suppress_tokens.empty());
  EXPECT_EQ(d.ids.bos, std::nullopt);
  EXPECT_EQ(d.ids.padding, std::nullopt);
  EXPECT_EQ(d.add_bos, std::nullopt);
  EXPECT_EQ(d.add_eos, std::nullopt);
  EXPECT_EQ(d.add_space_prefix, std::nullopt);
}

TEST(TokenizerData, ScoresMayBeIntegers) {
  gguf::Metadata m = small_metadata();
  m.set("tokenizer.ggml.scores", std::vector<int32_t>{0, -1, -2, -3});
  EXPECT_EQ(read_tokenizer_data(m).scores, (std::vector<float>{0, -1, -2, -3}));
}

// Real files hold 4294967295 for "none", or the id of a token that was cut off.
TEST(TokenizerData, IdsOfMinorUseMayBeWithoutAToken) {
  for (const char* key :
       {"unknown", "padding", "fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep"}) {
    gguf::Metadata m = small_metadata();
    m.set(cat("tokenizer.ggml.", key, "_token_id"), uint32_t{0xffffffff});
    const text::SpecialIds ids = read_tokenizer_data(m).ids;
    for (const auto& id : {ids.unknown, ids.padding, ids.fim_prefix, ids.fim_suffix, ids.fim_middle,
                           ids.fim_pad, ids.fim_repo, ids.fim_separator}) {
      EXPECT_EQ(id, std::nullopt) << key;
    }
  }
}

std::string refusal(const std::function<void(gguf::Metadata&)>& spoil) {
  gguf::Metadata m = small_metadata();
  spoil(m);
  try {
    read_tokenizer_data(m);
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_file);
    return error.what();
  }
}

TEST(TokenizerData, RefusesBosEosEotAndEomWithoutAToken) {
  for (const char* name : {"bos", "eos", "eot", "eom"}) {
    const std::string key = cat("tokenizer.ggml.", name, "_token_id");
    EXPECT_EQ(refusal([&](gguf::Metadata& m) { m.set(key, uint32_t{4}); }),
              cat("m.gguf: key '", key, "' is 4; expected an integer from 0 to 3"));
    EXPECT_EQ(refusal([&](gguf::Metadata& m) { m.set(key, int32_t{-1}); }),
              cat("m.gguf: key '", key, "' is -1; expected an integer from 0 to 3"));
  }
}

TEST(TokenizerData, RefusesTypesThatDoNotExist) {
  for (const int32_t kind : {0, 7}) {
    EXPECT_EQ(refusal([&](gguf::Metadata& m) {
                m.set("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1, 1, kind});
              }),
              cat("m.gguf: key 'tokenizer.ggml.token_type' is ", kind,
                  "; expected an integer from 1 to 6"));
  }
}

TEST(TokenizerData, RefusesKeysOfTheWrongType) {
  const std::pair<const char*, const char*> keys[] = {
      {"tokenizer.ggml.model", "a string"},
      {"tokenizer.ggml.pre", "a string"},
      {"tokenizer.ggml.tokens", "an array of string"},
      {"tokenizer.ggml.token_type", "an integer or an array of integers"},
      {"tokenizer.ggml.scores", "an array of f32"},
      {"tokenizer.ggml.merges", "an array of string"},
      {"tokenizer.ggml.bos_token_id", "an integer"},
      {"tokenizer.ggml.padding_token_id", "an integer"},
      {"tokenizer.ggml.add_bos_token", "a bool"},
      {"tokenizer.ggml.suppress_tokens", "an integer or an array of integers"},
  };
  for (const auto& [key, expected] : keys) {
    EXPECT_EQ(refusal([&, k = key](gguf::Metadata& m) { m.set(k, 1.5); }),
              cat("m.gguf: key '", key, "' is of type f64; expected ", expected));
  }
}

TEST(TokenizerData, RefusesAFileWithoutTheKeysItNeeds) {
  gguf::Metadata m("m.gguf");
  const auto missing = [&] {
    try {
      read_tokenizer_data(m);
      return std::string("none");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::bad_file);
      return std::string(error.what());
    }
  };
  EXPECT_EQ(missing(), "m.gguf: key 'tokenizer.ggml.model' is missing; expected a string");
  m.set("tokenizer.ggml.model", std::string("gpt2"));
  EXPECT_EQ(missing(),
            "m.gguf: key 'tokenizer.ggml.tokens' is missing; expected an array of string");
  m.set("tokenizer.ggml.tokens", Strings{"a"});
  EXPECT_EQ(missing(),
            "m.gguf: key 'tokenizer.ggml.merges' is missing; expected an array of string");
  m.set("tokenizer.ggml.merges", Strings{});
  EXPECT_EQ(missing(), "none");
}

TEST(TokenizerData, ReadyToUseItEncodes) {
  const text::Tokenizer t(read_tokenizer_data(small_metadata()));
  EXPECT_EQ(t.encode("ab<|im_end|>", {.add_special = true, .parse_special = true}),
            (std::vector<TokenId>{2, 3}));
  EXPECT_TRUE(t.is_end_of_generation(3));
}

TEST(TokenizerData, TakesTheOlderNamesOfFillTokensWhereThereAreNoNewOnes) {
  gguf::Metadata m = small_metadata();
  m.set("tokenizer.ggml.prefix_token_id", uint32_t{0});
  m.set("tokenizer.ggml.suffix_token_id", uint32_t{1});
  m.set("tokenizer.ggml.middle_token_id", uint32_t{2});
  const text::SpecialIds older = read_tokenizer_data(m).ids;
  EXPECT_EQ(older.fim_prefix, 0);
  EXPECT_EQ(older.fim_suffix, 1);
  EXPECT_EQ(older.fim_middle, 2);
  m.set("tokenizer.ggml.fim_pre_token_id", uint32_t{3});
  EXPECT_EQ(read_tokenizer_data(m).ids.fim_prefix, 3);
}

}  // namespace
}  // namespace sluice::model_file
