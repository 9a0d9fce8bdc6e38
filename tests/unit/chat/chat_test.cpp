// The public interface: text in, text out.
// SPDX-License-Identifier: Apache-2.0
#include "sluice/chat.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/error_of.h"
#include "support/temp_dir.h"
#include "unit/chat/demo.h"

namespace sluice {
namespace {

const ChatOptions kGreedy = {.temperature = 0.0f};
const std::string kQuestion = "What is 17 + 25?";
const std::string kAnswer = "17 + 25 = 42.";

TEST(Chat, AnswersATextWithAText) {
  Chat chat("demo-attn", kGreedy);
  std::string heard;
  const auto hear = [&](std::string_view text) {
    heard += text;
    return true;
  };
  EXPECT_EQ(chat.ask(kQuestion, hear), kAnswer);
  EXPECT_EQ(heard, kAnswer);
  EXPECT_TRUE(chat.warnings().empty());
}

TEST(Chat, SharesAModelAndRemembersItsOwnConversation) {
  Chat one(chat::demo_model(), kGreedy), two(chat::demo_model(), kGreedy);
  one.ask("What is the capital of France?");
  const std::string late = one.ask(kQuestion);
  EXPECT_EQ(two.ask(kQuestion), kAnswer);
  one.reset();
  EXPECT_EQ(one.ask(kQuestion), kAnswer);
  Chat moved = std::move(one);
  EXPECT_EQ(moved.ask("What is the capital of France?"), two.ask("What is the capital of France?"));
}

TEST(Chat, EndsWhenAskedTo) {
  Chat chat(chat::demo_model(), kGreedy);
  const std::string cut = chat.ask(kQuestion, [](std::string_view) { return false; });
  EXPECT_LT(cut.size(), kAnswer.size());
  EXPECT_TRUE(kAnswer.starts_with(cut)) << cut;

  ChatOptions options = kGreedy;
  options.should_stop = [] { return true; };
  EXPECT_EQ(Chat(chat::demo_model(), options).ask(kQuestion), "");
  options = kGreedy;
  options.n_tokens = 2;
  EXPECT_LT(Chat(chat::demo_model(), options).ask(kQuestion).size(), kAnswer.size());
  options = kGreedy;
  options.stops = {" ="};
  EXPECT_EQ(Chat(chat::demo_model(), options).ask(kQuestion), "17 + 25");
}

TEST(Chat, TellsThePromptsProgress) {
  int last = -1, total = 0;
  ChatOptions options = kGreedy;
  options.prompt_progress = [&](int n_done, int n_total) { last = n_done, total = n_total; };
  Chat(chat::demo_model(), options).ask(kQuestion);
  EXPECT_GT(total, 0);
  EXPECT_EQ(last, total);
}

TEST(Chat, DrawsTheSameWithTheSameSeed) {
  const auto answer = [](uint32_t seed) {
    const ChatOptions hot = {.n_tokens = 24,
                             .temperature = 5.0f,
                             .top_k = 0,
                             .top_p = 1.0f,
                             .min_p = 0.0f,
                             .seed = seed};
    return Chat(chat::demo_model(), hot).ask(kQuestion);
  };
  EXPECT_EQ(answer(7), answer(7));
  EXPECT_NE(answer(7), answer(8));
}

TEST(FindModel, TakesAPathAsItIsAndANameFromTheFirstFolderThatHasIt) {
  const test::TempDir first, second;
  std::filesystem::copy(find_model("demo-attn"), second / "demo-attn.gguf");
  std::filesystem::copy(find_model("demo-attn"), second / "split-00001-of-00002.gguf");
  const std::vector<std::string> folders = {first.path(), second.path()};
  EXPECT_EQ(find_model("demo-attn", folders), second / "demo-attn.gguf");
  EXPECT_EQ(find_model("split", folders), second / "split-00001-of-00002.gguf");
  EXPECT_EQ(find_model("no/such.gguf", folders), "no/such.gguf");
  const auto refused = [&] { find_model("nosuch", folders); };
  EXPECT_EQ(test::error_of(Errc::bad_request, refused),
            "there is no model 'nosuch'; expected a GGUF file, or one of: demo-attn, demo-hybrid, "
            "split");
}

}  // namespace
}  // namespace sluice
