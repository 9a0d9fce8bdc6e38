// The queue of victims, against the plain rule it stands for.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/victim_queue.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace sluice::policy::test {
namespace {

constexpr int kExperts = 8;

struct Candidate {
  int id;
  double value;
};

// By looking at everybody.
int lowest_by_rule(const std::vector<Candidate>& all, const std::vector<int>& pool_of,
                   const std::vector<int>& spare, int layer) {
  const Candidate* best = nullptr;
  for (const Candidate& c : all) {
    const auto l = static_cast<size_t>(c.id / kExperts);
    const bool may = c.id / kExperts == layer ||
                     (pool_of[l] == pool_of[static_cast<size_t>(layer)] && spare[l] > 0);
    if (!may) continue;
    if (!best || c.value < best->value || (c.value == best->value && c.id < best->id)) best = &c;
  }
  return best ? best->id : -1;
}

TEST(VictimQueue, TheLowestIsTheOneTheRuleNames) {
  const std::vector<int> pool_of = {0, 0, 1, 0, 1};
  const int n_layers = static_cast<int>(pool_of.size());
  VictimQueue queue(kExperts, pool_of);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    uint64_t n_draws = 0;
    const auto draw = [&](uint64_t below) {
      return static_cast<int>(random_bits(seed, n_draws++) % below);
    };
    std::vector<Candidate> all;
    std::vector<int> spare;
    for (int l = 0; l < n_layers; ++l) {
      const int n = draw(kExperts + 1);
      for (int i = 0; i < n; ++i) {
        queue.ids()[all.size()] = l * kExperts + i;
        queue.values()[all.size()] = draw(5) - 2;
        all.push_back({l * kExperts + i, queue.values()[all.size()]});
      }
      spare.push_back(draw(4) - 1);
    }
    std::copy(spare.begin(), spare.end(), queue.spare().begin());
    queue.ready(all.size());
    for (int pool = 0; pool < 2; ++pool) {
      double least = VictimQueue::kNobody;
      for (const Candidate& c : all) {
        if (pool_of[static_cast<size_t>(c.id / kExperts)] == pool) least = std::min(least, c.value);
      }
      ASSERT_EQ(queue.least(pool), least) << "seed " << seed;
    }
    for (int move = 0; move < 30; ++move) {
      const int layer = draw(pool_of.size());
      const int expected = lowest_by_rule(all, pool_of, spare, layer);
      const VictimQueue::Entry* const found = queue.lowest_for(layer);
      ASSERT_EQ(found ? found->id : -1, expected) << "seed " << seed << ", move " << move;
      if (!found) continue;
      std::erase_if(all, [&](const Candidate& c) { return c.id == expected; });
      --spare[static_cast<size_t>(expected / kExperts)];
      ++spare[static_cast<size_t>(layer)];
      queue.give_lowest(expected / kExperts, layer);
    }
  }
}

}  // namespace
}  // namespace sluice::policy::test
