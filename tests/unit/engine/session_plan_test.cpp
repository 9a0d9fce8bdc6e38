// The one plan: what a session uses is what is planned, memory counts once, and what was measured
// is found again under everything that changes it.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/session_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "base/units.h"
#include "engine/machine/profile_file.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

struct SessionPlanned : testing::Test {
  SessionPlanned() {
    const policy::ModelShape shape = model.shape();
    const policy::Workload work{.n_ctx = 64, .prefill_chunk = 32};
    DeviceOptions& d = options.device;
    d.kind = DeviceKind::sim;
    d.sim.machine.vram_free =
        policy::price(shape, work, {2, {0, 0}, 0, 0.0}).vram.total() + shape.expert_bytes() / 2;
    d.sim.machine.link_gbps = 10.0;
    d.n_gpu_layers = 2;
    d.n_cpu_moe = 1;  // or all would be resident
    d.machine_path = dir / "machine";
    d.least_measured_bytes = 0;
  }

  SessionPlan plan(int n_threads = 2, uint64_t held_bytes = 0) const {
    return plan_session(
        {.file = file, .options = options, .n_threads = n_threads, .held_bytes = held_bytes});
  }
  SessionPlan plan_with(WeightMemory weights) const {
    return plan_session({.file = file, .options = options, .n_threads = 2, .weights = weights});
  }

  // The CPU as fast as the device: a cache is hardly better than none.
  void keep_rates(int n_threads) {
    MachineRates rates = unmeasured_rates();
    rates.link_gbps = rates.cpu_gbps = rates.gpu_gbps = 10.0;
    rates.handshake_us = 0.1;
    const Machine machine = described_machine(options.device, n_threads, 0);
    const DeviceRates known{device_name(options.device, machine), n_threads, rates};
    ASSERT_EQ(keep_measured(options.device.machine_path, known), "");
  }

  OpenModel model{"qwen3moe", "Q8_0"};
  gguf::ModelFile file = gguf::ModelFile::open(model.path());
  TempDir dir;
  SessionOptions options{.n_ctx = 64, .prefill_chunk = 32};
};

