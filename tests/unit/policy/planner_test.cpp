// The planner: what it chooses, what it gives up and in which order, which wishes it obeys, and
// what it refuses.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/planner.h"

#include <gtest/gtest.h>

#include "unit/policy/planner_shapes.h"

namespace sluice::policy::planner_test {
namespace {

std::string refusal(const ModelShape& model, const Hardware& hardware, const Wishes& wishes,
                    Errc code = Errc::out_of_memory) {
  return error_of(code, [&] { make_plan(model, hardware, wishes); });
}

int64_t total_slots(const Plan& plan) {
  int64_t n = 0;
  for (const LayerPlan& layer : plan.layers) n += layer.n_slots;
  return n;
}

std::vector<int> pinned_layers(const Plan& plan) {
  std::vector<int> out;
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    if (plan.layers[i].pinned) out.push_back(static_cast<int>(i));
  }
  return out;
}

TEST(Planner, PutsTheWholeTrunkOfQwen3Into12GiBAndTellsTheExpertBudget) {
  const ModelShape model = qwen3_30b();
  const Plan plan = make_plan(model, desktop(), {});
  EXPECT_EQ(plan.mode, Mode::expert_cache);
  EXPECT_EQ(plan.n_gpu_layers, 48);
  EXPECT_EQ(plan.work.n_ctx, 4096);
  // q and out 4,718,592 each, k and v 589,824 each, router and norms 1,065,984: 11,682,816; in 24
  // of the layers v is Q6_K, 860,160.
  EXPECT_EQ(plan.price.vram.trunk, 24u * 11'682'816 + 24u * 11'953'152);
  EXPECT_EQ(plan.price.vram.kv, 48u * 8'388'608);
  EXPECT_EQ(plan.price.vram.output, 255'260'672u);
  const VramBytes& v = plan.price.vram;
  EXPECT_EQ(plan.expert_budget, 12 * kGiB - (v.total() - v.slots));
  EXPECT_EQ(v.tables, 8u * 48 * 128 + landing_bytes(48));
  EXPECT_EQ(v.staging, 8u * 3'059'712);
  EXPECT_GT(plan.expert_budget, 9 * kGiB);
  EXPECT_LE(v.slots, plan.expert_budget);
  EXPECT_GT(v.slots + 3'059'712, plan.expert_budget);  // not even one more slot would fit

  // Two size classes of 24 layers with equal shares, give or take the last round.
  ASSERT_EQ(plan.classes.size(), 2u);
  EXPECT_EQ(plan.classes[0].slot_bytes, 2'654'208u);
  EXPECT_EQ(plan.classes[1].slot_bytes, 3'059'712u);
  EXPECT_EQ(plan.classes[0].n_experts, 24 * 128);
  EXPECT_NEAR(static_cast<double>(plan.classes[0].n_slots),
              static_cast<double>(plan.classes[1].n_slots), 24.0);
  EXPECT_EQ(plan.classes[0].n_slots + plan.classes[1].n_slots, total_slots(plan));
  for (const LayerPlan& layer : plan.layers) EXPECT_TRUE(layer.on_gpu);

  EXPECT_EQ(plan.holding, HostHolding::registered);
  EXPECT_EQ(plan.held_bytes, model.expert_bytes());
}

TEST(Planner, SaysWhatEveryModeWouldCostAndWhyItChose) {
  const Plan plan = make_plan(qwen3_30b(), desktop(), {});
  for (size_t i = 0; i < plan.forecasts.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(plan.forecasts[i].mode), i);
    EXPECT_GT(plan.forecasts[i].speed.decode, 0.0);
    EXPECT_GT(plan.forecasts[i].speed.prefill, 0.0);
  }
  const Forecast& resident = plan.forecast(Mode::all_resident);
  EXPECT_FALSE(resident.possible);
  EXPECT_TRUE(says(resident.obstacle, {"needs 18.", "GiB of VRAM where 12.0 GiB are free"}));
  const Forecast& cache = plan.forecast(Mode::expert_cache);
  const Forecast& streamed = plan.forecast(Mode::streamed);
  const Forecast& cpu_experts = plan.forecast(Mode::cpu_experts);
  const Forecast& cpu_only = plan.forecast(Mode::cpu_only);
  EXPECT_TRUE(streamed.possible && cpu_experts.possible && cpu_only.possible);
  // The same slots; a miss takes 2.86 MB at 25 GB/s of link in place of 18 us and 60 GB/s of CPU.
  EXPECT_EQ(streamed.n_slots, cache.n_slots);
  EXPECT_GT(cache.speed.decode, streamed.speed.decode);
  EXPECT_GT(streamed.speed.decode, cpu_experts.speed.decode);
  EXPECT_GT(cpu_experts.speed.decode, cpu_only.speed.decode);
  EXPECT_TRUE(
      says(plan.reason, {"times as fast as GPU experts, streamed", "all resident needs 18."}));
}

