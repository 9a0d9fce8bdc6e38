// Sessions on a device, through the public interface: the same logits as on the CPU alone for every
// wish, what a session says about its placement, the profile between two runs, and faults at the
// start.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>

#include "policy/plan/pricing_speed.h"
#include "sluice/sluice.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

struct DeviceSession : testing::Test {
  DeviceSession() : model(Model::load(file.path(), {.n_threads = 2})) {}

  // A device that has room for so much of the experts, and for all else.
  DeviceOptions device(double share, int chunk = 32) const {
    return device_for(file.shape(), share, chunk);
  }
  static DeviceOptions device_for(const policy::ModelShape& shape, double share, int chunk) {
    const policy::Workload work{.n_ctx = 64, .prefill_chunk = chunk};
    const policy::Placement none{shape.n_layers(), std::vector<int>(shape.layers.size()), 0, 0.0};
    DeviceOptions d;
    d.kind = DeviceKind::sim;
    d.sim.machine.vram_free =
        policy::price(shape, work, none).vram.total() +
        static_cast<uint64_t>(share * static_cast<double>(shape.expert_bytes()));
    d.sim.machine.link_gbps = 10.0;
    d.moe = ExpertPlace::cache;
    return d;
  }

  Logits run(const DeviceOptions& d, int chunk = 8) {
    Session session(model, {.n_ctx = 64, .prefill_chunk = chunk, .device = d});
    return append(session);
  }

  static Logits append(Session& session) {
    Logits all;
    session.append(random_tokens(40, 1), [&](int, std::span<const float> logits) {
      all.insert(all.end(), logits.begin(), logits.end());
    });
    return all;
  }

  OpenModel file{"qwen3moe", "Q8_0"};
  Model model;
};

TEST_F(DeviceSession, GivesTheLogitsOfTheCpuForEveryWish) {
  const Logits expected = run({});
  std::vector<DeviceOptions> all;
  for (const ExpertPlace moe :
       {ExpertPlace::automatic, ExpertPlace::cache, ExpertPlace::cpu, ExpertPlace::gpu}) {
    all.push_back(device(0.4));
    all.back().moe = moe;
  }
  all.push_back(device(0.4)), all.back().is_segmented = true;
  all.push_back(device(0.4)), all.back().prefetch = Choice::on;
  all.push_back(device(0.4)), all.back().link_share = 0.5;
  all.push_back(device(0.4)), all.back().n_cpu_moe = 1;
  all.push_back(device(0.8)), all.back().n_pinned_layers = 1;
  all.push_back(device(0.4)), all.back().cache_policy = "lru";
  all.push_back(device(0.4)), all.back().n_slots = 7;
  all.push_back(device(0.4)), all.back().sim.is_virtual = true;
  all.push_back(device(0.4)), all.back().n_gpu_layers = 1;
  all.push_back(device(0.4)), all.back().n_gpu_layers = 0, all.back().moe = ExpertPlace::automatic;
  for (size_t i = 0; i < all.size(); ++i) {
    for (const int chunk : {1, 32}) {
      expect_same_bits(expected, run(all[i], chunk), cat("wish ", i, ", chunks of ", chunk));
    }
  }
}

TEST_F(DeviceSession, SaysWhatBecameOfTheWishes) {
  // Of six layers: two have room in the buffers for streaming, so that all would be resident.
  model_file::SynthOptions deep = model::test::tiny_options("qwen3moe", "Q8_0");
  deep.config.n_layers = 6;
  const OpenModel deep_file(deep);
  DeviceOptions d = device_for(deep_file.shape(), 0.5, 32);
  d.moe = ExpertPlace::gpu;
  const Model deep_model = Model::load(deep_file.path(), {.n_threads = 2});
  Session streamed(deep_model, {.n_ctx = 64, .prefill_chunk = 32, .device = d});
  EXPECT_EQ(streamed.placement().mode_key, "streamed");
  EXPECT_EQ(streamed.placement().link_share, 1.0);
  // At the depth that a plan has they are the plan's; deeper texts and short prompts are slower.
  const PlacementInfo placement = streamed.placement();
  EXPECT_NEAR(placement.predict(false, 1, 64), placement.predicted_decode, 1e-6);
  EXPECT_LT(placement.predict(false, 1, 4096), placement.predicted_decode);
  EXPECT_LT(placement.predict(true, 2, 0), placement.predict(true, 32, 0));
  d = device(0.5);
  d.moe = ExpertPlace::cpu;
  d.n_gpu_layers = 2;
  Session cpu(model, {.n_ctx = 64, .prefill_chunk = 32, .device = d});
  EXPECT_EQ(cpu.placement().mode_key, "cpu_experts");
  EXPECT_EQ(cpu.placement().n_slots, 0);
  EXPECT_GT(cpu.placement().predicted_decode, 0.0);
  EXPECT_EQ(Session(model, {.n_ctx = 64}).placement().mode, "");
  d = device(0.0);
  d.sim.machine.vram_free = 1000;  // no room for anything: still an answer, by the CPU
  d.moe = ExpertPlace::automatic;
  Session tiny(model, {.n_ctx = 64, .device = d});
  EXPECT_EQ(tiny.placement().mode_key, "cpu_only");
  expect_same_bits(run({}), append(tiny), "on a device without room");
}

