// Lines wrapped at words as text comes piece by piece: what a terminal shows in the end.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/word_wrap.h"

#include <gtest/gtest.h>

#include <clocale>

#include "base/error.h"

namespace sluice::test {
namespace {

// What is on the screen after these pieces; only what WordWrap writes is understood.
std::string screen_of(const std::vector<std::string>& pieces, int n_columns) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  cli::WordWrap wrap;
  std::string bytes;
  for (const std::string& piece : pieces) bytes += wrap.add(piece, n_columns);
  std::string screen, line;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\x1b') {  // "ESC [ n G ESC [ K": back to a column, and what is behind it gone
      const size_t end = bytes.find('G', i);
      line.resize(std::stoul(bytes.substr(i + 2, end - i - 2)) - 1);
      EXPECT_EQ(bytes.substr(end + 1, 3), "\x1b[K");
      i = end + 3;
    } else if (bytes[i] == '\n') {
      screen += line + "\n";
      line.clear();
    } else {
      line += bytes[i];
    }
  }
  return screen + line;
}

TEST(WordWrap, MovesAWordThatDoesNotFit) {
  EXPECT_EQ(screen_of({"aaaa bbbb cccc dddd ", "eeeeeee"}, 22), "aaaa bbbb cccc dddd \neeeeeee");
  EXPECT_EQ(screen_of({"aaaa bbbb cccc dddd ", "ee", "eee", "ee f"}, 22),
            "aaaa bbbb cccc dddd \neeeeeee f");
  EXPECT_EQ(screen_of({"aaaa bbbb cccc ddddd", " next"}, 20), "aaaa bbbb cccc ddddd\nnext");
}

TEST(WordWrap, CutsOnlyWhatIsLongerThanALine) {
  const std::string row(20, 'x');
  EXPECT_EQ(screen_of({std::string(45, 'x')}, 20), cat(row, "\n", row, "\nxxxxx"));
}

TEST(WordWrap, KeepsLinesAndNarrowTerminalsAsTheyAre) {
  EXPECT_EQ(screen_of({"one\n\n  two\n"}, 20), "one\n\n  two\n");
  EXPECT_EQ(screen_of({"a text of many words, not wrapped"}, 19),
            "a text of many words, not wrapped");
}

TEST(WordWrap, CountsWideCharacters) {
  // Nine of two columns and a space are 19; the next word of four columns goes to the next line.
  EXPECT_EQ(screen_of({"你好你好你好你好你 ", "你好"}, 20), "你好你好你好你好你 \n你好");
}

}  // namespace
}  // namespace sluice::test
