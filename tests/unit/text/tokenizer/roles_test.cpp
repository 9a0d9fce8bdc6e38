// Which tokens end a generation, found by id and by text, and the special case of harmony.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/roles.h"

#include <gtest/gtest.h>

#include <string>

#include "unit/text/tokenizer/samples.h"

namespace sluice::text {
namespace {

// A vocabulary of these texts, all of one kind, after "x" and "y".
Vocabulary of(std::initializer_list<const char*> texts, TokenKind kind = TokenKind::control,
              SpecialIds ids = {}) {
  TokenizerData data;
  add_token(data, "x");
  add_token(data, "y");
  for (const char* text : texts) add_token(data, text, kind);
  data.ids = ids;
  return Vocabulary(std::move(data));
}

Ids ends_of(Vocabulary vocabulary) { return assign_roles(vocabulary).end_of_generation; }

TEST(Roles, EveryKnownTextEndsAGenerationAndBecomesAControlToken) {
  for (const char* text : {"<|eot_id|>",
                           "<|im_end|>",
                           "<|end|>",
                           "<|return|>",
                           "<|call|>",
                           "<|flush|>",
                           "<|calls|>",
                           "<end_of_turn>",
                           "<|endoftext|>",
                           "</s>",
                           "<|eom_id|>",
                           "<EOT>",
                           "_<EOT>",
                           "[EOT]",
                           "[EOS]",
                           "<|end_of_text|>",
                           "<end_of_utterance>",
                           "<eos>",
                           "<turn|>",
                           "<\xef\xbd\x9c"
                           "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                           "[e~[",
                           "<|fim_pad|>",
                           "<fim-pad>",
                           "<fim_pad>",
                           "<PAD>",
                           "[PAD]",
                           "<|fim_repo|>",
                           "<|repo_name|>",
                           "<fim-repo>",
                           "<REPO>",
                           "<reponame>",
                           "<|file_sep|>"}) {
    for (const TokenKind kind : {TokenKind::normal, TokenKind::user_defined, TokenKind::control}) {
      Vocabulary vocabulary = of({text}, kind);
      EXPECT_EQ(assign_roles(vocabulary).end_of_generation, Ids{2}) << text;
      EXPECT_EQ(vocabulary.kind(2), TokenKind::control) << text;
      EXPECT_EQ(vocabulary.kind(0), TokenKind::normal) << text;
    }
  }
}

TEST(Roles, OtherTextsDoNot) {
  EXPECT_EQ(ends_of(of({"<|im_start|>", "<|IM_END|>", "<|im_end|> ", "<s>", "<pad>",
                        "<|fim_prefix|>", "<|tool_call|>"})),
            Ids{});
}

TEST(Roles, TheIdsOfTheFileEndAGenerationWhateverTheirText) {
  EXPECT_EQ(ends_of(of({}, TokenKind::control, {.eos = 1})), Ids{1});
  EXPECT_EQ(ends_of(of({}, TokenKind::control, {.eot = 1})), Ids{1});
  EXPECT_EQ(ends_of(of({}, TokenKind::control, {.eom = 0, .fim_pad = 1})), (Ids{0, 1}));
  EXPECT_EQ(ends_of(of({}, TokenKind::control, {.fim_repo = 0, .fim_separator = 1})), (Ids{0, 1}));
  EXPECT_EQ(ends_of(of({}, TokenKind::control,
                       {.bos = 0,
                        .unknown = 0,
                        .padding = 0,
                        .fim_prefix = 0,
                        .fim_suffix = 0,
                        .fim_middle = 0})),
            Ids{});
}

TEST(Roles, MissingIdsAreFoundByText) {
  Vocabulary vocabulary =
      of({"<|endoftext|>", "<|im_end|>", "<|eom_id|>", "<|fim_prefix|>", "<|fim_suffix|>",
          "<|fim_middle|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"},
         TokenKind::normal);
  assign_roles(vocabulary);
  const SpecialIds& ids = vocabulary.data().ids;
  EXPECT_EQ(ids.eot, 3);  // `<|im_end|>` comes before `<|endoftext|>`
  EXPECT_EQ(ids.eom, 4);
  EXPECT_EQ(ids.fim_prefix, 5);
  EXPECT_EQ(ids.fim_suffix, 6);
  EXPECT_EQ(ids.fim_middle, 7);
  EXPECT_EQ(ids.fim_pad, 8);
  EXPECT_EQ(ids.fim_repo, 9);
  EXPECT_EQ(ids.fim_separator, 10);
  EXPECT_EQ(ids.eos, std::nullopt);
  for (TokenId id = 2; id < 11; ++id) EXPECT_EQ(vocabulary.kind(id), TokenKind::control) << id;
}

TEST(Roles, AnIdOfTheFileIsKept) {
  Vocabulary vocabulary = of({"<|im_end|>"}, TokenKind::control, {.eot = 1});
  EXPECT_EQ(assign_roles(vocabulary).end_of_generation, (Ids{1, 2}));
  EXPECT_EQ(vocabulary.data().ids.eot, 1);
}

TEST(Roles, InHarmonyTheEndOfAMessageIsNotTheEndOfTheAnswer) {
  Vocabulary vocabulary = of({"<|return|>", "<|call|>", "<|end|>", "<|channel|>", "<|message|>",
                              "<|start|>", "<|constrain|>", "<|endoftext|>"},
                             TokenKind::control, {.eos = 2});
  const Roles roles = assign_roles(vocabulary);
  EXPECT_EQ(roles.end_of_generation, (Ids{2, 3, 9}));
  EXPECT_EQ(roles.always_shown, (Ids{4, 5, 6, 7, 8}));
  EXPECT_EQ(vocabulary.data().ids.eot, std::nullopt);
  // They stay control tokens: a user's text must not frame a message.
  EXPECT_EQ(vocabulary.kind(4), TokenKind::control);
  EXPECT_EQ(vocabulary.kind(6), TokenKind::control);
}

TEST(Roles, TheFrameOfSolarOpenIsReadTheSameWay) {
  EXPECT_EQ(ends_of(of({"<|flush|>", "<|calls|>", "<|end|>"})), (Ids{2, 3}));
}

TEST(Roles, EndOfMessageAloneIsAnEnd) {
  EXPECT_EQ(ends_of(of({"<|end|>", "<|return|>"})), (Ids{2, 3}));
  EXPECT_EQ(ends_of(of({"<|end|>", "<|call|>"})), (Ids{2, 3}));
  EXPECT_EQ(ends_of(of({"<|end|>"})), Ids{2});
}

}  // namespace
}  // namespace sluice::text