TEST(Planner, KeepsEverythingInVramThatHasRoomForIt) {
  Hardware h = desktop();
  h.vram_free = 24 * kGiB;
  const Plan plan = make_plan(qwen3_30b(), h, {});
  EXPECT_EQ(plan.mode, Mode::all_resident);
  EXPECT_EQ(plan.work.n_ctx, 4096);
  EXPECT_EQ(total_slots(plan), 48 * 128);
  EXPECT_EQ(plan.price.host.experts, 0u);
  EXPECT_EQ(plan.holding, HostHolding::pageable);
  EXPECT_TRUE(plan.concessions.empty());
}

TEST(Planner, RunsOnTheCpuAloneWithoutAGpu) {
  const Plan plan = make_plan(qwen3_30b(), without_gpu(), {});
  EXPECT_EQ(plan.mode, Mode::cpu_only);
  EXPECT_EQ(plan.price.vram.total(), 0u);
  EXPECT_EQ(plan.work.n_ctx, 4096);
  EXPECT_EQ(plan.holding, HostHolding::pageable);
  EXPECT_EQ(plan.reason, "no other way is possible");
  EXPECT_EQ(plan.forecast(Mode::expert_cache).obstacle, "is excluded: there is no GPU");
}

// From 24 GiB down, each concession comes after the one before it and never goes away again.
TEST(Planner, GivesUpKvPrecisionThenSlotsThenAllSlotsThenTrunkLayers) {
  const ModelShape model = qwen3_30b();
  Wishes wishes;
  wishes.prefill_chunk = 512;
  wishes.may_quantise_kv = true;
  const char* const order[] = {"KV cache", "experts in VRAM", "all experts", "trunk layers"};
  std::vector<std::string> seen;
  for (uint64_t mib = 24 * 1024; mib >= 700; mib -= 20) {
    Hardware h = desktop();
    h.vram_free = mib * kMiB;
    const Plan plan = make_plan(model, h, wishes);
    if (plan.mode == Mode::cpu_only) break;
    std::vector<std::string> now;
    for (const char* kind : order) {
      for (const std::string& c : plan.concessions) {
        if (c.find(kind) != std::string::npos) now.emplace_back(kind);
      }
    }
    ASSERT_EQ(now.size(), plan.concessions.size());
    // "all experts" takes the place of "experts in VRAM"; all else only grows.
    if (now != seen && now.size() == seen.size()) {
      EXPECT_EQ(seen.back(), "experts in VRAM");
      EXPECT_EQ(now.back(), "all experts");
    } else if (now != seen) {
      ASSERT_EQ(now.size(), seen.size() + 1) << mib;
      EXPECT_TRUE(std::equal(seen.begin(), seen.end(), now.begin())) << mib;
    }
    seen = now;
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"KV cache", "all experts", "trunk layers"}));
}

TEST(Planner, QuantisesKvOnlyWhereThatIsAllowed) {
  Wishes wishes;
  EXPECT_EQ(make_plan(qwen3_30b(), desktop(), wishes).work.k_type, KvType::f16);
  wishes.may_quantise_kv = true;
  EXPECT_EQ(make_plan(qwen3_30b(), desktop(), wishes).work.k_type, KvType::q8_0);
  Hardware roomy = desktop();
  roomy.vram_free = 80 * kGiB;
  EXPECT_EQ(make_plan(qwen3_30b(), roomy, wishes).work.k_type, KvType::f16);
}

