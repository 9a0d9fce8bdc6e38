// Who gets rows in a step: nobody who decodes is left out, prompts take turns, and the wait of the
// others has a bound, counted in rows.
// SPDX-License-Identifier: Apache-2.0
#include "policy/batch/share_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace sluice::policy {
namespace {

BatchText decoding() { return {.n_pending = 1}; }
BatchText prompt_of(int n, int64_t last_step = 0) {
  return {.n_pending = n, .is_prompt = true, .last_step = last_step};
}

int rows_of(const std::vector<RowShare>& shares, int text) {
  int n = 0;
  for (const RowShare& share : shares) n += share.text == text ? share.n_rows : 0;
  return n;
}

TEST(ShareRows, APromptAloneGetsTheWholeStep) {
  EXPECT_EQ(share_rows(std::vector{prompt_of(4000)}, 512), (std::vector<RowShare>{{0, 512}}));
  EXPECT_EQ(share_rows(std::vector{prompt_of(40)}, 512), (std::vector<RowShare>{{0, 40}}));
}

TEST(ShareRows, ShortPromptsShareAStep) {
  const std::vector texts{prompt_of(20), prompt_of(30), prompt_of(600)};
  EXPECT_EQ(share_rows(texts, 512), (std::vector<RowShare>{{0, 20}, {1, 30}, {2, 462}}));
}

TEST(ShareRows, WhoDecodesIsNeverLeftOut) {
  const std::vector texts{prompt_of(4000), decoding(), prompt_of(4000), decoding()};
  const auto shares = share_rows(texts, 512);
  EXPECT_EQ(shares.front(), (RowShare{1, 1})) << "decoding first";
  EXPECT_EQ(rows_of(shares, 1), 1);
  EXPECT_EQ(rows_of(shares, 3), 1);
  EXPECT_EQ(rows_of(shares, 0), 128) << "a quarter of the step while others wait";
  EXPECT_EQ(rows_of(shares, 2), 0);
}

TEST(ShareRows, PromptsTakeTurns) {
  std::vector texts{decoding(), prompt_of(1000), prompt_of(1000), prompt_of(1000)};
  std::vector<int> order;
  for (int64_t step = 1; step <= 6; ++step) {
    for (const RowShare& share : share_rows(texts, 128)) {
      BatchText& text = texts[static_cast<size_t>(share.text)];
      text.last_step = step;
      if (!text.is_prompt) continue;
      text.n_pending -= share.n_rows;
      order.push_back(share.text);
    }
  }
  EXPECT_EQ(order, (std::vector{1, 2, 3, 1, 2, 3}));
}

TEST(ShareRows, PiecesEndAtPoints) {
  std::vector texts{prompt_of(300), prompt_of(100)};
  texts[0].n_to_point = 10;
  EXPECT_EQ(share_rows(texts, 256), (std::vector<RowShare>{{0, 10}, {1, 100}}));
}

TEST(ShareRows, WhoMustWaitGetsNothing) {
  std::vector texts{prompt_of(300), prompt_of(300)};
  texts[1].must_wait = true;
  EXPECT_EQ(share_rows(texts, 512), (std::vector<RowShare>{{0, 300}}));
}

// Whatever there is to do: the step fits, everybody who decodes is in it, some prompt advances
// where one may, and prompts get less than a step where somebody waits.
TEST(ShareRows, KeepsItsPromisesForAnyTexts) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    uint64_t n_drawn = 0;
    const auto draw = [&](uint64_t below) {
      return static_cast<int>(random_bits(seed, n_drawn++) % below);
    };
    const int max_rows = 1 + draw(600);
    std::vector<BatchText> texts;
    const int n_texts = 1 + draw(static_cast<uint64_t>(std::min(max_rows, 12)));
    for (int i = 0; i < n_texts; ++i) {
      texts.push_back(draw(2) == 0 ? decoding() : prompt_of(1 + draw(3000), draw(5)));
      if (texts.back().is_prompt && draw(3) == 0) texts.back().n_to_point = 1 + draw(100);
      if (texts.back().is_prompt && draw(4) == 0) texts.back().must_wait = true;
    }
    const auto shares = share_rows(texts, max_rows);
    int n_decoding = 0, n_prompt_rows = 0, n_open = 0;
    for (int i = 0; i < n_texts; ++i) {
      const BatchText& text = texts[static_cast<size_t>(i)];
      const int n = rows_of(shares, i);
      n_decoding += text.is_prompt ? 0 : 1;
      n_prompt_rows += text.is_prompt ? n : 0;
      n_open += text.is_prompt && !text.must_wait ? 1 : 0;
      ASSERT_LE(n, text.n_pending) << seed;
      if (!text.is_prompt) {
        ASSERT_EQ(n, 1) << seed;
      }
      if (text.must_wait) {
        ASSERT_EQ(n, 0) << seed;
      }
      if (text.n_to_point > 0) {
        ASSERT_LE(n, text.n_to_point) << seed;
      }
    }
    ASSERT_LE(n_decoding + n_prompt_rows, max_rows) << seed;
    if (n_open > 0) {
      ASSERT_GT(n_prompt_rows, 0) << seed;
    }
    if (n_decoding > 0) {
      ASSERT_LE(n_prompt_rows, std::max(32, max_rows / 4)) << seed;
    }
  }
}

}  // namespace
}  // namespace sluice::policy
