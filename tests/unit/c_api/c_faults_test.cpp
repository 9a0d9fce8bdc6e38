// What the functions of sluice_c.h say to bad arguments, and that nothing thrown leaves them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "sluice/sluice_c.h"
#include "unit/c_api/c_demo.h"

namespace sluice::test {
namespace {

TEST(CApi, NullIsAnErrorAndNothingToFree) {
  size_t n = 0;
  sluice_stats stats;
  sluice_model_info info;
  EXPECT_EQ(sluice_model_open(nullptr, nullptr), nullptr);
  expect_failed(SLUICE_BAD_REQUEST, "path_or_name is NULL");
  EXPECT_EQ(sluice_chat_new(nullptr, nullptr), nullptr);
  expect_failed(SLUICE_BAD_REQUEST, "sluice_chat_new: model is NULL");
  EXPECT_EQ(sluice_session_new(nullptr, nullptr), nullptr);
  EXPECT_EQ(sluice_chat_ask(nullptr, kQuestion, nullptr, nullptr), nullptr);
  EXPECT_EQ(sluice_chat_ask(greedy_chat().get(), nullptr, nullptr, nullptr), nullptr);
  expect_failed(SLUICE_BAD_REQUEST, "message is NULL");
  EXPECT_EQ(sluice_chat_thinking(nullptr), nullptr);
  EXPECT_EQ(sluice_chat_warnings(nullptr), nullptr);
  EXPECT_EQ(sluice_chat_reset(nullptr), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_chat_stats(nullptr, &stats, sizeof stats), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_chat_stats(greedy_chat().get(), nullptr, sizeof stats), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_model_describe(nullptr, &info, sizeof info), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_model_describe(demo(), nullptr, sizeof info), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_tokenize(nullptr, "a", 0, nullptr, 0, &n), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_tokenize(demo(), nullptr, 0, nullptr, 0, &n), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_tokenize(demo(), "a", 0, nullptr, 0, nullptr), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_tokenize(demo(), "a", 0, nullptr, 9, &n), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_detokenize(nullptr, nullptr, 0, nullptr, 0, &n), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_detokenize(demo(), nullptr, 3, nullptr, 0, &n), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_session_append(nullptr, nullptr, 0, nullptr, nullptr), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_session_generate(nullptr, nullptr, 0, nullptr, nullptr), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_session_truncate(nullptr, 0), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_session_stats(nullptr, &stats, sizeof stats), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_session_n_tokens(nullptr), -1);
  EXPECT_EQ(sluice_session_n_ctx(nullptr), -1);
  sluice_chat_options_init(nullptr, sizeof(sluice_chat_options));
  sluice_chat_free(nullptr);
  sluice_session_free(nullptr);
  sluice_model_free(nullptr);
}

TEST(CApi, SaysWhatIsWrongWithArguments) {
  EXPECT_EQ(sluice_model_open("/no/such.gguf", nullptr), nullptr);
  expect_failed(SLUICE_BAD_FILE, "/no/such.gguf");
  EXPECT_EQ(sluice_model_open("nosuch", nullptr), nullptr);
  expect_failed(SLUICE_BAD_REQUEST, "no model 'nosuch'");

  const SessionPtr session(sluice_session_new(demo(), nullptr));
  const int32_t bad[] = {1, 99999999};
  EXPECT_EQ(sluice_session_append(session.get(), bad, 2, nullptr, nullptr), SLUICE_BAD_REQUEST);
  expect_failed(SLUICE_BAD_REQUEST, "99999999");
  EXPECT_EQ(sluice_session_generate(session.get(), bad, 2, nullptr, nullptr), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_session_generate(session.get(), nullptr, 0, nullptr, nullptr),
            SLUICE_BAD_REQUEST);
  expect_failed(SLUICE_BAD_REQUEST, "prompt is empty");
  size_t n = 0;
  EXPECT_EQ(sluice_detokenize(demo(), bad, 2, nullptr, 0, &n), SLUICE_BAD_REQUEST);
  EXPECT_EQ(sluice_session_n_tokens(session.get()), 0);
}

TEST(CApi, SaysWhatIsWrongWithOptions) {
  sluice_session_options session;
  sluice_session_options_init(&session, sizeof session);
  session.device = "abacus";
  EXPECT_EQ(sluice_session_new(demo(), &session), nullptr);
  expect_failed(SLUICE_BAD_REQUEST, "'abacus', expected one of: cpu, cuda");
  session.device = nullptr;
  session.kv_type = "q9";
  EXPECT_EQ(sluice_session_new(demo(), &session), nullptr);
  expect_failed(SLUICE_BAD_REQUEST, "kv_type is 'q9'");
  session.kv_type = nullptr;
  session.n_ctx = -3;
  sluice_chat_options chat;
  sluice_chat_options_init(&chat, sizeof chat);
  chat.session = &session;
  EXPECT_EQ(sluice_chat_new(demo(), &chat), nullptr);
  expect_failed(SLUICE_BAD_REQUEST, "-3");
  chat.session = nullptr;
  chat.seed = int64_t{1} << 40;
  EXPECT_EQ(sluice_chat_new(demo(), &chat), nullptr);
  expect_failed(SLUICE_BAD_REQUEST, "seed");
  chat.size = 0;
  EXPECT_EQ(sluice_chat_new(demo(), &chat), nullptr);
  expect_failed(SLUICE_BAD_REQUEST, "call sluice_chat_options_init() first");
  chat.size = 4096;
  EXPECT_EQ(sluice_chat_new(demo(), &chat), nullptr);
  expect_failed(SLUICE_BAD_REQUEST, "compiled for a later version");
  sluice_model_options model;
  sluice_model_options_init(&model, sizeof model);
  model.weights = 7;
  EXPECT_EQ(sluice_model_open("demo-attn", &model), nullptr);
  expect_failed(SLUICE_BAD_REQUEST, "weights is 7");
}

TEST(CApi, NothingThrownByACallbackGetsOut) {
  const ChatPtr chat = greedy_chat();
  const auto throws = [](const char*, size_t, void*) -> int { throw std::logic_error("mine"); };
  EXPECT_EQ(sluice_chat_ask(chat.get(), kQuestion, throws, nullptr), nullptr);
  expect_failed(SLUICE_INTERNAL, "mine");
  const auto throws_a_number = [](const char*, size_t, void*) -> int { throw 3; };
  EXPECT_EQ(sluice_chat_ask(chat.get(), kQuestion, throws_a_number, nullptr), nullptr);
  expect_failed(SLUICE_INTERNAL, "callback");
  EXPECT_STREQ(sluice_chat_ask(chat.get(), kQuestion, nullptr, nullptr), kAnswer);
}

TEST(CApi, ATokenThatIsNoneIsRefused) {
  for (const int32_t chosen : {-7, 1 << 30}) {
    const SessionPtr session(sluice_session_new(demo(), nullptr));
    sluice_generate_options options;
    sluice_generate_options_init(&options, sizeof options);
    options.choose = [](const float*, size_t, void* user) { return *static_cast<int32_t*>(user); };
    int32_t token = chosen;
    options.user = &token;
    const int32_t prompt[] = {5, 6};
    EXPECT_EQ(sluice_session_generate(session.get(), prompt, 2, &options, nullptr),
              SLUICE_BAD_REQUEST);
    expect_failed(SLUICE_BAD_REQUEST, cat(chosen));
    EXPECT_EQ(sluice_session_n_tokens(session.get()), 2);
  }
}

TEST(CApi, TheHeaderHasTheLibrarysVersion) {
  EXPECT_EQ(cat(SLUICE_VERSION_MAJOR, ".", SLUICE_VERSION_MINOR, ".", SLUICE_VERSION_PATCH),
            sluice_version());
}

TEST(CApi, ACallbackMayNotUseItsOwnChat) {
  const ChatPtr chat = greedy_chat();
  const auto ask_again = [](const char*, size_t, void* user) -> int {
    EXPECT_EQ(sluice_chat_ask(static_cast<sluice_chat*>(user), "x", nullptr, nullptr), nullptr);
    expect_failed(SLUICE_BAD_REQUEST, "chat is in use");
    std::thread([user] {
      EXPECT_EQ(sluice_chat_reset(static_cast<sluice_chat*>(user)), SLUICE_BAD_REQUEST);
      expect_failed(SLUICE_BAD_REQUEST, "chat is in use");
    }).join();
    sluice_chat_free(static_cast<sluice_chat*>(user));
    expect_failed(SLUICE_BAD_REQUEST, "not freed");
    return 1;
  };
  EXPECT_STREQ(sluice_chat_ask(chat.get(), kQuestion, ask_again, chat.get()), kAnswer);
}

TEST(CApi, EachThreadHasItsOwnError) {
  EXPECT_EQ(sluice_model_open("nosuch", nullptr), nullptr);
  std::thread([] {
    EXPECT_STREQ(sluice_last_error(), "");
    EXPECT_EQ(sluice_last_status(), SLUICE_OK);
    EXPECT_EQ(sluice_chat_reset(nullptr), SLUICE_BAD_REQUEST);
  }).join();
  expect_failed(SLUICE_BAD_REQUEST, "nosuch");
}

}  // namespace
}  // namespace sluice::test
