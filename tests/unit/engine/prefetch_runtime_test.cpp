// Experts that come ahead of their layer, on the virtual clock of a machine whose link, CPU and
// device are as slow as the model is small: how much more the link carries for them, whether what
// was asked for ever waits for them, and what they gain. A naive prefetch, which copies all it
// foresees whatever the link is doing, shows that each of these can fail.
// SPDX-License-Identifier: Apache-2.0
#include "support/link_watch.h"
#include "unit/engine/placed_model.h"

namespace sluice::engine::test {
namespace {

constexpr int kLayers = 6, kUsed = 4;
constexpr double kExpertBytes = 2.8e6;  // that the rates below are meant for

// Layers change little of what the next one sees, so that routing can be foreseen.
model_file::SynthOptions foreseeable_model() {
  model_file::SynthOptions o = model::test::tiny_options("qwen3moe", "q8_0");
  o.config.n_layers = kLayers;
  o.config.n_experts = 32;
  o.config.n_experts_used = kUsed;
  o.std = 0.03f / std::sqrt(static_cast<float>(o.config.d_model));
  return o;
}

enum class Ahead { none, careful, naive };

struct Case {
  double link_gbps = 25.0;
  double link_share = 0.0;  // of the misses, read by the device
  Ahead ahead = Ahead::careful;
  double share = 0.4;  // of the experts that the device holds
};

struct Moved {
  double n_missed = 0, n_read = 0, n_ahead = 0, n_useful = 0;
  int64_t n_delayed = 0;
  double seconds = 0.0;
};

// All rates are scaled with the model's experts.
Place place_of(const policy::ModelShape& shape, const Case& c) {
  constexpr double kDeviceGbps = 500.0, kCpuGbps = 60.0;
  const auto expert_bytes = static_cast<double>(shape.layers[0].expert_bytes);
  const double scale = expert_bytes / kExpertBytes;
  Place place;
  place.share = c.share;
  place.link_share = c.link_share;
  place.n_ctx = 256;
  place.device.clock = backend::Clock::virtual_time;
  place.device.link_gbps = c.link_gbps * scale;
  place.device.cpu_gbps = kCpuGbps * scale;
  place.device.device_gbps = kDeviceGbps * scale;
  const double hits_seconds =
      place.device.layer_us * 1e-6 +
      (static_cast<double>(shape.layers[0].trunk_bytes) + kUsed * expert_bytes) /
          (kDeviceGbps * scale * 1e9);
  if (c.ahead == Ahead::careful) {
    place.staging = {.enabled = true,
                     .link_gbps = place.device.link_gbps,
                     .delay_us = place.device.delay_us,
                     .layer_seconds = 2.0 * hits_seconds,
                     .hits_seconds = hits_seconds};
  } else if (c.ahead == Ahead::naive) {
    place.staging = {.enabled = true,
                     .link_gbps = 1e6,
                     .layer_seconds = 1.0,
                     .hits_seconds = 1.0,
                     .max_waste = 1e6,
                     .copy_cost = 0.0};
  }
  return place;
}

Moved decode(const OpenModel& m, const Case& c) {
  const policy::ModelShape shape = m.shape();
  sluice::test::LinkWatch watch;
  Place place = place_of(shape, c);
  place.device.on_link_use = watch.watcher();
  Placed placed(m, place);
  const std::span<const backend::StagedSlot> slots = placed.runtime.staging().slots();
  if (!slots.empty()) {
    watch.set_ahead(slots.front().data, slots.back().data + shape.layers[0].expert_bytes);
  }
  placed.run(random_tokens(200, 5), 1);
  const ExpertStats stats = placed.runtime.stats();
  const LayerStats all = stats.total();
  const auto real = [](int64_t n) { return static_cast<double>(n); };
  return {.n_missed = real(all.n_calls() - all.n_hits),
          .n_read = real(all.n_link),
          .n_ahead = real(stats.n_prefetched),
          .n_useful = real(all.n_staged),
          .n_delayed = watch.n_delayed(),
          .seconds = placed.runtime.seconds()};
}

TEST(PrefetchRuntime, TheLogitsAreThoseOfTheCpuAlone) {
  const OpenModel m(foreseeable_model());
  const std::vector<TokenId> tokens = random_tokens(96, 5);
  const Logits expected = run_alone(*m, tokens);
  for (const Ahead ahead : {Ahead::careful, Ahead::naive}) {
    Placed placed(m, place_of(m.shape(), {55.0, 0.0, ahead}));
    expect_same_bits(expected, placed.run(tokens, 1), "with experts that came ahead");
    EXPECT_GT(placed.runtime.stats().total().n_staged, 0);
  }
}

// On demand every miss is one copy.
TEST(PrefetchRuntime, CopiesHardlyMoreThanIsMissed) {
  const OpenModel m(foreseeable_model());
  for (const double link_share : {0.0, 1.0}) {
    const Moved with = decode(m, {200.0, link_share, Ahead::careful, 0.8});
    EXPECT_GT(with.n_useful, 0.02 * with.n_missed);
    EXPECT_LE(with.n_read + with.n_ahead, 1.02 * with.n_missed);
  }
  const Moved naive = decode(m, {25.0, 1.0, Ahead::naive});
  EXPECT_GT(naive.n_read + naive.n_ahead, 1.2 * naive.n_missed);
}

TEST(PrefetchRuntime, WhatIsAskedForNeverWaitsForIt) {
  const OpenModel m(foreseeable_model());
  for (const double link : {3.0, 12.0, 55.0, 200.0}) {
    for (const double link_share : {0.0, 1.0}) {
      EXPECT_EQ(decode(m, {link, link_share, Ahead::careful, 0.8}).n_delayed, 0)
          << link << " GB/s, " << link_share << " of the misses read";
    }
    EXPECT_GT(decode(m, {link, 1.0, Ahead::naive, 0.8}).n_delayed, 0) << link << " GB/s, naive";
  }
}

TEST(PrefetchRuntime, SparesTimeWhereTheCpuComputesMissesAndTheLinkIsFast) {
  const OpenModel m(foreseeable_model());
  const double with = decode(m, {.link_gbps = 55.0}).seconds;
  EXPECT_LT(with, 0.97 * decode(m, {.link_gbps = 55.0, .ahead = Ahead::none}).seconds);
}

TEST(PrefetchRuntime, CostsNothingWhereTheLinkIsTooSlow) {
  const OpenModel m(foreseeable_model());
  for (const double link_share : {0.0, 1.0}) {
    const Moved with = decode(m, {1.0, link_share, Ahead::careful});
    EXPECT_EQ(with.n_ahead, 0);
    EXPECT_EQ(with.seconds, decode(m, {1.0, link_share, Ahead::none}).seconds);
  }
}

}  // namespace
}  // namespace sluice::engine::test