TEST_F(DeviceSession, CountsWhereExpertsWereFound) {
  // So few slots that both experts of a layer often miss, one for the link and one for the CPU; and
  // a virtual clock, or the cache's copies would decide by their speed how often.
  DeviceOptions d = device(0.2, 1);
  d.sim.is_virtual = true;
  d.link_share = 0.5;
  Session session(model, {.n_ctx = 64, .prefill_chunk = 1, .device = d});
  append(session);
  EXPECT_EQ(session.expert_stats().n_tokens, 0) << "a prompt is no decoding, however narrow";
  session.truncate(1);
  const std::vector<TokenId> tokens = random_tokens(41, 1);
  size_t next = 0;
  session.generate(std::span(tokens).subspan(1, 1),
                   {.n_tokens = 39, .choose = [&](auto) { return tokens[2 + next++]; }});
  const ExpertStats stats = session.expert_stats();
  EXPECT_EQ(stats.n_tokens, 39);
  const LayerStats all = stats.total();
  EXPECT_EQ(all.n_calls(), 39 * 2 * 3);
  EXPECT_GT(all.n_hits, 0);
  EXPECT_GT(all.n_link, 0);
  EXPECT_GT(all.n_cpu, 0);
  EXPECT_GT(stats.n_copies, 0);
  EXPECT_GE(all.seconds, all.wait_seconds + all.stall_seconds);
  EXPECT_GT(all.cpu_seconds, 0.0);
}

TEST_F(DeviceSession, AHeldLinkLeavesMissesToTheCpuAndIsPlannedWith) {
  const Logits expected = run({});
  for (const double held_gbps : {0.0, 5.0}) {
    DeviceOptions d = device(0.2, 8);
    d.link_share = 1.0;
    d.held_link_gbps = held_gbps;
    Session session(model, {.n_ctx = 64, .prefill_chunk = 8, .device = d});
    expect_same_bits(expected, append(session), cat("held to ", held_gbps));
    const std::vector<TokenId> tokens = random_tokens(20, 2);
    session.generate({}, {.n_tokens = 20, .given = tokens});
    const ExpertStats stats = session.expert_stats();
    EXPECT_EQ(stats.total().n_link > 0, held_gbps == 0.0);
    EXPECT_EQ(stats.total().n_cpu > 0, held_gbps > 0.0);
    EXPECT_EQ(session.placement().link_share, held_gbps > 0.0 ? 0.0 : 1.0);
  }
}

TEST_F(DeviceSession, AVirtualClockGivesTheSameTimesInEveryRun) {
  const auto seconds = [&](double link_gbps) {
    DeviceOptions d = device(0.3, 1);
    d.sim.is_virtual = true;
    d.sim.machine.link_gbps = link_gbps;
    d.link_share = 1.0;
    Session session(model, {.n_ctx = 64, .prefill_chunk = 1, .device = d});
    append(session);
    return session.stats().prefill_seconds;
  };
  const double slow = seconds(0.01);
  EXPECT_EQ(slow, seconds(0.01));
  EXPECT_GT(slow, 2.0 * seconds(10.0));
}

// The first step begins when all is loaded, and takes time of its own however short it is.
TEST_F(DeviceSession, AVirtualClockCountsAShortPrompt) {
  for (const ExpertPlace moe : {ExpertPlace::cache, ExpertPlace::cpu}) {
    DeviceOptions d = device(0.4);
    d.moe = moe;
    d.sim.is_virtual = true;
    d.sim.machine.link_gbps = 0.01;  // so that loading takes far longer than the step
    Session session(model, {.n_ctx = 64, .prefill_chunk = 32, .device = d});
    session.append(random_tokens(3, 1));
    const double first = session.stats().prefill_seconds;
    EXPECT_GE(first, 2 * policy::kGpuLayerSeconds);
    session.truncate(0);
    session.append(random_tokens(3, 1));
    EXPECT_LE(session.stats().prefill_seconds - first, 1.01 * first) << "as long as it was";
  }
}

