// Steps as speculation takes them: some rows each, of which most are taken back, again and again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unit/engine/run_model.h"

namespace sluice::engine::test {

// The sequence has n tokens of the text. Steps of 14 to 16 rows follow, of which up to four are the
// text's and stay, while the text has more than 26 left. Returns how many tokens it has then.
inline size_t speculate(StepDriver& driver, std::span<const TokenId> text, size_t n) {
  const std::vector<TokenId> wrong = random_tokens(16, 21);
  for (size_t i = 0; n + 26 < text.size(); ++i) {
    const size_t n_right = i % 5, n_wrong = 16 - n_right - i % 3;
    std::vector<StepRow> rows;
    for (const TokenId token : text.subspan(n, n_right)) rows.push_back({token});
    for (const TokenId token : std::span(wrong).first(n_wrong)) rows.push_back({token});
    driver.step(rows, policy::Phase::decode, {});
    n += n_right;
    driver.truncate({}, static_cast<int>(n));
  }
  return n;
}

}  // namespace sluice::engine::test