TEST(Planner, PutsTrunkLayersOnTheCpuFromTheFirstWhenTheTrunkDoesNotFit) {
  Hardware h = desktop();
  h.vram_free = 1300 * kMiB;
  const Plan plan = make_plan(qwen3_30b(), h, {});
  EXPECT_EQ(plan.mode, Mode::cpu_experts);
  ASSERT_GT(plan.n_gpu_layers, 0);
  ASSERT_LT(plan.n_gpu_layers, 48);
  EXPECT_FALSE(plan.layers.front().on_gpu);
  EXPECT_TRUE(plan.layers.back().on_gpu);
  // One layer more would not fit.
  const Placement more{plan.n_gpu_layers + 1, std::vector<int>(48)};
  EXPECT_GT(price(qwen3_30b(), plan.work, more).vram.total(), h.vram_free);
  EXPECT_GT(plan.price.host.kv, 0u);
  EXPECT_EQ(total_slots(plan), 0);
}

TEST(Planner, UsesNoMoreVramThanItMay) {
  Wishes wishes;
  wishes.vram_bytes = 8 * kGiB;
  const Plan plan = make_plan(qwen3_30b(), desktop(), wishes);
  EXPECT_EQ(plan.vram_budget, 8 * kGiB);
  EXPECT_LE(plan.price.vram.total(), 8 * kGiB);
  wishes.vram_bytes = 40 * kGiB;
  EXPECT_EQ(make_plan(qwen3_30b(), desktop(), wishes).vram_budget, 12 * kGiB);
  wishes.vram_bytes = 0;
  EXPECT_EQ(make_plan(qwen3_30b(), desktop(), wishes).mode, Mode::cpu_only);
}

TEST(Planner, CountsTheOverheadOfTheMachine) {
  Hardware h = desktop();
  const Plan plan = make_plan(qwen3_30b(), h, {});
  h.vram_overhead = 0;
  const Plan more = make_plan(qwen3_30b(), h, {});
  EXPECT_EQ(more.price.vram.cuda, 0u);
  EXPECT_EQ(more.expert_budget - plan.expert_budget, kCudaBytes);
}

TEST(Planner, ObeysTheWishedMode) {
  Wishes wishes;
  wishes.moe = MoeWish::cpu;
  Plan plan = make_plan(qwen3_30b(), desktop(), wishes);
  EXPECT_EQ(plan.mode, Mode::cpu_experts);
  EXPECT_EQ(total_slots(plan), 0);
  wishes.moe = MoeWish::gpu;
  plan = make_plan(qwen3_30b(), desktop(), wishes);
  EXPECT_EQ(plan.mode, Mode::streamed);
  EXPECT_EQ(plan.link_share, 1.0);
  EXPECT_EQ(plan.forecast(Mode::expert_cache).obstacle, "is excluded: --moe gpu");
  wishes.moe = MoeWish::cache;
  Hardware big = desktop();
  big.vram_free = 80 * kGiB;
  EXPECT_EQ(make_plan(qwen3_30b(), big, wishes).mode, Mode::expert_cache);
  EXPECT_TRUE(
      says(refusal(qwen3_30b(), without_gpu(), wishes), {"there is no GPU", "--moe cache"}));
}

TEST(Planner, PutsAsManyTrunkLayersOnTheGpuAsWished) {
  Wishes wishes;
  wishes.n_gpu_layers = 20;
  const Plan plan = make_plan(qwen3_30b(), desktop(), wishes);
  EXPECT_EQ(plan.n_gpu_layers, 20);
  EXPECT_EQ(plan.mode, Mode::expert_cache);
  EXPECT_EQ(total_slots(plan), 20 * 128);  // all experts of these layers fit
  EXPECT_EQ(plan.layers[27].n_slots, 0);
  EXPECT_EQ(plan.layers[28].n_slots, 128);
  wishes.n_gpu_layers = 99;
  EXPECT_EQ(make_plan(qwen3_30b(), desktop(), wishes).n_gpu_layers, 48);
  wishes.n_gpu_layers = 0;
  EXPECT_EQ(make_plan(qwen3_30b(), desktop(), wishes).mode, Mode::cpu_only);
  wishes.n_gpu_layers = 20;
  EXPECT_TRUE(says(refusal(qwen3_30b(), without_gpu(), wishes), {"no GPU", "excluded: -ngl"}));
}

