// See share_rows.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/batch/share_rows.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::policy {
namespace {

// Of a whole step, what prompts get while others wait: those then wait for a quarter of what a
// prompt's chunk takes. Narrow steps read an expert's weights for few rows, so less would make the
// prompt itself slow.
constexpr int kShareOfStep = 4;
constexpr int kLeastRows = 32;

}  // namespace

int prompt_rows(int max_rows, int n_waiting) {
  const int n_left = max_rows - n_waiting;
  if (n_waiting == 0) return n_left;
  return std::min(n_left, std::max(max_rows / kShareOfStep, kLeastRows));
}

std::vector<RowShare> share_rows(std::span<const BatchText> texts, int max_rows) {
  CHECK(std::ssize(texts) <= max_rows);
  std::vector<RowShare> shares;
  std::vector<int> prompts;
  for (int i = 0; i < static_cast<int>(texts.size()); ++i) {
    const BatchText& text = texts[static_cast<size_t>(i)];
    CHECK(text.n_pending > 0);
    if (!text.is_prompt) shares.push_back({i, 1});
    if (text.is_prompt && !text.must_wait) prompts.push_back(i);
  }
  std::ranges::stable_sort(prompts, {},
                           [&](int i) { return texts[static_cast<size_t>(i)].last_step; });
  int n_left = prompt_rows(max_rows, static_cast<int>(shares.size()));
  for (const int i : prompts) {
    const BatchText& text = texts[static_cast<size_t>(i)];
    int n = std::min(n_left, text.n_pending);
    if (text.n_to_point > 0) n = std::min(n, text.n_to_point);
    if (n == 0) break;
    shares.push_back({i, n});
    n_left -= n;
  }
  return shares;
}

}  // namespace sluice::policy
