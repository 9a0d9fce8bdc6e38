// Prompts of which the device lacks experts: nobody waits between the first and the last layer, the
// link is never idle while it is what there is to wait for, and what is copied is what is used.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "policy/plan/pricing_speed.h"
#include "unit/engine/placed_model.h"

namespace sluice::engine::test {
namespace {

using backend::Clock;
using backend::LinkUse;

constexpr int kPrompt = 2048;
constexpr int kDeepLayers = 8;

OpenModel deep_model() {
  model_file::SynthOptions options = model::test::tiny_options("qwen3moe", "Q4_K_M");
  options.config.n_layers = kDeepLayers;
  options.config.n_experts = 32;
  options.config.n_ctx_train = 4096;
  return OpenModel(options);
}

// A prompt on the virtual clock, and what was seen of it.
struct Prompt {
  double seconds = 0.0;       // that it took
  double link_seconds = 0.0;  // of it, in which the link was busy
  uint64_t streamed_bytes = 0;
  std::function<double(double gpu_gbps, double link_gbps)> predicted_seconds;
  std::map<std::string, int> n_waits;  // of the host, by stream
};

struct PromptPlace {
  double link_gbps = 1.0;
  double device_gbps = 1e3;
  double share = 0.25;        // of the experts that the device holds
  uint64_t stream_bytes = 0;  // as Place
  int n_rows = kPrompt;
  RouteOverride reroute = {};
};

Prompt run_prompt(const OpenModel& model, const PromptPlace& options) {
  Prompt prompt;
  Place place{.share = options.share,
              .n_ctx = options.n_rows,
              .max_rows = options.n_rows,
              .stream_bytes = options.stream_bytes,
              .reroute = options.reroute};
  bool is_watched = false;  // not what is loaded at the start
  place.device.clock = Clock::virtual_time;
  place.device.link_gbps = options.link_gbps;
  place.device.delay_us = 0.0;
  place.device.device_gbps = options.device_gbps;
  place.device.cpu_gbps = 1e-3;  // so that the link is preferred
  place.device.on_link_use = [&](const LinkUse& use) {
    if (is_watched) prompt.link_seconds += use.ends_at - use.begins_at;
  };
  place.device.on_finish = [&](const std::string& stream) {
    if (is_watched) ++prompt.n_waits[stream];
  };
  Placed placed(model, place);
  std::vector<StepRow> rows;
  for (const TokenId token : random_tokens(static_cast<size_t>(options.n_rows), 7)) {
    rows.push_back({token, {}, false});
  }
  rows.back().wants_logits = true;
  const double before = placed.runtime.seconds();
  is_watched = true;
  placed.runtime.step(rows, policy::Phase::prefill, {[](int64_t, std::span<const float>) {}});
  is_watched = false;
  prompt.seconds = placed.runtime.seconds() - before;
  prompt.streamed_bytes = placed.runtime.stats().streamed_bytes;
  prompt.predicted_seconds = [n_rows = options.n_rows, device = place.device, shape = placed.shape,
                              run = options_for(placed.shape, place)](double gpu, double link) {
    policy::Hardware hardware;
    hardware.gpu_gbps = gpu;
    hardware.link_gbps = link;
    hardware.cpu_gbps = device.cpu_gbps;
    hardware.experts_us = device.experts_us;
    return n_rows /
           policy::predict(shape, hardware, run.work, run.place, policy::LocalityCurve::typical())
               .prefill;
  };
  return prompt;
}

// Of one expert: in the first layer, and in all of them together.
uint64_t first_slot_bytes(const OpenModel& model) {
  return policy::slot_bytes(model.shape().layers.front());
}
uint64_t all_slot_bytes(const OpenModel& model) {
  uint64_t sum = 0;
  for (const policy::LayerShape& layer : model.shape().layers) sum += policy::slot_bytes(layer);
  return sum;
}

// One wait for the layers, and one for the logits; as many for eight layers as for one.
TEST(PromptWaves, TheHostWaitsForNothingBetweenTheFirstAndTheLastLayer) {
  const OpenModel model = deep_model();
  const Prompt prompt = run_prompt(model, {});
  EXPECT_EQ(prompt.n_waits, (std::map<std::string, int>{{"main", 2}}));
  EXPECT_GT(prompt.streamed_bytes, 20 * all_slot_bytes(model)) << "24 of 32 are missing";
  EXPECT_LE(prompt.streamed_bytes, 24 * all_slot_bytes(model)) << "though no prompt came before";
}

// The device's own work takes 30 to 60 % of the time that the copies do. Were they made layer by
// layer, when it is known what was routed, the link would be idle for that long.
TEST(PromptWaves, TheLinkIsBusyForNineTenthsOfTheTimeWhereItIsTheBound) {
  const OpenModel model = deep_model();
  const auto expect_busy = [&](PromptPlace place) {
    PromptPlace alone = place;
    alone.link_gbps = 1e6;
    const double own = run_prompt(model, alone).seconds;
    place.link_gbps = 1.0;
    place.link_gbps = run_prompt(model, place).link_seconds * 0.45 / own;
    const Prompt prompt = run_prompt(model, place);
    EXPECT_GT(own, 0.3 * prompt.link_seconds);
    EXPECT_LT(own, 0.6 * prompt.link_seconds);
    EXPECT_GT(prompt.link_seconds, 0.9 * prompt.seconds) << place.stream_bytes;
  };
  expect_busy({});
  expect_busy({.share = 0.0});
  expect_busy({.stream_bytes = 2 * 8 * first_slot_bytes(model)});
}

// The GPU by whose kernels a prompt takes as long, without a link, as on the RAM device, which
// reads and does nothing else.
double gpu_like(const Prompt& without_link) {
  double least = 1e-3, most = 1e6;
  while (most / least > 1.0001) {
    const double gpu = std::sqrt(least * most);
    (without_link.predicted_seconds(gpu, 1e6) > without_link.seconds ? least : most) = gpu;
  }
  return least;
}

// Whether the link is the bound, or the device's own work, or neither by much.
TEST(PromptWaves, TakeAsLongAsThePlannerSays) {
  const OpenModel model = deep_model();
  const double gpu = gpu_like(run_prompt(model, {.link_gbps = 1e6, .device_gbps = 20.0}));
  ASSERT_LT(gpu, 1e5);
  for (const double link_gbps : {0.3, 3.0, 30.0}) {
    for (const double share : {0.0, 0.25, 0.75}) {
      const Prompt prompt =
          run_prompt(model, {.link_gbps = link_gbps, .device_gbps = 20.0, .share = share});
      const double predicted = prompt.predicted_seconds(gpu, link_gbps);
      // In the first layer copies and work come one after the other; of many layers that is little.
      const double first = (prompt.link_seconds + predicted) / kDeepLayers;
      EXPECT_LT(prompt.seconds, 1.15 * predicted + first)
          << "link " << link_gbps << ", of the experts " << share;
      EXPECT_GT(prompt.seconds, 0.85 * predicted)
          << "link " << link_gbps << ", of the experts " << share;
    }
  }
}

// Only what is used crosses, however much is missing: nothing is guessed of rows that use few.
TEST(PromptWaves, OnlyWhatIsRoutedIsCopied) {
  const OpenModel model = deep_model();
  constexpr int kRouted = 6;
  const RouteOverride few = [](LayerId, int64_t row, std::span<int32_t> experts) {
    for (size_t i = 0; i < experts.size(); ++i) {
      experts[i] = static_cast<int32_t>((static_cast<size_t>(row) + i) % kRouted);
    }
  };
  const Prompt prompt = run_prompt(model, {.share = 0.0, .n_rows = 40, .reroute = few});
  EXPECT_EQ(prompt.streamed_bytes, kRouted * all_slot_bytes(model));
}

TEST(PromptWaves, TwoRunsInVirtualTimeTakeTheSameTime) {
  const OpenModel model = deep_model();
  const PromptPlace place{.stream_bytes = 6 * first_slot_bytes(model), .n_rows = 100};
  const Prompt first = run_prompt(model, place);
  for (int i = 0; i < 5; ++i) {
    const Prompt again = run_prompt(model, place);
    EXPECT_EQ(again.seconds, first.seconds);
    EXPECT_EQ(again.streamed_bytes, first.streamed_bytes);
  }
}

}  // namespace
}  // namespace sluice::engine::test
