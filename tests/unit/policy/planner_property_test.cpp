// What holds for every plan, over random models, machines and wishes.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <optional>

#include "policy/plan/planner.h"
#include "unit/policy/planner_shapes.h"

namespace sluice::policy::planner_test {
namespace {

Wishes random_wishes(Random& random, const ModelShape& model) {
  Wishes w;
  if (random.one_in(4)) w.moe = static_cast<MoeWish>(random.between(0, 3));
  if (random.one_in(5)) w.n_gpu_layers = static_cast<int>(random.between(0, model.n_layers() + 2));
  if (random.one_in(5)) w.n_cpu_moe = static_cast<int>(random.between(0, model.n_layers()));
  if (random.one_in(5)) w.n_pinned = static_cast<int>(random.between(0, model.n_layers()));
  if (random.one_in(5)) w.n_slots = random.between(1, 200);
  if (random.one_in(3)) w.n_ctx = static_cast<int>(random.between(1, 100000));
  if (random.one_in(4)) w.vram_bytes = static_cast<uint64_t>(random.between(0, 6)) * kGiB;
  w.may_quantise_kv = random.one_in(2);
  w.n_sequences = static_cast<int>(random.between(1, 8));
  w.prefill_chunk = 1 << random.between(0, 12);
  w.k_type = static_cast<KvType>(random.between(0, 4));
  w.v_type = static_cast<KvType>(random.between(0, 4));
  return w;
}

std::optional<Plan> try_plan(const ModelShape& model, const Hardware& hardware,
                             const Wishes& wishes) {
  try {
    return make_plan(model, hardware, wishes);
  } catch (const Error&) {
    return {};
  }
}

void expect_sound(const Plan& plan, const ModelShape& model, const Hardware& hardware,
                  const Wishes& wishes) {
  EXPECT_LE(plan.price.vram.total(), plan.vram_budget);
  EXPECT_LE(plan.vram_budget, hardware.vram_free);
  EXPECT_LE(plan.price.host.total(), hardware.ram_free);
  EXPECT_LE(plan.price.vram.slots, plan.expert_budget);
  ASSERT_EQ(plan.layers.size(), model.layers.size());
  // The plan's own numbers are those that the pricing function gives an allocator.
  Placement place{plan.n_gpu_layers, {}, hardware.vram_overhead};
  int64_t n_slots = 0;
  for (const LayerPlan& layer : plan.layers) {
    place.n_slots.push_back(layer.n_slots);
    n_slots += layer.n_slots;
  }
  const Price again = price(model, plan.work, place);
  EXPECT_EQ(again.vram.total(), plan.price.vram.total());
  EXPECT_EQ(again.host.total(), plan.price.host.total());
  // Every trunk byte is in exactly one place, and experts are booked to none.
  uint64_t trunk = 0;
  for (const LayerShape& layer : model.layers) trunk += layer.trunk_bytes;
  EXPECT_EQ(plan.price.vram.trunk + plan.price.host.trunk, trunk);
  EXPECT_EQ(plan.price.vram.output + plan.price.host.output, model.output_bytes);

  EXPECT_TRUE(plan.forecast().possible);
  for (const Forecast& f : plan.forecasts) {
    EXPECT_EQ(f.possible, f.obstacle.empty());
    if (f.possible) {
      EXPECT_LE(f.speed.decode, plan.forecast().speed.decode);
    }
  }
  if (wishes.n_slots) {
    EXPECT_EQ(n_slots, *wishes.n_slots);
  }
  if (wishes.n_gpu_layers) {
    EXPECT_EQ(plan.n_gpu_layers,
              plan.vram_budget ? std::min(*wishes.n_gpu_layers, model.n_layers()) : 0);
  }
  if (wishes.n_ctx) {
    EXPECT_EQ(plan.work.n_ctx, wishes.n_ctx);
  }
}

TEST(PlannerProperty, NeverPassesABudgetAndObeysTheWishes) {
  int n_plans = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    const ModelShape model = random_shape(random);
    const Hardware hardware = random_hardware(random);
    const Wishes wishes = random_wishes(random, model);
    const auto plan = try_plan(model, hardware, wishes);
    if (!plan) continue;
    ++n_plans;
    SCOPED_TRACE(seed);
    expect_sound(*plan, model, hardware, wishes);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(n_plans, 1500);
}

bool same(const Plan& a, const Plan& b) {
  if (a.mode != b.mode || a.n_gpu_layers != b.n_gpu_layers || a.reason != b.reason ||
      a.concessions != b.concessions || a.price.vram.total() != b.price.vram.total()) {
    return false;
  }
  for (size_t i = 0; i < a.layers.size(); ++i) {
    if (a.layers[i].n_slots != b.layers[i].n_slots) return false;
  }
  return true;
}

TEST(PlannerProperty, GivesTheSamePlanForTheSameInput) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const ModelShape model = random_shape(random);
    const Hardware hardware = random_hardware(random);
    EXPECT_TRUE(same(make_plan(model, hardware, {}), make_plan(model, hardware, {}))) << seed;
  }
}