TEST(Planner, KeepsTheExpertsOfTheFirstLayersOnTheCpuWhereWished) {
  Wishes wishes;
  wishes.n_cpu_moe = 20;
  const Plan plan = make_plan(qwen3_30b(), desktop(), wishes);
  EXPECT_EQ(plan.mode, Mode::expert_cache);
  EXPECT_EQ(plan.n_gpu_layers, 48);
  for (size_t i = 0; i < 48; ++i) EXPECT_EQ(plan.layers[i].n_slots > 0, i >= 20) << i;
  wishes.n_cpu_moe = 99;
  EXPECT_EQ(make_plan(qwen3_30b(), desktop(), wishes).mode, Mode::cpu_experts);
}

TEST(Planner, PinsLayersByCountFromBothEndsThenUpwards) {
  Wishes wishes;
  wishes.n_pinned = 1;
  EXPECT_EQ(pinned_layers(make_plan(qwen3_30b(), desktop(), wishes)), (std::vector<int>{0}));
  wishes.n_pinned = 4;
  const Plan plan = make_plan(qwen3_30b(), desktop(), wishes);
  EXPECT_EQ(pinned_layers(plan), (std::vector<int>{0, 1, 2, 47}));
  for (const int i : {0, 1, 2, 47}) EXPECT_EQ(plan.layers[static_cast<size_t>(i)].n_slots, 128);
  EXPECT_LT(plan.layers[3].n_slots, 128);
  EXPECT_GT(plan.layers[3].n_slots, 0);
  // What is in VRAM for good needs no room in RAM: 4 layers with Q6_K.
  EXPECT_EQ(plan.price.host.experts, qwen3_30b().expert_bytes() - 4u * 128 * 3'059'712);
  wishes.n_pinned = 49;
  EXPECT_TRUE(
      says(refusal(qwen3_30b(), desktop(), wishes, Errc::bad_request), {"49", "48 layers"}));
}

TEST(Planner, CountsPinnedLayersAmongThoseWithExperts) {
  ModelShape model = qwen3_30b();
  model.layers[0].n_experts = 0;
  Wishes wishes;
  wishes.n_pinned = 3;
  EXPECT_EQ(pinned_layers(make_plan(model, desktop(), wishes)), (std::vector<int>{1, 2, 47}));
  wishes.n_pinned = 0;
  wishes.pinned = {0};
  EXPECT_TRUE(says(refusal(model, desktop(), wishes, Errc::bad_request), {"layer 0", "dense"}));
}

TEST(Planner, PinsTheLayersOfAList) {
  Wishes wishes;
  wishes.pinned = {7, 3, 7};
  const Plan plan = make_plan(qwen3_30b(), desktop(), wishes);
  EXPECT_EQ(pinned_layers(plan), (std::vector<int>{3, 7}));
  wishes.moe = MoeWish::cpu;
  EXPECT_EQ(total_slots(make_plan(qwen3_30b(), desktop(), wishes)), 256);
  wishes.pinned = {48};
  EXPECT_TRUE(
      says(refusal(qwen3_30b(), desktop(), wishes, Errc::bad_request), {"layer 48", "0 to 47"}));
  wishes.pinned = {3};
  wishes.n_cpu_moe = 4;
  EXPECT_TRUE(
      says(refusal(qwen3_30b(), desktop(), wishes, Errc::bad_request), {"layer 3", "from 4 on"}));
  wishes.n_cpu_moe = 0;
  EXPECT_TRUE(says(refusal(qwen3_30b(), without_gpu(), wishes, Errc::bad_request), {"a GPU"}));
}

TEST(Planner, RefusesPinnedLayersThatDoNotFit) {
  Wishes wishes;
  wishes.n_pinned = 40;
  EXPECT_TRUE(
      says(refusal(qwen3_30b(), desktop(), wishes),
           {"expert cache needs", "CPU experts needs", "12.0 GiB are free", "--pin-layers"}));
}

