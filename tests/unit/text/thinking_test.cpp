// ThinkingSplitter: thinking and answer come apart, with the tags in one piece or in many.
// SPDX-License-Identifier: Apache-2.0
#include "text/thinking.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace sluice::text {
namespace {

using State = ThinkingSplitter::State;

struct Parts {
  std::string thinking;
  std::string answer;
  bool operator==(const Parts&) const = default;
};

std::ostream& operator<<(std::ostream& to, const Parts& parts) {
  return to << "thinking " << testing::PrintToString(parts.thinking) << ", answer "
            << testing::PrintToString(parts.answer);
}

// Collects, and sees to the order: no thinking after the answer has begun.
class Collector {
 public:
  explicit Collector(State start)
      : splitter_(start, [this](bool is_thinking, std::string_view text) {
          EXPECT_FALSE(text.empty());
          EXPECT_FALSE(is_thinking && !parts_.answer.empty()) << "thinking after the answer";
          (is_thinking ? parts_.thinking : parts_.answer) += text;
        }) {}

  void push(std::string_view text) { splitter_.push(text); }
  const Parts& so_far() const { return parts_; }
  Parts finish() {
    splitter_.finish();
    return parts_;
  }

 private:
  Parts parts_;
  ThinkingSplitter splitter_;
};

Parts split(const std::string& text, State start = State::undecided) {
  Collector collector(start);
  collector.push(text);
  return collector.finish();
}

TEST(ThinkingSplitter, TellsThinkingFromAnswer) {
  EXPECT_EQ(split("<think>hm</think>yes"), (Parts{"hm", "yes"}));
  EXPECT_EQ(split("just an answer"), (Parts{"", "just an answer"}));
  EXPECT_EQ(split("hm</think>yes", State::thinking), (Parts{"hm", "yes"}));
  EXPECT_EQ(split(""), (Parts{"", ""}));
}

TEST(ThinkingSplitter, LineEndsAroundTheTagsBelongToNeither) {
  EXPECT_EQ(split("\n <think>\n\none\n\ntwo\n</think>\n\nyes\n"), (Parts{"one\n\ntwo", "yes\n"}));
  EXPECT_EQ(split("\none\n</think>\n\nyes", State::thinking), (Parts{"one", "yes"}));
  EXPECT_EQ(split("<think>\n\n</think>\n\nyes"), (Parts{"", "yes"}));
  EXPECT_EQ(split("<think>hm</think>\n    indented"), (Parts{"hm", "    indented"}));
  EXPECT_EQ(split("\n\nan answer of its own accord"),
            (Parts{"", "\n\nan answer of its own accord"}));
}

TEST(ThinkingSplitter, TagsLaterInAnAnswerAreText) {
  const std::string explained = "Between <think> and </think> it thinks.";
  EXPECT_EQ(split(explained), (Parts{"", explained}));
  EXPECT_EQ(split("<think>hm</think>" + explained), (Parts{"hm", explained}));
  EXPECT_EQ(split("{\"tag\": \"<think>\"}"), (Parts{"", "{\"tag\": \"<think>\"}"}));
  EXPECT_EQ(split("</think>"), (Parts{"", "</think>"}));
}

TEST(ThinkingSplitter, TheFirstClosingTagEndsAThoughtAndAnotherMayFollow) {
  EXPECT_EQ(split("<think>a <think> b</think>yes"), (Parts{"a <think> b", "yes"}));
  EXPECT_EQ(split("<think>a</think>\n<think>b</think>\nyes"), (Parts{"ab", "yes"}));
}

TEST(ThinkingSplitter, AThoughtThatIsCutOffStaysAThought) {
  EXPECT_EQ(split("<think>\nhm,\n"), (Parts{"hm,", ""}));
  EXPECT_EQ(split("hm</thin", State::thinking), (Parts{"hm</thin", ""}));
  EXPECT_EQ(split("<thin"), (Parts{"", "<thin"}));
  EXPECT_EQ(split("<think>hm</think>\n\n"), (Parts{"hm", ""}));
}

TEST(ThinkingSplitter, AnAnswerFromTheStartIsNeverLookedAt) {
  EXPECT_EQ(split("\n<think>hm</think>", State::answer), (Parts{"", "\n<think>hm</think>"}));
}

TEST(ThinkingSplitter, HandsOverWhatIsDecidedAtOnce) {
  Collector collector(State::undecided);
  collector.push("<thi");
  EXPECT_EQ(collector.so_far(), (Parts{"", ""}));
  collector.push("nk>hm, ");
  EXPECT_EQ(collector.so_far(), (Parts{"hm, ", ""}));
  collector.push("a < b</");
  EXPECT_EQ(collector.so_far(), (Parts{"hm, a < b", ""}));
  collector.push("b></think");
  EXPECT_EQ(collector.so_far(), (Parts{"hm, a < b</b>", ""}));
  collector.push(">\nye");
  EXPECT_EQ(collector.so_far(), (Parts{"hm, a < b</b>", "ye"}));
  collector.push("s <thi");  // no tag is looked for any more
  EXPECT_EQ(collector.so_far(), (Parts{"hm, a < b</b>", "yes <thi"}));
}

TEST(ThinkingSplitter, GivesTheSamePartsHoweverTheTextWasCut) {
  static const std::vector<std::string> kPieces = {
      "<think>", "</think>", "<th", "</", "<", ">", "\n", "\n\n", " ", "a", "你好", "ink>"};
  std::mt19937 random(5);
  const auto number = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n)(random); };
  int n_thought = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = number(2) > 0 ? "<think>" : "";
    for (size_t n = number(8); n > 0; --n) text += kPieces[number(kPieces.size() - 1)];
    const State start = number(3) == 0 ? State::thinking : State::undecided;
    const Parts expected = split(text, start);
    n_thought += !expected.thinking.empty() && !expected.answer.empty();
    for (const size_t most : {size_t{1}, size_t{6}}) {
      Collector cut(start);
      for (size_t at = 0; at < text.size();) {
        const size_t n = 1 + number(most - 1);
        cut.push(std::string_view(text).substr(at, n));
        at += n;
      }
      ASSERT_EQ(cut.finish(), expected) << "case " << i << ": " << testing::PrintToString(text);
    }
  }
  EXPECT_GT(n_thought, 1000);
}

TEST(EndsInsideThinking, OnlyWhereThePromptEndsWithTheOpenTag) {
  EXPECT_TRUE(ends_inside_thinking("<|im_start|>assistant\n<think>"));
  EXPECT_TRUE(ends_inside_thinking("<|im_start|>assistant\n<think>\n"));
  EXPECT_FALSE(ends_inside_thinking("<|im_start|>assistant\n<think>\n\n</think>\n\n"));
  EXPECT_FALSE(ends_inside_thinking("<|im_start|>assistant\n"));
  EXPECT_FALSE(ends_inside_thinking(""));
  EXPECT_FALSE(ends_inside_thinking("\n"));
  // A user may ask about the tag.
  EXPECT_FALSE(ends_inside_thinking("<|im_start|>user\nWhat is <think>?<|im_end|>\nassistant\n"));
}

TEST(EndsInsideThinking, NoMoreBehindTheTextThatClosesIt) {
  EXPECT_FALSE(ends_inside_thinking("assistant\n<think>\n" + std::string(kNoThoughts)));
}

}  // namespace
}  // namespace sluice::text
