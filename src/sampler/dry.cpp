// See dry.h.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/dry.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sampler/bounded.h"
#include "sampler/lanes.h"

namespace sluice::sampler {

Dry::Dry(DryOptions options, size_t n_vocab)
    : options_(std::move(options)), breaks_alone_(n_vocab), longest_(n_vocab) {
  // Single tokens are many (every one with a colon in it) and longer ones few.
  std::erase_if(options_.breakers, [&](const std::vector<TokenId>& breaker) {
    if (breaker.size() > 1) return false;
    breaks_alone_[static_cast<size_t>(breaker[0])] = true;
    return true;
  });
  // The window is no longer than the history, which reserves so much itself.
  constexpr size_t kReserved = 4096;
  const size_t n = std::min(options_.last_n, kReserved);
  recent_.reserve(n);
  common_.reserve(n);
  continuing_.reserve(n);
}

void Dry::look_back(const History& history) {
  recent_.resize(std::min(options_.last_n, history.size()));
  for (size_t i = 0; i < recent_.size(); ++i) recent_[i] = history.recent(i);
}

bool Dry::ends_at(const std::vector<TokenId>& breaker, size_t i) const {
  return breaker.size() <= recent_.size() - i &&
         std::equal(breaker.rbegin(), breaker.rend(), recent_.begin() + static_cast<ptrdiff_t>(i));
}

size_t Dry::n_since_breaker() const {
  for (size_t i = 0; i < recent_.size(); ++i) {
    if (breaks_alone_[static_cast<size_t>(recent_[i])]) return i;
    for (const std::vector<TokenId>& breaker : options_.breakers) {
      if (ends_at(breaker, i)) return i;
    }
  }
  return recent_.size();
}

// The Z function of the reversed text, in linear time: [from, to) is the match found so far that
// reaches furthest back. Inside it the text repeats its own end, so that common_[k - from] is known
// to hold for k as well, up to the end of the match; only beyond that are tokens compared.
void Dry::find_repetitions() {
  const size_t n = recent_.size();
  common_.assign(n, 0);
  size_t from = 0;
  size_t to = 0;
  for (size_t k = 1; k < n; ++k) {
    size_t length = k < to ? std::min(to - k, common_[k - from]) : 0;
    while (k + length < n && recent_[length] == recent_[k + length]) ++length;
    common_[k] = length;
    if (k + length > to) {
      from = k;
      to = k + length;
    }
  }
}

// For a token that followed an earlier occurrence of the text's last n tokens, n being the longest
// such, cut short at a breaker:
//
//   l <- l - multiplier * base^(n - allowed_length)   where n >= allowed_length
//
// A token that is a breaker by itself ends the repetition instead and is left alone.
void Dry::penalise(Candidates& candidates, const History& history) {
  look_back(history);
  const auto allowed = static_cast<size_t>(options_.allowed_length);
  const size_t limit = n_since_breaker();
  if (limit < allowed) return;
  find_repetitions();
  for (size_t k = 1; k < recent_.size(); ++k) {
    const size_t n = std::min(common_[k], limit);
    if (n < allowed) continue;
    uint32_t& longest = longest_[static_cast<size_t>(recent_[k - 1])];
    if (longest == 0) continuing_.push_back(recent_[k - 1]);
    longest = std::max(longest, static_cast<uint32_t>(n + 1));
  }
  for (const TokenId id : continuing_) {
    const size_t n = std::exchange(longest_[static_cast<size_t>(id)], 0) - size_t{1};
    float* logit = candidates.find(id);
    if (logit == nullptr || *logit == -kInf || breaks_alone_[static_cast<size_t>(id)]) continue;
    const double power =
        std::pow(static_cast<double>(options_.base), static_cast<double>(n - allowed));
    *logit = bounded(*logit - options_.multiplier * power);
  }
  continuing_.clear();
}

}  // namespace sluice::sampler
