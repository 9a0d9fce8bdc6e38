// See rank.h.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/rank.h"

#include <algorithm>
#include <functional>

namespace sluice::sampler {
namespace {

constexpr size_t kSortBelow = 64;  // so few keys are sorted rather than divided further
constexpr int kMaxRounds = 64;     // a bound for keys made to defeat the median of three

uint64_t median(uint64_t a, uint64_t b, uint64_t c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

// How many of the best are needed to reach the target. A quickselect by weight: of the two halves
// around a pivot, only the one in which the sum crosses the target is looked at again, so the time
// is linear. Leaves the keys divided at the answer.
size_t n_to_reach(std::span<uint64_t> keys, std::span<const float> weights, double target) {
  size_t begin = 0;
  size_t end = keys.size();
  double before = 0.0;  // the weight of keys[0, begin), all better than the rest
  for (int round = 0; end - begin > kSortBelow && round < kMaxRounds; ++round) {
    // No two keys are equal, so one is above this pivot and two are not: both sides shrink.
    const uint64_t pivot = median(keys[begin], keys[begin + (end - begin) / 2], keys[end - 1]);
    const auto part = keys.subspan(begin, end - begin);
    const auto above =
        std::partition(part.begin(), part.end(), [pivot](uint64_t key) { return key > pivot; });
    double weight = 0.0;
    for (auto key = part.begin(); key != above; ++key) weight += weights[index_of(*key)];
    const size_t middle = begin + static_cast<size_t>(above - part.begin());
    if (before + weight >= target) {
      end = middle;
    } else {
      before += weight;
      begin = middle;
    }
  }
  std::sort(keys.begin() + begin, keys.begin() + end, std::greater<>());
  while (begin < end) {
    before += weights[index_of(keys[begin++])];
    if (before >= target) break;
  }
  return begin;
}

}  // namespace

std::span<uint64_t> select_best(std::span<uint64_t> keys, size_t k) {
  if (k >= keys.size()) return keys;
  if (k > 0) std::nth_element(keys.begin(), keys.begin() + k - 1, keys.end(), std::greater<>());
  return keys.first(k);
}

std::span<uint64_t> select_weight(std::span<uint64_t> keys, std::span<const float> weights,
                                  double target, size_t min_keep) {
  const size_t n = n_to_reach(keys, weights, target);
  return n < min_keep ? select_best(keys, min_keep) : keys.first(n);
}

}  // namespace sluice::sampler
