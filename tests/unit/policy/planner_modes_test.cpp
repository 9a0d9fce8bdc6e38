// Which way of running the planner chooses, where experts that are not in VRAM may be computed on
// either side.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/plan/planner.h"
#include "policy/plan/planner_cache.h"
#include "unit/policy/planner_shapes.h"

namespace sluice::policy::planner_test {
namespace {

std::string moe_refusal(const Hardware& hardware, const Wishes& wishes) {
  return error_of(Errc::out_of_memory, [&] { make_plan(qwen3_30b(), hardware, wishes); });
}

TEST(PlannerModes, StreamsOnlyExpertsThatTheGpuCanRead) {
  Wishes wishes;
  wishes.prefill_chunk = 512;
  wishes.moe = MoeWish::gpu;
  Hardware h = desktop();
  const PinnedBytes pinned = make_plan(qwen3_30b(), h, wishes).price.pinned;
  EXPECT_EQ(pinned.experts, qwen3_30b().expert_bytes());
  h.pin_limit = pinned.total() - pinned.foresight;
  EXPECT_EQ(make_plan(qwen3_30b(), h, wishes).mode, Mode::streamed);
  --h.pin_limit;
  EXPECT_TRUE(says(moe_refusal(h, wishes),
                   {"all resident needs 18.", "12.0 GiB are free",
                    "streamed needs 16.4 GiB of RAM that the GPU can read where 16.4 GiB"}));
  wishes.n_cpu_moe = 1;  // the GPU computes them all or none
  EXPECT_TRUE(
      says(moe_refusal(desktop(), wishes), {"GPU experts, streamed is excluded: --n-cpu-moe"}));
}

TEST(PlannerModes, StreamsWithoutASingleSlotWhereOnlyTheTrunkFits) {
  Wishes wishes;
  wishes.n_ctx = 4096;
  Hardware h = desktop();
  h.link_gbps = 100.0;  // beyond the CPU's 60, so that it pays
  h.vram_free = price(qwen3_30b(), {.n_ctx = 4096}, {48, std::vector<int>(48)}).vram.total();
  const Plan plan = make_plan(qwen3_30b(), h, wishes);
  EXPECT_EQ(plan.mode, Mode::streamed);
  EXPECT_EQ(plan.forecast().n_slots, 0);
  EXPECT_EQ(plan.concessions, (std::vector<std::string>{"only 0 of 6144 experts in VRAM"}));
  EXPECT_TRUE(says(plan.forecast(Mode::expert_cache).obstacle, {"room for 0 experts"}));
}

// Qwen3-32B in Q4_K: 64 layers of 5120, each with a network of 25600.
ModelShape qwen3_32b() {
  ModelShape m = qwen3_30b();
  m.architecture = "qwen3", m.is_dense = true, m.n_experts_used = 1;
  m.d_model = 5120, m.d_ff = 25600;
  const uint64_t n = uint64_t{3} * 5120 * 25600;
  const LayerShape layer{.trunk_bytes = uint64_t{5120} * 18432 / 256 * 144,
                         .trunk_elems = uint64_t{5120} * 18432,
                         .n_kv_heads = 8,
                         .k_head_dim = 128,
                         .v_head_dim = 128,
                         .n_experts = 1,
                         .expert_bytes = n / 256 * 144,
                         .expert_elems = n};
  m.layers.assign(64, layer);
  return m;
}

// Layers of a dense model have their network in VRAM or not; half of them there is better than
// none.
TEST(PlannerModes, KeepsAsManyNetworksOfADenseModelAsThereIsRoomFor) {
  Wishes wishes;
  wishes.n_ctx = 4096;
  const ModelShape model = qwen3_32b();
  const Plan plan = make_plan(model, desktop(), wishes);
  EXPECT_EQ(plan.mode, Mode::expert_cache);
  const int64_t n_slots = plan.forecast().n_slots;
  EXPECT_GT(n_slots, 20);
  EXPECT_LT(n_slots, 64);
  EXPECT_NEAR(plan.forecast().speed.hit_rate, static_cast<double>(n_slots) / 64, 1e-9);
  EXPECT_EQ(plan.concessions,
            (std::vector<std::string>{cat("only ", n_slots, " of 64 networks in VRAM")}));
  const CacheOptions cache = cache_options(plan, model, desktop(), PolicyKind::mixture);
  for (size_t i = 0; i < cache.layers.size(); ++i) {  // where it is, it stays
    EXPECT_EQ(cache.layers[i].pinned, cache.layers[i].n_slots == 1) << "layer " << i;
  }
  Hardware small = desktop();
  small.vram_free = price(model, plan.work, {64, std::vector<int>(64)}).vram.total();
  const Plan none = make_plan(model, small, wishes);
  EXPECT_TRUE(says(none.forecast(Mode::expert_cache).obstacle, {"room for 0 experts"}));
}

TEST(PlannerModes, SplitsMissesOnlyWhereThatGains) {
  Wishes wishes;
  wishes.moe = MoeWish::cache;
  Hardware h = desktop();
  h.link_gbps = h.cpu_gbps = 50.0;
  h.copy_interference = 0.0;
  h.vram_free = 6 * kGiB;
  const Plan split = make_plan(qwen3_30b(), h, wishes);
  EXPECT_NEAR(split.link_share, 0.5, 0.1) << "link and CPU are as fast";
  EXPECT_EQ(split.forecast().link_share, split.link_share);
  EXPECT_EQ(split.holding, HostHolding::registered);
  // Without the split it would be slower.
  Placement place{48, {}};
  for (const LayerPlan& layer : split.layers) place.n_slots.push_back(layer.n_slots);
  EXPECT_GT(split.forecast().speed.decode,
            1.05 * predict(qwen3_30b(), h, split.work, place, LocalityCurve::typical()).decode);
  h.pin_limit = kGiB;  // the GPU cannot read all of them
  EXPECT_EQ(make_plan(qwen3_30b(), h, wishes).link_share, 0.0);
  h.link_gbps = 5.0;
  h.cpu_gbps = 60.0;
  h.pin_limit = desktop().pin_limit;
  EXPECT_EQ(make_plan(qwen3_30b(), h, wishes).link_share, 0.0);
}

// The rates alone say what link and CPU have in common, not what either takes to begin: by them
// 0.315 is the share of the H200 in forecast_h200_test.cpp, and none of two misses is read with it;
// one of them is with 0.35, which was 8 % faster than what was chosen.
TEST(PlannerModes, SplitsMissesAsThePredictionIsFastest) {
  Wishes wishes;
  wishes.moe = MoeWish::cache;
  int n_split = 0;
  for (const double link : {6.0, 12.0, 25.0, 52.0}) {
    for (const double cpu : {30.0, 60.0, 114.0}) {
      for (const uint64_t gib : {4, 5, 8, 12}) {
        Hardware h = desktop();
        h.vram_free = gib * kGiB;
        h.link_gbps = link;
        h.cpu_gbps = cpu;
        const Plan plan = make_plan(qwen3_30b(), h, wishes);
        Placement place{plan.n_gpu_layers, {}, h.vram_overhead};
        for (const LayerPlan& layer : plan.layers) place.n_slots.push_back(layer.n_slots);
        SCOPED_TRACE(testing::Message()
                     << gib << " GiB, link " << link << ", CPU " << cpu << " GB/s");
        const auto with = [&](double share) {
          place.link_share = share;
          return predict(qwen3_30b(), h, plan.work, place, LocalityCurve::typical()).decode;
        };
        const double decode = plan.forecast().speed.decode;
        const bool splits = plan.link_share > 0.0;
        if (splits) {
          EXPECT_GT(decode, kSplitGain * with(0.0)) << plan.link_share;
        }
        for (int percent = 0; percent < 100; ++percent) {
          EXPECT_LE(with(0.01 * percent), 1.005 * (splits ? 1.0 : kSplitGain) * decode)
              << 0.01 * percent << ", not " << plan.link_share;
        }
        n_split += splits;
      }
    }
  }
  EXPECT_GT(n_split, 0);
}

// A laptop to a server; every combination of what they differ in.
TEST(PlannerModes, ChoosesTheFastestPossibleModeOnAGridOfMachines) {
  int n_chosen[kModes] = {};
  for (const uint64_t gib : {0, 2, 6, 12, 32}) {
    for (const double link : {3.0, 12.0, 25.0, 60.0}) {
      for (const double cpu : {15.0, 60.0, 200.0}) {
        for (const double interference : {0.0, 0.4, 0.96}) {
          Hardware h = desktop();
          h.vram_free = gib * kGiB;
          h.link_gbps = link;
          h.cpu_gbps = cpu;
          h.copy_interference = interference;
          const Plan plan = make_plan(qwen3_30b(), h, {});
          SCOPED_TRACE(cat(gib, " GiB, link ", link, ", CPU ", cpu, " GB/s, ", interference));
          EXPECT_TRUE(plan.forecast().possible);
          EXPECT_EQ(plan.link_share, plan.forecast().link_share);
          for (const Forecast& f : plan.forecasts) {
            if (!f.possible) continue;
            EXPECT_LE(f.speed.decode, plan.forecast().speed.decode);
          }
          ++n_chosen[static_cast<size_t>(plan.mode)];
        }
      }
    }
  }
  for (const Mode mode : {Mode::all_resident, Mode::expert_cache, Mode::streamed, Mode::cpu_only}) {
    EXPECT_GT(n_chosen[static_cast<size_t>(mode)], 0) << mode_name(mode);
  }
}

}  // namespace
}  // namespace sluice::policy::planner_test
