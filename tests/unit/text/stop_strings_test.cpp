// StopStrings: the answer ends before the stop that ends first, whatever the pieces it came in, and
// nothing is held back that cannot become one.
// SPDX-License-Identifier: Apache-2.0
#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "text/utf8.h"

namespace sluice::text {
namespace {

using Stops = std::vector<std::string>;

struct Shown {
  std::string text;
  bool hit = false;
  bool operator==(const Shown&) const = default;
};

std::ostream& operator<<(std::ostream& to, const Shown& shown) {
  return to << testing::PrintToString(shown.text) << (shown.hit ? ", stopped" : "");
}

Shown whole(const Stops& stops, const std::string& text) {
  StopStrings filter(stops);
  std::string shown = filter.push(text);
  return {shown + filter.finish(), filter.hit()};
}

// What the words of the header mean, in the plainest way.
Shown expected_of(const Stops& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

TEST(StopStrings, EndBeforeTheStopAndShowNothingBehindIt) {
  StopStrings filter({"END"});
  EXPECT_EQ(filter.push("one"), "one");
  EXPECT_EQ(filter.push("two END three"), "two ");
  EXPECT_TRUE(filter.hit());
  EXPECT_EQ(filter.push("four"), "");
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopStrings, HoldBackOnlyWhatMayBecomeAStop) {
  StopStrings filter({"\n\nUser:"});
  EXPECT_EQ(filter.push("a\n"), "a");
  EXPECT_EQ(filter.push("\n"), "");
  EXPECT_EQ(filter.push("\n"), "\n");  // of three line ends the last two may still begin it
  EXPECT_EQ(filter.push("Us"), "");
  EXPECT_EQ(filter.push("age"), "\n\nUsage");
  EXPECT_EQ(filter.push("\n\nUser"), "");
  EXPECT_FALSE(filter.hit());
  EXPECT_EQ(filter.finish(), "\n\nUser");  // the answer ended first: it is text
}

TEST(StopStrings, MayStandAtTheVeryBeginning) {
  EXPECT_EQ(whole({"stop"}, "stop it"), (Shown{"", true}));
  EXPECT_EQ(whole({"x"}, "x"), (Shown{"", true}));
}

TEST(StopStrings, NoneOrEmptyOnesStopNothing) {
  EXPECT_EQ(whole({}, "text"), (Shown{"text", false}));
  EXPECT_EQ(whole({""}, "text"), (Shown{"text", false}));
  EXPECT_EQ(whole({"", "x"}, "text"), (Shown{"te", true}));
}

TEST(StopStrings, OfSeveralTheOneThatEndsFirstCounts) {
  EXPECT_EQ(whole({"later", "soon"}, "now soon later"), (Shown{"now ", true}));
  // "b" is complete before "abc" is, so a reader of single bytes never sees the c.
  EXPECT_EQ(whole({"abc", "b"}, "abc"), (Shown{"a", true}));
  // Both end at the same byte: the longer one leaves less behind.
  EXPECT_EQ(whole({"b", "ab"}, "xab"), (Shown{"x", true}));
  EXPECT_EQ(whole({"ab", "b"}, "xab"), (Shown{"x", true}));
}

TEST(StopStrings, ThatOverlapThemselvesAreFound) {
  EXPECT_EQ(whole({"aab"}, "aaab"), (Shown{"a", true}));
  EXPECT_EQ(whole({"abab"}, "ababab"), (Shown{"", true}));
  StopStrings filter({"abac"});
  EXPECT_EQ(filter.push("aba"), "");
  EXPECT_EQ(filter.push("bac"), "ab");
  EXPECT_TRUE(filter.hit());
}

TEST(StopStrings, OfManyBytesToACharacterNeverCutOne) {
  EXPECT_EQ(whole({"你好"}, "say 你们, 你好!"), (Shown{"say 你们, ", true}));
  StopStrings filter({"😀"});
  EXPECT_EQ(filter.push("😁"), "😁");  // begins with the same three bytes
  EXPECT_EQ(filter.push("😀"), "");
  EXPECT_TRUE(filter.hit());
}

TEST(StopStrings, GiveTheSameTextHoweverItWasCut) {
  static const std::vector<std::string> kLetters = {"a", "b", "\n", "é", "è", "你", "😀"};
  std::mt19937 random(3);
  const auto number = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n)(random); };
  const auto make_text = [&](size_t n_letters, size_t n_kinds) {
    std::string text;
    for (size_t i = 0; i < n_letters; ++i) text += kLetters[number(n_kinds - 1)];
    return text;
  };
  int n_hits = 0;
  for (int i = 0; i < 20000; ++i) {
    const size_t n_kinds = 2 + number(5);
    Stops stops(number(4));
    for (std::string& stop : stops) stop = make_text(number(4), n_kinds);
    const std::string text = make_text(number(20), n_kinds);
    const Shown expected = expected_of(stops, text);
    n_hits += expected.hit;

    StopStrings filter(stops);
    std::string shown;
    for (size_t at = 0; at < text.size();) {  // cut between characters, as the caller does
      size_t end = at;
      for (size_t left = 1 + number(4); left > 0 && end < text.size(); --left) {
        end += next_utf8(std::string_view(text).substr(end)).n_bytes;
      }
      const std::string out = filter.push(std::string_view(text).substr(at, end - at));
      ASSERT_EQ(valid_utf8_length(out), out.size()) << "case " << i << " cuts a character";
      shown += out;
      at = end;
    }
    shown += filter.finish();
    ASSERT_EQ((Shown{shown, filter.hit()}), expected)
        << "case " << i << ", stops " << testing::PrintToString(stops) << ", text "
        << testing::PrintToString(text);
    ASSERT_EQ(whole(stops, text), expected) << "case " << i << ", all at once";
  }
  EXPECT_GT(n_hits, 5000);
  EXPECT_LT(n_hits, 18000);
}

}  // namespace
}  // namespace sluice::text