TEST_F(SessionPlanned, AContextThatNobodyAskedForIsTheSessions) {
  options.n_ctx = 0;
  options.device = {};
  const Session session(Model::load(model.path(), {.n_threads = 1}), options);
  EXPECT_EQ(plan().plan().work.n_ctx, session.n_ctx());
  EXPECT_EQ(policy::default_context(100'000), 4096);
  EXPECT_EQ(policy::default_context(512), 512);
}

TEST_F(SessionPlanned, WhatWasTriedIsKeptForTheNextStart) {
  keep_rates(2);
  ASSERT_TRUE(plan().needs_trials());
  const Model loaded = Model::load(model.path(), {.n_threads = 2});
  const std::string mode = Session(loaded, options).placement().mode_key;
  const SessionPlan known = plan();
  EXPECT_FALSE(known.needs_trials());
  EXPECT_EQ(policy::mode_key(known.plan().mode), mode) << "what runs is what is shown";
  for (const PlannedWay& way : known.ways)
    EXPECT_LE(way.measured, known.ways[known.chosen].measured);
  const std::string kept = gguf::test::read_file(options.device.machine_path);
  EXPECT_EQ(Session(loaded, options).placement().mode_key, mode);
  EXPECT_EQ(gguf::test::read_file(options.device.machine_path), kept) << "nothing is tried again";

  // Other threads: other rates, other trials; and these are still there afterwards.
  keep_rates(1);
  EXPECT_TRUE(plan(1).needs_trials());
  Session(Model::load(model.path(), {.n_threads = 1}), options);
  EXPECT_FALSE(plan(1).needs_trials());
  EXPECT_FALSE(plan(2).needs_trials());
}

TEST_F(SessionPlanned, AHeldLinkIsTheSlowerOfTheTwo) {
  options.device.sim.machine.link_gbps = 10.0;
  for (const auto& [held, expected] : {std::pair{0.0, 10.0}, {6.5, 6.5}, {20.0, 10.0}}) {
    options.device.held_link_gbps = held;
    EXPECT_EQ(plan().machine.link_gbps, expected);
  }
}

// Rates are the same for all, so that plans differ by no more than what was changed.
TEST_F(SessionPlanned, ATrialCountsForNothingThatWouldChangeIt) {
  std::set<std::string> seen;
  const auto expect_new = [&](const SessionPlan& planned, const std::string& what) {
    for (const PlannedWay& way : planned.ways) {
      const std::string key = cat(policy::mode_key(way.plan.mode), " ", way.trial_key);
      EXPECT_TRUE(seen.insert(key).second) << what << ": " << key;
    }
  };
  keep_rates(1);
  keep_rates(2);
  expect_new(plan(), "usual");
  expect_new(plan(1), "threads");
  expect_new(plan_session({.file = file, .options = options, .n_threads = 2, .n_sequences = 2}),
             "sequences");
  const OpenModel other("qwen3moe", "Q4_0");  // of the same name
  expect_new(plan_session({.file = other.file(), .options = options, .n_threads = 2}), "model");
  const SessionOptions usual = options;
  const std::vector<std::pair<const char*, std::function<void(SessionOptions&)>>> changes = {
      {"context", [](auto& o) { o.n_ctx = 128; }},
      {"K", [](auto& o) { o.k_type = KvType::f32; }},
      {"V", [](auto& o) { o.v_type = KvType::f32; }},
      {"chunk", [](auto& o) { o.prefill_chunk = 16; }},
      {"link", [](auto& o) { o.device.sim.machine.link_gbps = 11.0; }},
      {"VRAM", [](auto& o) { o.device.sim.machine.vram_free += 100'000; }},
      {"layers", [](auto& o) { o.device.n_gpu_layers = 1; }},
      {"2 slots", [](auto& o) { o.device.n_slots = 2; }},
      {"3 slots", [](auto& o) { o.device.n_slots = 3; }},
      {"policy", [](auto& o) { o.device.cache_policy = "lru"; }},
      {"prefetch", [](auto& o) { o.device.prefetch = Choice::on; }},
      {"link share", [](auto& o) { o.device.link_share = 0.25; }},
      {"held link", [](auto& o) { o.device.held_link_gbps = 0.25; }},
      {"segmented", [](auto& o) { o.device.is_segmented = true; }},
  };
  for (const auto& [what, change] : changes) {
    options = usual;
    change(options);
    keep_rates(2);
    expect_new(plan(), what);
  }
}

TEST_F(SessionPlanned, ATrialOfMappedWeightsSaysNothingOfCopiedOnes) {
  keep_rates(2);
  const auto load = [&](WeightMemory weights) {
    return Model::load(model.path(), {.n_threads = 2, .weights = weights});
  };
  Session(load(WeightMemory::mapped), options);
  EXPECT_TRUE(plan_with(WeightMemory::copied).needs_trials());
  EXPECT_FALSE(plan_with(WeightMemory::mapped).needs_trials());
  EXPECT_FALSE(plan().needs_trials()) << "where nothing is loaded, either counts";
  Session(load(WeightMemory::copied), options);
  EXPECT_FALSE(plan_with(WeightMemory::copied).needs_trials());
  const SessionPlan any = plan(), copied = plan_with(WeightMemory::copied);
  ASSERT_EQ(any.ways.size(), copied.ways.size());
  for (size_t i = 0; i < any.ways.size(); ++i) {
    EXPECT_EQ(any.ways[i].measured, copied.ways[i].measured) << "copied ones go first";
  }
}

// One function for all sessions: what `plan` shows is what a session on the CPU expects.
TEST_F(SessionPlanned, ASessionOnTheCpuIsPlannedToo) {
  options.device = {};
  options.device.machine_path = dir / "machine";
  MachineRates rates = unmeasured_rates();
  rates.cpu_gbps = 5.0, rates.cpu_gops = 70.0, rates.cpu_kv_gbps = 2.0;
  const std::string own = model_key(model.shape().name, file.file_bytes());
  EXPECT_EQ(keep_measured(dir / "machine", ModelRates{own, 2, rates}), "");
  const Model loaded = Model::load(model.path(), {.n_threads = 2});
  const PlacementInfo placement = Session(loaded, options).placement();
  const policy::Speed planned = plan().plan().forecast().speed;
  EXPECT_EQ(placement.predicted_decode, planned.decode);
  EXPECT_EQ(placement.predicted_prefill, planned.prefill);
  EXPECT_EQ(placement.mode, "") << "there is no device";
}

TEST_F(SessionPlanned, MemoryThatIsShortMayBeAWarning) {
  options.device.sim.is_virtual = true;
  options.device.sim.machine.ram_free = 1;
  const auto planned = [&](bool must_fit) {
    return plan_session({.file = file, .options = options, .n_threads = 2, .must_fit = must_fit});
  };
  expect_contains(error_of(Errc::out_of_memory, [&] { planned(true); }), "of RAM where");
  const SessionPlan tight = planned(false);
  ASSERT_EQ(tight.warnings.size(), 1u);
  expect_contains(tight.warnings[0], "memory is short: ");
  EXPECT_GT(tight.plan().forecast().speed.decode, 0.0);
}

// A session plans after its weights were copied: what these took is not asked for again.
TEST_F(SessionPlanned, WeightsInMemoryAreCountedOnce) {
  options.device.machine_path = "";
  constexpr uint64_t kHeld = uint64_t{1} << 50;  // far more than anything else takes meanwhile
  EXPECT_GE(plan(2, kHeld).machine.ram_free, kHeld);
  EXPECT_LT(plan(2).machine.ram_free, kHeld);
  // A described machine has what was said, loaded or not: room for the model once is enough.
  options.device.moe = ExpertPlace::cpu;
  options.device.sim.is_virtual = true;
  options.device.sim.machine.ram_free = kGiB;
  const uint64_t needed = plan().plan().price.host.total();
  options.device.sim.machine.ram_free = needed;
  EXPECT_EQ(plan(2, kHeld).machine.ram_free, needed);
  const Model copied = Model::load(model.path(), {.n_threads = 1, .weights = WeightMemory::copied});
  EXPECT_EQ(Session(copied, options).placement().mode_key, "cpu_experts");
  options.device.sim.machine.ram_free = needed - 1;
  expect_contains(error_of(Errc::out_of_memory, [&] { Session(copied, options); }), "of RAM where");
}

TEST_F(SessionPlanned, AProfileTakesThePlaceOfTheAssumedLocality) {
  options.device.profile_path = dir / "profile";
  expect_contains(plan().locality_source, "assumed");
  const policy::ModelShape shape = model.shape();
  const int n_experts = shape.layers[0].n_experts;
  std::vector<uint32_t> uses(static_cast<size_t>(shape.n_layers() * n_experts), 1);
  uses[0] = 1000;
  const auto keep = [&](uint64_t n_steps) {
    policy::RoutingProfile profile(shape.n_layers(), n_experts);
    profile.add_run(uses, n_steps);
    ProfileFile::save(options.device.profile_path, profile);
  };
  keep(100);
  expect_contains(plan().locality_source, "assumed");
  keep(1000);
  expect_contains(plan().locality_source, "measured: this model's profile of 1000 tokens");
  Session session(Model::load(model.path(), {.n_threads = 1}), options);
  EXPECT_EQ(session.placement().locality, plan().locality_source);
}

TEST_F(SessionPlanned, RatesOfThisModelGoBeforeThoseOfOthers) {
  options.device = {};
  options.device.machine_path = dir / "machine";
  const std::string own = model_key(model.shape().name, file.file_bytes());
  EXPECT_TRUE(plan().machine.cpu_source.starts_with("estimated"));
  MachineRates rates = unmeasured_rates();
  rates.cpu_gbps = 5.0, rates.cpu_gops = 70.0, rates.cpu_kv_gbps = 2.0;
  EXPECT_EQ(keep_measured(dir / "machine", ModelRates{own, 2, rates}), "");
  rates.cpu_gbps = 6.0, rates.cpu_gops = 80.0, rates.cpu_kv_gbps = 3.0;
  EXPECT_EQ(keep_measured(dir / "machine", ModelRates{"other, 9 bytes", 2, rates}), "");
  EXPECT_EQ(plan().machine.cpu_gbps, 5.0);
  EXPECT_EQ(plan().machine.cpu_gops, 70.0);
  EXPECT_EQ(plan().machine.cpu_kv_gbps, 2.0);
  EXPECT_EQ(plan().machine.cpu_source, "measured");
  EXPECT_TRUE(plan(1).machine.cpu_source.starts_with("estimated")) << "with other threads";
  EXPECT_EQ(this_machine(2, dir / "machine").cpu_gbps, 6.0);
}

}  // namespace
}  // namespace sluice::engine::test