TEST(Planner, MakesExactlyTheWishedNumberOfSlots) {
  for (const int64_t n : {1, 47, 48, 49, 1000, 3000}) {
    Wishes wishes;
    wishes.n_slots = n;
    const Plan plan = make_plan(qwen3_30b(), desktop(), wishes);
    EXPECT_EQ(plan.mode, Mode::expert_cache);
    EXPECT_EQ(total_slots(plan), n);
    EXPECT_EQ(plan.classes[0].n_slots + plan.classes[1].n_slots, n);
  }
  Wishes wishes;
  wishes.n_slots = 1000;
  wishes.n_pinned = 2;
  EXPECT_EQ(total_slots(make_plan(qwen3_30b(), desktop(), wishes)), 1000);
  wishes.n_slots = 6000;
  EXPECT_TRUE(says(refusal(qwen3_30b(), desktop(), wishes), {"expert cache needs", "12.0 GiB"}));
  for (const int64_t n : {int64_t{0}, int64_t{255}, int64_t{6145}, int64_t{-1}}) {
    wishes.n_slots = n;
    EXPECT_TRUE(says(refusal(qwen3_30b(), desktop(), wishes, Errc::bad_request), {"256 to 6144"}));
  }
  wishes.n_slots = 1000;
  wishes.moe = MoeWish::cpu;
  EXPECT_TRUE(says(refusal(qwen3_30b(), desktop(), wishes, Errc::bad_request), {"--cache-slots"}));
}

TEST(Planner, HoldsAWishedContextAndRefusesOneThatFitsNowhere) {
  Wishes wishes;
  wishes.n_ctx = 40000;
  const Plan plan = make_plan(qwen3_30b(), desktop(), wishes);
  EXPECT_EQ(plan.work.n_ctx, 40000);
  EXPECT_EQ(plan.price.vram.kv, 48u * 2 * 40000 * 4 * 128 * 2);
  wishes.n_ctx = 2'000'000'000;
  EXPECT_TRUE(says(refusal(qwen3_30b(), desktop(), wishes),
                   {"CPU only needs", "of RAM where 60.0 GiB are free", "-c", "-ctk"}));
}

TEST(Planner, CountsTheKvOfEverySequence) {
  Wishes wishes;
  wishes.n_ctx = 4096;
  wishes.n_sequences = 4;
  EXPECT_EQ(make_plan(qwen3_30b(), desktop(), wishes).price.vram.kv, 4u * 48 * 8'388'608);
}

TEST(Planner, RefusesHostMemoryThatRamDoesNotHave) {
  Hardware h = without_gpu();
  h.ram_free = 8 * kGiB;
  EXPECT_TRUE(
      says(refusal(qwen3_30b(), h, {}), {"CPU only needs 17.", "RAM where 8.00 GiB are free"}));
  // With VRAM for all experts the same RAM is enough.
  h = desktop();
  h.ram_free = 8 * kGiB;
  EXPECT_TRUE(says(refusal(qwen3_30b(), h, {}), {"expert cache needs 16.", "of RAM"}));
  h.vram_free = 24 * kGiB;
  EXPECT_EQ(make_plan(qwen3_30b(), h, {}).mode, Mode::all_resident);
}

TEST(Planner, HoldsHostExpertsAsTheMachineAllows) {
  Hardware h = desktop();
  h.registers_in_place = false;
  Plan plan = make_plan(qwen3_30b(), h, {});
  EXPECT_EQ(plan.holding, HostHolding::pinned);
  h.pin_limit = kGiB;
  plan = make_plan(qwen3_30b(), h, {});
  EXPECT_EQ(plan.held_bytes, plan.price.pinned.experts);
  EXPECT_LE(plan.price.pinned.total(), kGiB);
  EXPECT_GT(plan.price.pinned.total(), kGiB - 400 * kMiB);  // a layer is registered whole
  h.pin_limit = 100 * kMiB;                                 // for steps, but no layer's experts
  EXPECT_EQ(make_plan(qwen3_30b(), h, {}).holding, HostHolding::pageable);
}

TEST(Planner, LeavesAGpuAloneThatCanReadNoRam) {
  Hardware h = desktop();
  h.pin_limit = 0;
  const Plan plan = make_plan(qwen3_30b(), h, {});
  EXPECT_EQ(plan.mode, Mode::cpu_only);
  EXPECT_TRUE(says(plan.reason, {"of RAM that the GPU can read where 0 B are free"}));
}

