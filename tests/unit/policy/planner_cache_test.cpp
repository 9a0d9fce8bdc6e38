// The expert cache of a plan: its slots, its pins, who may gain slots, and what copies cost.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/planner_cache.h"

#include <gtest/gtest.h>

#include "unit/policy/planner_shapes.h"

namespace sluice::policy::planner_test {
namespace {

CacheOptions options_of(const ModelShape& model, const Hardware& hardware, const Wishes& wishes) {
  return cache_options(make_plan(model, hardware, wishes), model, hardware, PolicyKind::lfu);
}

TEST(PlannerCache, HasTheSlotsAndPinsOfThePlan) {
  const ModelShape model = qwen3_30b();
  Wishes wishes;
  wishes.pinned = {3};
  const Plan plan = make_plan(model, desktop(), wishes);
  const CacheOptions options = cache_options(plan, model, desktop(), PolicyKind::lfu);
  EXPECT_EQ(options.policy, PolicyKind::lfu);
  EXPECT_EQ(options.n_experts, 128);
  ASSERT_EQ(options.layers.size(), 48u);
  for (size_t i = 0; i < 48; ++i) {
    EXPECT_EQ(options.layers[i].expert_bytes, model.layers[i].expert_bytes);
    EXPECT_EQ(options.layers[i].n_slots, plan.layers[i].n_slots);
    EXPECT_EQ(options.layers[i].pinned, i == 3);
  }
  const ExpertCache cache(options);
  EXPECT_EQ(cache.n_resident(LayerId(3)), 128);
  int64_t n_slots = 0;
  for (int pool = 0; pool < cache.n_pools(); ++pool) n_slots += cache.n_slots(pool);
  EXPECT_EQ(n_slots, plan.forecast().n_slots);
}

TEST(PlannerCache, NeverLetsAnExpertGoThatTheHostDoesNotHold) {
  Hardware h = desktop();
  h.vram_free = 24 * kGiB;
  for (const CacheLayer& layer : options_of(qwen3_30b(), h, {}).layers) EXPECT_TRUE(layer.pinned);
  ModelShape model = qwen3_30b();
  model.layers[0].n_experts = 0;  // dense
  EXPECT_FALSE(options_of(model, h, {}).layers[0].pinned);
}

// Two rounds in which every layer asks for experts it has not.
void touch_all(ExpertCache& cache, int n_layers) {
  for (int step = 0; step < 2; ++step) {
    cache.begin_step(Phase::decode);
    for (int i = 0; i < n_layers; ++i) {
      const RoutedExpert routed[] = {{ExpertId(step), 0.5f}, {ExpertId(7), 0.5f}};
      cache.touch(LayerId(i), routed);
    }
    cache.end_step();
  }
}

TEST(PlannerCache, GivesNoSlotToALayerWhoseExpertsStayOnTheCpu) {
  Wishes cpu_moe, few_layers;
  cpu_moe.n_cpu_moe = 20;
  few_layers.n_gpu_layers = 28;
  for (const Wishes& wishes : {cpu_moe, few_layers}) {
    Hardware h = desktop();
    h.vram_free = 4 * kGiB;  // so that no layer is whole, and slots are traded
    CacheOptions options = options_of(qwen3_30b(), h, wishes);
    options.copy_cost = options.wait_cost = 0.0;
    ExpertCache cache(options);
    touch_all(cache, 48);
    for (int i = 0; i < 48; ++i) {
      EXPECT_EQ(cache.n_resident(LayerId(i)), i < 20 ? 0 : 3) << i;
    }
  }
}

TEST(PlannerCache, GivesEvenALayerWithoutSlotsItsTurnWhereItMayHaveSome) {
  Wishes wishes;
  wishes.n_slots = 1;
  EXPECT_GT(options_of(qwen3_30b(), desktop(), wishes).layers[47].expert_bytes, 0u);
}

TEST(PlannerCache, CountsACopyInWhatItTakesFromTheCpuOrFromTheLink) {
  // A hit saves 1/60 - 1/400 of what the CPU needs; a copy beside it takes 0.4/60, and 1/25 where
  // it is waited for.
  const double saved = 1.0 / 60 - 1.0 / 400;
  const CacheOptions cache = options_of(qwen3_30b(), desktop(), {});
  EXPECT_NEAR(cache.copy_cost, 0.4 / 60 / saved, 1e-12);
  EXPECT_NEAR(cache.wait_cost, 1.0 / 25 / saved, 1e-12);
  // Streamed, a hit saves 1/25 - 1/400, and what was read stays for 2/400: VRAM copies it.
  Wishes wishes;
  wishes.moe = MoeWish::gpu;
  const CacheOptions streamed = options_of(qwen3_30b(), desktop(), wishes);
  EXPECT_NEAR(streamed.copy_cost, 2.0 / 400 / (1.0 / 25 - 1.0 / 400), 1e-12);
  EXPECT_EQ(streamed.wait_cost, 0.0);
}

TEST(PlannerCache, HidesWhatTheLinkMovesInAStep) {
  Plan plan = make_plan(qwen3_30b(), desktop(), {});
  EXPECT_NEAR(static_cast<double>(hidden_bytes(plan, desktop())) * plan.forecast().speed.decode,
              25e9, 1e3);
  EXPECT_EQ(hidden_bytes(make_plan(qwen3_30b(), without_gpu(), {}), without_gpu()), 0u);
}

}  // namespace
}  // namespace sluice::policy::planner_test
