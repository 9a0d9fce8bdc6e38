// The demo model as C programs hold it, for the tests of sluice_c.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sluice/sluice_c.h"

namespace sluice::test {

inline const char* const kQuestion = "What is 17 + 25?";
inline const char* const kAnswer = "17 + 25 = 42.";

template <auto free_handle>
struct Freed {
  template <typename T>
  void operator()(T* handle) const {
    free_handle(handle);
  }
};
using ChatPtr = std::unique_ptr<sluice_chat, Freed<&sluice_chat_free>>;
using SessionPtr = std::unique_ptr<sluice_session, Freed<&sluice_session_free>>;
using ModelPtr = std::unique_ptr<sluice_model, Freed<&sluice_model_free>>;

inline const sluice_model* demo() {
  static const ModelPtr model(sluice_model_open("demo-attn", nullptr));
  EXPECT_NE(model, nullptr) << sluice_last_error();
  return model.get();
}

inline ChatPtr greedy_chat() {
  sluice_chat_options options;
  sluice_chat_options_init(&options, sizeof options);
  options.temperature = 0;
  return ChatPtr(sluice_chat_new(demo(), &options));
}

// The tokens of a chat's prompt, as the demo model's template writes it.
inline std::vector<int32_t> tokens_of(const std::string& text) {
  size_t n = 0;
  EXPECT_EQ(sluice_tokenize(demo(), text.c_str(), 1, nullptr, 0, &n), SLUICE_OK);
  std::vector<int32_t> tokens(n);
  EXPECT_EQ(sluice_tokenize(demo(), text.c_str(), 1, tokens.data(), n, &n), SLUICE_OK);
  return tokens;
}

// The last call failed, in this way and with these words.
inline void expect_failed(int status, const std::string& words) {
  EXPECT_EQ(sluice_last_status(), status) << sluice_last_error();
  EXPECT_NE(std::string(sluice_last_error()).find(words), std::string::npos) << sluice_last_error();
}

}  // namespace sluice::test
