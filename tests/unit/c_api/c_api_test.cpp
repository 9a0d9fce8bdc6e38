// sluice_c.h as C programs call it: chats, sessions, tokens.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "sluice/sluice_c.h"
#include "unit/c_api/c_demo.h"

namespace sluice::test {
namespace {

int append_text(const char* text, size_t n_bytes, void* user) {
  static_cast<std::string*>(user)->append(text, n_bytes);
  return 1;
}
int stop_at_once(const char*, size_t, void*) { return 0; }

TEST(CApi, AnswersATextWithAText) {
  const ChatPtr chat = greedy_chat();
  ASSERT_NE(chat, nullptr) << sluice_last_error();
  std::string heard;
  EXPECT_STREQ(sluice_chat_ask(chat.get(), kQuestion, append_text, &heard), kAnswer);
  EXPECT_EQ(heard, kAnswer);
  EXPECT_STREQ(sluice_chat_thinking(chat.get()), "");
  EXPECT_STREQ(sluice_chat_warnings(chat.get()), "");
  sluice_stats stats;
  ASSERT_EQ(sluice_chat_stats(chat.get(), &stats, sizeof stats), SLUICE_OK);
  EXPECT_GT(stats.n_prefill_tokens, 10);
  EXPECT_GT(stats.n_decode_tokens, 5);
  EXPECT_GT(stats.kv_bytes, 0u);
  EXPECT_EQ(sluice_chat_reset(chat.get()), SLUICE_OK);
  EXPECT_STREQ(sluice_chat_ask(chat.get(), kQuestion, nullptr, nullptr), kAnswer);
}

TEST(CApi, ACallbackEndsTheAnswer) {
  const ChatPtr chat = greedy_chat();
  const char* answer = sluice_chat_ask(chat.get(), kQuestion, stop_at_once, nullptr);
  ASSERT_NE(answer, nullptr) << sluice_last_error();
  EXPECT_LT(std::strlen(answer), std::strlen(kAnswer));
}

TEST(CApi, TheModelMayBeFreedFirst) {
  ModelPtr model(sluice_model_open("demo-attn", nullptr));
  const SessionPtr session(sluice_session_new(model.get(), nullptr));
  const ChatPtr chat(sluice_chat_new(model.get(), nullptr));
  model.reset();
  EXPECT_NE(sluice_chat_ask(chat.get(), kQuestion, nullptr, nullptr), nullptr);
  const int32_t token = 5;
  int reason = -1;
  EXPECT_EQ(sluice_session_generate(session.get(), &token, 1, nullptr, &reason), SLUICE_OK);
  EXPECT_NE(reason, -1);
}

TEST(CApi, DescribesAModel) {
  sluice_model_info info;
  ASSERT_EQ(sluice_model_describe(demo(), &info, sizeof info), SLUICE_OK);
  EXPECT_NE(std::string(info.path).find("demo-attn.gguf"), std::string::npos);
  EXPECT_GT(info.n_vocab, 100);
  EXPECT_GT(info.n_experts, 1);
  EXPECT_GT(info.file_bytes, 1000000u);
  // A program that knows only the first field, and one that knows more than the library.
  sluice_model_info part;
  std::memset(&part, 0x55, sizeof part);
  ASSERT_EQ(sluice_model_describe(demo(), &part, sizeof part.path), SLUICE_OK);
  EXPECT_STREQ(part.path, info.path);
  EXPECT_EQ(part.n_vocab, 0x55555555);
  char more[sizeof info + 8];
  std::memset(more, 0x55, sizeof more);
  ASSERT_EQ(sluice_model_describe(demo(), reinterpret_cast<sluice_model_info*>(more), sizeof more),
            SLUICE_OK);
  EXPECT_EQ(more[sizeof info], 0);
}

TEST(CApi, TextToTokensAndBack) {
  const std::string text = "What is 17 + 25?";
  std::vector<int32_t> tokens = tokens_of(text);
  ASSERT_GT(tokens.size(), 2u);
  size_t n = 0;
  char back[64];
  ASSERT_EQ(sluice_detokenize(demo(), tokens.data(), tokens.size(), back, sizeof back, &n),
            SLUICE_OK);
  EXPECT_EQ(std::string(back), text);
  EXPECT_EQ(n, text.size());

  EXPECT_EQ(sluice_tokenize(demo(), text.c_str(), 1, tokens.data(), 1, &n), SLUICE_NO_ROOM);
  EXPECT_EQ(n, tokens.size());
  expect_failed(SLUICE_NO_ROOM, "room for 1");
  // The 0 byte needs room too.
  EXPECT_EQ(sluice_detokenize(demo(), tokens.data(), tokens.size(), back, text.size(), &n),
            SLUICE_NO_ROOM);
  EXPECT_EQ(sluice_detokenize(demo(), tokens.data(), tokens.size(), back, text.size() + 1, &n),
            SLUICE_OK);
  EXPECT_EQ(sluice_detokenize(demo(), nullptr, 0, nullptr, 0, &n), SLUICE_OK);
  EXPECT_EQ(n, 0u);
}

TEST(CApi, ControlTokensCountInAPromptOnly) {
  const char* const mark = "<|im_end|>";
  size_t as_prompt = 0, as_text = 0;
  ASSERT_EQ(sluice_tokenize(demo(), mark, 1, nullptr, 0, &as_prompt), SLUICE_OK);
  ASSERT_EQ(sluice_tokenize(demo(), mark, 0, nullptr, 0, &as_text), SLUICE_OK);
  EXPECT_LT(as_prompt, as_text);
}

struct Heard {
  std::vector<int32_t> tokens;
  size_t stop_after = 1000;
  int n_chosen = 0;
};
int hear(int32_t token, void* user) {
  auto* heard = static_cast<Heard*>(user);
  heard->tokens.push_back(token);
  return heard->tokens.size() < heard->stop_after;
}
int32_t choose_best(const float* logits, size_t n_vocab, void* user) {
  ++static_cast<Heard*>(user)->n_chosen;
  return static_cast<int32_t>(std::max_element(logits, logits + n_vocab) - logits);
}

// What follows the question, and why it ended.
int generate(Heard& heard, sluice_choose choose, int n_tokens, int* reason) {
  const SessionPtr session(sluice_session_new(demo(), nullptr));
  const auto prompt = tokens_of(
      "<|im_start|>user\nWhat is 17 + 25?<|im_end|>\n"
      "<|im_start|>assistant\n<think>\n\n</think>\n\n");
  sluice_generate_options options;
  sluice_generate_options_init(&options, sizeof options);
  options.n_tokens = n_tokens;
  options.choose = choose;
  options.on_token = hear;
  options.user = &heard;
  return sluice_session_generate(session.get(), prompt.data(), prompt.size(), &options, reason);
}

TEST(CApi, GeneratesTokens) {
  Heard best, chosen, stopped{.tokens = {}, .stop_after = 3}, few;
  int reason = -1;
  ASSERT_EQ(generate(best, nullptr, 60, &reason), SLUICE_OK) << sluice_last_error();
  EXPECT_EQ(reason, SLUICE_STOP_END_OF_TEXT);
  char text[64];
  size_t n = 0;
  ASSERT_EQ(
      sluice_detokenize(demo(), best.tokens.data(), best.tokens.size(), text, sizeof text, &n),
      SLUICE_OK);
  EXPECT_NE(std::string(text).find(kAnswer), std::string::npos) << text;

  ASSERT_EQ(generate(chosen, choose_best, 60, &reason), SLUICE_OK);
  EXPECT_EQ(chosen.tokens, best.tokens);
  EXPECT_GT(chosen.n_chosen, 3);
  ASSERT_EQ(generate(stopped, nullptr, 60, &reason), SLUICE_OK);
  EXPECT_EQ(reason, SLUICE_STOP_CALLBACK);
  EXPECT_EQ(stopped.tokens.size(), 3u);
  ASSERT_EQ(generate(few, nullptr, 2, &reason), SLUICE_OK);
  EXPECT_EQ(reason, SLUICE_STOP_LENGTH);
  EXPECT_EQ(few.tokens.size(), 2u);
}

TEST(CApi, ShowsLogitsAndGoesBack) {
  sluice_session_options options;
  sluice_session_options_init(&options, sizeof options);
  options.n_ctx = 32;
  options.kv_type = "f32";
  options.device = "sim";
  options.vram_bytes = 1 << 30;
  const SessionPtr session(sluice_session_new(demo(), &options));
  ASSERT_NE(session, nullptr) << sluice_last_error();
  EXPECT_EQ(sluice_session_n_ctx(session.get()), 32);
  std::vector<int32_t> seen;
  const auto see = [](int32_t pos, const float*, size_t n_vocab, void* user) {
    static_cast<std::vector<int32_t>*>(user)->insert(
        static_cast<std::vector<int32_t>*>(user)->end(), {pos, static_cast<int32_t>(n_vocab)});
  };
  sluice_model_info info;
  ASSERT_EQ(sluice_model_describe(demo(), &info, sizeof info), SLUICE_OK);
  const int32_t tokens[] = {5, 6};
  ASSERT_EQ(sluice_session_append(session.get(), tokens, 2, see, &seen), SLUICE_OK);
  EXPECT_EQ(seen, (std::vector<int32_t>{0, info.n_vocab, 1, info.n_vocab}));
  EXPECT_EQ(sluice_session_n_tokens(session.get()), 2);
  sluice_stats stats;
  ASSERT_EQ(sluice_session_stats(session.get(), &stats, sizeof stats), SLUICE_OK);
  EXPECT_EQ(stats.n_prefill_tokens, 2);
  EXPECT_EQ(sluice_session_truncate(session.get(), 1), SLUICE_OK);
  EXPECT_EQ(sluice_session_n_tokens(session.get()), 1);
  EXPECT_EQ(sluice_session_truncate(session.get(), 2), SLUICE_BAD_REQUEST);
  expect_failed(SLUICE_BAD_REQUEST, "cannot keep 2 of 1");
}

}  // namespace
}  // namespace sluice::test