TEST(Planner, RefusesAKvTypeThatTheHeadsDoNotFit) {
  ModelShape model = qwen3_30b();
  for (LayerShape& layer : model.layers) layer.k_head_dim = layer.v_head_dim = 80;
  Wishes wishes;
  wishes.k_type = KvType::q8_0;
  EXPECT_TRUE(
      says(refusal(model, desktop(), wishes, Errc::bad_request), {"q8_0", "32", "80", "f16"}));
  wishes.k_type = KvType::f16;
  wishes.may_quantise_kv = true;
  EXPECT_EQ(make_plan(model, desktop(), wishes).work.k_type, KvType::f16);
}

// Keys of 128 and values of 80: each is measured by its own type.
TEST(Planner, RefusesAKvTypeThatOnlyOneOfKeysAndValuesDoesNotFit) {
  for (const bool keys_fit : {true, false}) {
    ModelShape model = qwen3_30b();
    LayerShape& odd = model.layers.back();  // in a single layer
    odd.k_head_dim = keys_fit ? 128 : 80;
    odd.v_head_dim = keys_fit ? 80 : 128;
    for (const KvType type : {KvType::q8_0, KvType::q4_0}) {
      Wishes wishes;
      (keys_fit ? wishes.k_type : wishes.v_type) = type;
      EXPECT_NO_THROW(make_plan(model, desktop(), wishes)) << keys_fit;
      (keys_fit ? wishes.v_type : wishes.k_type) = type;
      EXPECT_TRUE(says(refusal(model, desktop(), wishes, Errc::bad_request), {"have 80", "f16"}));
    }
    Wishes wishes;
    wishes.may_quantise_kv = true;
    const Plan plan = make_plan(model, desktop(), wishes);
    EXPECT_EQ(plan.work.k_type, KvType::f16) << keys_fit;
    EXPECT_EQ(plan.work.v_type, KvType::f16) << keys_fit;
  }
}

TEST(Planner, RefusesNumbersThatMakeNoSense) {
  const auto with = [](auto change) {
    Wishes wishes;
    change(wishes);
    return refusal(qwen3_30b(), desktop(), wishes, Errc::bad_request);
  };
  EXPECT_FALSE(with([](Wishes& w) { w.n_ctx = -1; }).empty());
  EXPECT_FALSE(with([](Wishes& w) { w.n_sequences = 0; }).empty());
  EXPECT_FALSE(with([](Wishes& w) { w.n_sequences = 5000; }).empty());
  EXPECT_FALSE(with([](Wishes& w) { w.prefill_chunk = -1; }).empty());
  EXPECT_FALSE(with([](Wishes& w) { w.n_gpu_layers = -1; }).empty());
  EXPECT_FALSE(with([](Wishes& w) { w.n_cpu_moe = -1; }).empty());
  EXPECT_FALSE(with([](Wishes& w) { w.n_pinned = -1; }).empty());
}

TEST(Planner, HoldsTheMtpBlockOnlyWhereWished) {
  ModelShape model = qwen3_30b();
  model.mtp = {model.layers[0]};
  const Plan without = make_plan(model, desktop(), {});
  Wishes wishes;
  wishes.mtp = true;
  const Plan with = make_plan(model, desktop(), wishes);
  EXPECT_EQ(without.layers.size(), 48u);
  EXPECT_EQ(with.layers.size(), 49u);
  EXPECT_EQ(with.price.vram.trunk - without.price.vram.trunk, model.mtp[0].trunk_bytes);
  EXPECT_EQ(with.price.host.experts - without.price.host.experts, 128u * 3'059'712);
}

TEST(Planner, PlansADenseModelToo) {
  ModelShape model = qwen3_30b();
  for (LayerShape& layer : model.layers) layer.n_experts = 0;
  EXPECT_EQ(make_plan(model, desktop(), {}).mode, Mode::all_resident);
  Hardware h = desktop();
  h.vram_free = 1200 * kMiB;
  EXPECT_EQ(make_plan(model, h, {}).mode, Mode::cpu_experts);
}

TEST(Planner, FollowsTheLocalityItIsGiven) {
  const LocalityCurve none({{0.99, 0.0}});
  const LocalityCurve perfect({{0.01, 1.0}});
  const double slow = make_plan(qwen3_30b(), desktop(), {}, none).forecast().speed.decode;
  const double fast = make_plan(qwen3_30b(), desktop(), {}, perfect).forecast().speed.decode;
  EXPECT_GT(fast, 3.0 * slow);
}

}  // namespace
}  // namespace sluice::policy::planner_test