// Where the GPU reads all experts of a token in the time that link and CPU read one, a miss is
// never faster than a hit. (With a slower one it can be: CPU and GPU work beside each other, and
// the last hits take more from the one than they give to the other; so does what few experts cost
// besides their bytes.) But what a split of the misses gained may be lost again, since a gain of
// less than kSplitGain is left.
TEST(PlannerProperty, MoreVramIsNeverSlowerAndNeverHasFewerSlots) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const ModelShape model = random_shape(random);
    Hardware hardware = random_hardware(random);
    const bool counts_slots = seed % 3 > 0;
    if (counts_slots) hardware.experts_us = 0.0;
    hardware.gpu_gbps = std::max(
        hardware.gpu_gbps, model.n_experts_used * std::max(hardware.cpu_gbps, hardware.link_gbps));
    double decode = 0.0;
    int64_t n_slots = 0;
    std::vector<LayerPlan> layers;
    for (uint64_t mib = 0; mib <= 8192; mib += 128) {
      hardware.vram_free = mib * kMiB;
      const Plan plan = make_plan(model, hardware, {.prefill_chunk = 512});
      const Forecast& f = plan.forecast();
      ASSERT_GE(kSplitGain * f.speed.decode, (1.0 - 1e-9) * decode)
          << "seed " << seed << " at " << mib << " MiB";
      if (counts_slots) {
        ASSERT_GE(f.n_slots, n_slots) << "seed " << seed << " at " << mib << " MiB";
      }
      for (size_t i = 0; counts_slots && i < layers.size(); ++i) {
        ASSERT_GE(plan.layers[i].n_slots, layers[i].n_slots) << "seed " << seed << " layer " << i;
      }
      decode = std::max(decode, f.speed.decode);
      n_slots = f.n_slots;
      layers = plan.layers;
    }
  }
}

// The same seventeen shares of misses are weighed whatever the rates, but one that gains less than
// kSplitGain is left. (A chunk that nobody asked for may become wider, and cost decoding up to
// kChunkLoss.)
TEST(PlannerProperty, AFasterPartIsNeverSlower) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const ModelShape model = random_shape(random);
    const Hardware slow = random_hardware(random);
    const Wishes wishes{.prefill_chunk = 512};
    const double before = make_plan(model, slow, wishes).forecast().speed.decode;
    for (double Hardware::*rate :
         {&Hardware::gpu_gbps, &Hardware::cpu_gbps, &Hardware::link_gbps}) {
      Hardware fast = slow;
      fast.*rate *= 1.5;
      const Plan plan = make_plan(model, fast, wishes);
      EXPECT_GE(kSplitGain * plan.forecast().speed.decode, (1.0 - 1e-9) * before) << seed;
    }
  }
}

}  // namespace
}  // namespace sluice::policy::planner_test