TEST_F(DeviceSession, RoutingCanBeWatchedAndReplaced) {
  DeviceOptions unused = device(0.3);  // a device that is left out
  unused.moe = ExpertPlace::automatic;
  unused.n_gpu_layers = 0;
  for (const DeviceOptions& d : {DeviceOptions{}, device(0.3), unused}) {
    std::vector<int32_t> seen;
    SessionOptions options{.n_ctx = 64, .prefill_chunk = 16, .device = d};
    options.reroute = [](int pos, int layer, std::span<int32_t> experts) {
      for (size_t k = 0; k < experts.size(); ++k) {
        experts[k] = static_cast<int32_t>((static_cast<size_t>(pos + layer) + k) % 10);
      }
    };
    options.on_routing = [&](const RoutedToken& routed) {
      EXPECT_EQ(routed.experts.size(), 6u);
      EXPECT_TRUE(routed.is_prompt);
      seen.insert(seen.end(), routed.experts.begin(), routed.experts.end());
    };
    Session session(model, options);
    append(session);
    ASSERT_EQ(seen.size(), 40u * 6);
    for (size_t i = 0; i < seen.size(); ++i) {
      EXPECT_EQ(seen[i], static_cast<int32_t>((i / 6 + i % 6 / 3 + i % 3) % 10));
    }
  }
}

// Without a profile the first experts are loaded, with one those that were used: the last ones
// here.
TEST_F(DeviceSession, WhatWasUsedIsLoadedFirstTheNextTime) {
  const TempDir dir;
  DeviceOptions d = device(0.5, 1);
  d.profile_path = dir / "profiles/m.slrp";
  d.link_share = 0.0;  // what the device reads would be there for the next token
  const std::vector<TokenId> tokens = random_tokens(40, 1);
  std::vector<int64_t> n_hits;  // of the first token
  for (int run = 0; run < 2; ++run) {
    SessionOptions options{.n_ctx = 64, .prefill_chunk = 1, .device = d};
    options.reroute = [](int, int, std::span<int32_t> experts) {
      for (size_t k = 0; k < experts.size(); ++k) experts[k] = 9 - static_cast<int32_t>(k);
    };
    Session session(model, options);
    const std::span text(tokens);
    session.generate(text.first(1), {.n_tokens = 1, .given = text.subspan(1, 1)});
    n_hits.push_back(session.expert_stats().total().n_hits);
    session.generate(text.subspan(2, 1), {.n_tokens = 37, .given = text.subspan(3)});
    EXPECT_TRUE(session.placement().warnings.empty());
  }
  EXPECT_EQ(n_hits, (std::vector<int64_t>{0, 6}));
}

TEST_F(DeviceSession, ADamagedProfileAndAFullDiskAreWarningsAndNoMore) {
  const TempDir dir;
  DeviceOptions d = device(0.3);
  d.profile_path = dir / "m.slrp";
  std::ofstream(d.profile_path) << "not a profile";
  {
    Session session(model, {.n_ctx = 64, .prefill_chunk = 8, .device = d});
    expect_same_bits(run({}), append(session), "with a damaged profile");
    ASSERT_EQ(session.placement().warnings.size(), 1u);
    expect_contains(session.placement().warnings[0], "m.slrp");
  }
  d.profile_path = "/dev/full/m.slrp";  // nothing can be kept there
  expect_same_bits(run({}), run(d), "where nothing can be kept");
}

// Where the CPU reads as fast as the device, a cache is hardly better than none.
TEST_F(DeviceSession, WaysThatAreTooCloseToTellAreTried) {
  DeviceOptions d = device(0.5);
  d.moe = ExpertPlace::automatic;
  d.n_gpu_layers = 2;
  d.n_cpu_moe = 1;  // or all would be resident
  d.sim.is_virtual = true;
  d.sim.machine.cpu_gbps = d.sim.machine.gpu_gbps = 400.0;
  d.sim.machine.handshake_us = 0.1;
  Session session(model, {.n_ctx = 64, .prefill_chunk = 32, .device = d});
  expect_contains(session.placement().reason, "ways that were tried");
  EXPECT_EQ(session.n_tokens(), 0);
  expect_same_bits(run({}), append(session), "after a trial");
  d.moe = ExpertPlace::cache;
  Session settled(model, {.n_ctx = 64, .prefill_chunk = 32, .device = d});
  EXPECT_EQ(settled.placement().reason.find("tried"), std::string::npos);
}

}  // namespace
}  // namespace sluice::engine::test
