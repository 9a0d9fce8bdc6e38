// The prefetch planner: order, budget, staging slots and what became of the bytes.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/prefetch.h"

#include "unit/policy/traces.h"

namespace sluice::policy::test {
namespace {

PrefetchCandidate candidate(int layer, int expert, double probability) {
  return {{LayerId(layer), ExpertId(expert)}, probability};
}

class Prefetch : public testing::Test {
 protected:
  Prefetch() : cache_({.n_experts = 8, .layers = {{100, 2}, {100, 2}, {250, 2}}}) {
    cache_.begin_step(Phase::decode);
    cache_.touch(LayerId(0), std::vector<RoutedExpert>{{ExpertId(0), 1.0f}});
    cache_.end_step();
  }

  std::vector<int> plan(std::vector<PrefetchCandidate> candidates, uint64_t max_bytes = 10000) {
    std::vector<int> experts;
    for (const PrefetchCopy& copy : planner_.plan(candidates, cache_, max_bytes)) {
      experts.push_back(copy.key.expert.value);
      slots_.push_back(copy.slot);
    }
    return experts;
  }

  RoutingShape shape_{3, 8, 2, {100, 100, 250}};
  ExpertCache cache_;
  PrefetchPlanner planner_{{.n_slots = 3, .slot_bytes = 200, .shape = shape_, .copy_cost = 0.3}};
  std::vector<SlotId> slots_;
};

TEST_F(Prefetch, TheMostProbableComeFirstAndOnlyThoseThatPay) {
  EXPECT_EQ(plan({candidate(1, 4, 0.5), candidate(1, 5, 0.3), candidate(1, 6, 0.9)}),
            (std::vector{6, 4}));
}

TEST_F(Prefetch, WhatIsResidentOrStagedOrTooLargeIsNotCopied) {
  ASSERT_TRUE(cache_.resident(LayerId(0), ExpertId(0)));
  EXPECT_EQ(plan({candidate(0, 0, 0.9), candidate(2, 1, 0.8), candidate(1, 3, 0.7)}),
            (std::vector{3}));
  EXPECT_EQ(plan({candidate(1, 3, 0.9)}), std::vector<int>{});
}

TEST_F(Prefetch, TheByteBudgetHolds) {
  EXPECT_EQ(plan({candidate(1, 1, 0.9), candidate(1, 2, 0.8), candidate(1, 3, 0.7)}, 250),
            (std::vector{1, 2}));
  EXPECT_EQ(plan({candidate(1, 4, 0.9)}, 99), std::vector<int>{});
}

TEST_F(Prefetch, AStagedExpertKeepsItsSlotUntilItsLayerIsRouted) {
  EXPECT_EQ(plan({candidate(1, 1, 0.6), candidate(1, 2, 0.5), candidate(0, 3, 0.4)}).size(), 3u);
  EXPECT_EQ(plan({candidate(1, 7, 1.0)}), std::vector<int>{}) << "all slots are taken";
  for (const SlotId slot : slots_) planner_.arrived(slot);
  EXPECT_TRUE(planner_.ready({LayerId(1), ExpertId(1)}));
  EXPECT_EQ(planner_.n_free(), 0);
  planner_.routed(LayerId(1), std::vector<RoutedExpert>{{ExpertId(1), 1.0f}});
  EXPECT_EQ(planner_.n_free(), 2);
  EXPECT_TRUE(planner_.ready({LayerId(0), ExpertId(3)})) << "layer 0 belongs to the next step";
}

TEST_F(Prefetch, BytesAreUsefulLateOrWasted) {
  plan({candidate(1, 1, 0.9), candidate(1, 2, 0.8), candidate(1, 3, 0.7)});
  planner_.arrived(slots_[0]);
  planner_.arrived(slots_[2]);
  EXPECT_FALSE(planner_.ready({LayerId(1), ExpertId(2)}));
  planner_.routed(LayerId(1), std::vector<RoutedExpert>{{ExpertId(1), 0.5f}, {ExpertId(2), 0.5f}});
  EXPECT_EQ(planner_.counts().useful_bytes, 100u);
  EXPECT_EQ(planner_.counts().late_bytes, 100u);
  EXPECT_EQ(planner_.counts().wasted_bytes, 100u);
  EXPECT_EQ(planner_.n_free(), 2) << "a copy still writes into the late one's slot";
  planner_.arrived(slots_[1]);
  EXPECT_EQ(planner_.n_free(), 3);
}

}  // namespace
}  // namespace sluice::policy::test
