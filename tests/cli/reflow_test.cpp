// How far up a line of several rows begins once its terminal has another width.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/reflow.h"

#include <gtest/gtest.h>

#include <clocale>

namespace sluice::cli::test {
namespace {

TEST(Reflow, JoinsAndDividesRowsThatWereFull) {
  const std::wstring text(25, L'x');
  EXPECT_EQ(rows_above(text, 10, 10), 2);
  EXPECT_EQ(rows_above(text, 10, 30), 0);
  EXPECT_EQ(rows_above(text, 10, 7), 3);
  EXPECT_EQ(rows_above(text, 30, 5), 5) << "the cursor is in the row behind a full one";
  EXPECT_EQ(rows_above(L"", 10, 5), 0);
  EXPECT_EQ(rows_above(text, 0, 5), 0);
  EXPECT_EQ(rows_above(text, 5, 0), 0);
}

TEST(Reflow, KeepsApartWhatABlankEnded) {
  const std::wstring text = L"123456789 123456789 123";
  EXPECT_EQ(rows_above(text, 10, 30), 2) << "the blanks in the last column were never drawn";
  EXPECT_EQ(rows_above(text, 11, 30), 0);
  EXPECT_EQ(rows_above(L"12345     6", 8, 20), 1);
  EXPECT_EQ(rows_above(L"12345     6", 8, 4), 2) << "12345 divides, then 6";
}

TEST(Reflow, CountsWideCharacters) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  EXPECT_EQ(rows_above(L"\u4f60\u597d\u4f60\u597d", 8, 4), 2);
  EXPECT_EQ(rows_above(L"\u4f60\u597d\u4f60", 8, 5), 1);
  EXPECT_EQ(rows_above(L"1\u4f60\u597d\u4f60", 4, 20), 1) << "the second did not fit into column 4";
}

}  // namespace
}  // namespace sluice::cli::test
