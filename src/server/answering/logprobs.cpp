// See logprobs.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/answering/logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sluice::server {

TokenLogprobs logprobs_of(std::span<const float> logits, TokenId token, int n_best) {
  // log p_i = x_i - max - log(sum_j exp(x_j - max))
  const float most = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x - most));
  const double shift = static_cast<double>(most) + std::log(sum);
  const auto score = [&](TokenId id) {
    return ScoredToken{id, static_cast<float>(logits[static_cast<size_t>(id)] - shift)};
  };
  TokenLogprobs result{score(token), {}};
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto n = std::min(static_cast<size_t>(n_best), ids.size());
  const auto is_likelier = [&](TokenId a, TokenId b) {
    const float x = logits[static_cast<size_t>(a)];
    const float y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  };
  std::partial_sort(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(n), ids.end(), is_likelier);
  for (size_t i = 0; i < n; ++i) result.best.push_back(score(ids[i]));
  return result;
}

}  // namespace sluice::server
