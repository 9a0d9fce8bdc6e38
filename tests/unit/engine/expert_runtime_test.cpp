// Placement invariance: wherever experts are, and however they move, the logits are the same to the
// bit. And the proof that this can fail, and that no fault ends in a hang.
// SPDX-License-Identifier: Apache-2.0
#include "engine/expert_runtime.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/units.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

using namespace std::chrono_literals;
using backend::Clock;
using backend::RamDevice;
using backend::RamDeviceOptions;
using policy::PolicyKind;

struct Place {
  double share = 0.5;  // of all experts that the device holds
  PolicyKind policy = PolicyKind::mixture;
  RamDeviceOptions device{
      .n_bytes = 256 * kMiB, .link_gbps = 4.0, .delay_us = 2.0, .before_copy = {}};
  MissWorkerOptions misses{};
  double link_share = 0.0;
  int n_host_layers = 0;
  StepCut cut = StepCut::whole;
  StagingOptions staging{};
  int n_ctx = 96;
  int n_sequences = 1;
  int max_rows = 64;
};

policy::CacheOptions cache_options(const policy::ModelShape& shape, const Place& place) {
  policy::CacheOptions options{.policy = place.policy, .n_experts = 0, .layers = {}};
  for (const policy::LayerShape& layer : shape.layers) {
    options.n_experts = layer.n_experts;
    const auto n_slots = static_cast<int>(std::lround(place.share * layer.n_experts));
    options.layers.push_back({layer.expert_bytes, n_slots, false});
  }
  for (int i = 0; i < place.n_host_layers; ++i) options.layers[static_cast<size_t>(i)].n_slots = 0;
  return options;
}

struct Placed {
  Placed(const OpenModel& m, const Place& place)
      : shape(m.shape()),
        device(place.device),
        host_threads(2),
        runtime(*m, shape, device, host_threads, options(shape, place)) {}

  static ExpertRuntimeOptions options(const policy::ModelShape& shape, const Place& place) {
    ExpertRuntimeOptions o;
    o.work = {
        .n_ctx = place.n_ctx, .n_sequences = place.n_sequences, .prefill_chunk = place.max_rows};
    o.cache = cache_options(shape, place);
    o.place = {.n_gpu_layers = shape.n_layers() - place.n_host_layers,
               .n_slots = {},
               .overhead_bytes = 0,
               .link_share = place.link_share};
    for (const policy::CacheLayer& layer : o.cache.layers) {
      o.place.n_slots.push_back(layer.n_slots);
    }
    o.cut = place.cut;
    o.staging = place.staging;
    o.copies.poison = true;
    o.misses = place.misses;
    return o;
  }

  // A few rows together, then one by one.
  Logits run(std::span<const TokenId> tokens, const std::function<void()>& between = {}) {
    Logits all;
    for (size_t begin = 0; begin < tokens.size();) {
      const size_t n = std::min(begin == 0 ? n_prompt : 1, tokens.size() - begin);
      std::vector<StepRow> rows;
      for (const TokenId token : tokens.subspan(begin, n)) rows.push_back({token, {}, true});
      runtime.step(rows, [&](int64_t, std::span<const float> logits) {
        all.insert(all.end(), logits.begin(), logits.end());
      });
      begin += n;
      if (between) between();
    }
    return all;
  }

  policy::ModelShape shape;
  RamDevice device;
  ThreadPool host_threads;
  ExpertRuntime runtime;
  size_t n_prompt = 9;
};

const std::vector<TokenId>& text() {
  static const std::vector<TokenId> tokens = random_tokens(40, 5);
  return tokens;
}

TEST(PlacementInvariance, HoldsForEveryBudgetArchitectureAndMix) {
  for (const char* architecture : model::test::kArchitectures) {
    for (const char* mix : {"F32", "Q8_0", "Q4_K_M"}) {
      const OpenModel model(architecture, mix);
      const Logits expected = run_alone(*model, text());
      for (const double share : {0.0, 0.1, 0.3, 0.6, 1.0}) {
        Placed placed(model, {.share = share});
        expect_same_bits(expected, placed.run(text()),
                         cat(architecture, " ", mix, ", ", share, " of the experts"));
      }
    }
  }
}

TEST(PlacementInvariance, HoldsForEveryPolicyAndClock) {
  const OpenModel model("qwen3moe", "Q4_K_M");
  const Logits expected = run_alone(*model, text());
  for (const PolicyKind policy : {PolicyKind::mixture, PolicyKind::lru, PolicyKind::slru,
                                  PolicyKind::lfu, PolicyKind::dlfu}) {
    for (const Clock clock : {Clock::wall, Clock::virtual_time}) {
      Place place{.share = 0.3, .policy = policy};
      place.device.clock = clock;
      Placed placed(model, place);
      expect_same_bits(expected, placed.run(text()), "policy");
      EXPECT_GT(placed.runtime.n_computed_by_host(), 0);
    }
  }
}

TEST(PlacementInvariance, HoldsForSlowAndFastLinks) {
  const OpenModel model("qwen3moe", "Q8_0");
  const Logits expected = run_alone(*model, text());
  for (const double gbps : {0.01, 1.0, 1000.0}) {
    Place place{.share = 0.5};
    place.device.link_gbps = gbps;
    Placed placed(model, place);
    expect_same_bits(expected, placed.run(text()), cat(gbps, " GB/s"));
  }
}

// Takes experts out of the table and puts them back at random, between every two steps.
TEST(PlacementInvariance, HoldsWhileResidencyIsShuffled) {
  const OpenModel model("qwen2moe", "Q4_K_M");
  const Logits expected = run_alone(*model, text());
  Placed placed(model, {.share = 1.0});
  uint64_t round = 0;
  const auto n_experts = (*model).config().n_experts;
  std::vector<const std::byte*> all;
  const auto shuffle = [&] {
    placed.runtime.copies().finish();
    placed.runtime.main().run([&] {
      ExpertSlots& slots = placed.runtime.slots();
      for (int layer = 0; layer < 2; ++layer) {
        for (int e = 0; e < n_experts; ++e) {
          const policy::ExpertKey key{LayerId(layer), ExpertId(e)};
          const bool was_there = placed.runtime.cache().resident(key.layer, key.expert);
          const bool stays = random_bits(++round, 3) % 2 == 0;
          slots.entry(key) = was_there && stays
                                 ? slots.slot(placed.runtime.cache().pool(key.layer),
                                              placed.runtime.cache().slot(key.layer, key.expert))
                                 : nullptr;
        }
      }
    });
  };
  expect_same_bits(expected, placed.run(text(), shuffle), "shuffled");
  EXPECT_GT(placed.runtime.n_computed_by_host(), 50);
}

TEST(PlacementInvariance, OneFlippedByteInOneSlotChangesTheLogits) {
  const OpenModel model("qwen3moe", "Q8_0");
  const Logits expected = run_alone(*model, text());
  Placed placed(model, {.share = 1.0});
  bool is_flipped = false;
  const Logits got = placed.run(text(), [&] {
    placed.runtime.copies().finish();
    if (std::exchange(is_flipped, true)) return;
    placed.runtime.main().run([&] {
      for (int e = 0; e < (*model).config().n_experts; ++e) {
        const std::byte* const slot = placed.runtime.slots().table(LayerId(1))[e];
        if (slot) const_cast<std::byte*>(slot)[7] ^= std::byte{0x40};
      }
    });
  });
  ASSERT_EQ(got.size(), expected.size());
  EXPECT_NE(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0);
}

TEST(PlacementInvariance, APoisonedSlotIsSeenInTheLogits) {
  const OpenModel model("qwen3moe", "Q8_0");
  Placed placed(model, {.share = 1.0});
  const Logits got = placed.run(text(), [&] {
    placed.runtime.copies().finish();
    placed.runtime.main().run([&] {
      ExpertSlots& slots = placed.runtime.slots();
      for (int e = 0; e < (*model).config().n_experts; ++e) {
        const std::byte* const slot = slots.table(LayerId(0))[e];
        if (slot) {
          std::memset(const_cast<std::byte*>(slot), 0xff, slots.layout(LayerId(0)).n_bytes);
        }
      }
    });
  });
  EXPECT_TRUE(std::ranges::any_of(got, [](float l) { return !std::isfinite(l); }));
}

TEST(ExpertRuntime, TwoRunsInVirtualTimeTakeTheSameDecisions) {
  const OpenModel model("qwen3moe", "Q8_0");
  const auto decisions = [&] {
    Place place{.share = 0.3};
    place.device.clock = Clock::virtual_time;
    Placed placed(model, place);
    placed.run(text());
    return std::tuple(placed.runtime.cache().counts().n_copies,
                      placed.runtime.cache().counts().n_hits, placed.runtime.n_computed_by_host(),
                      RamDevice::seconds(placed.runtime.main()));
  };
  const auto first = decisions();
  EXPECT_GT(std::get<0>(first), 0u);
  EXPECT_EQ(first, decisions());
}

TEST(ExpertRuntime, AWorkerThatSleepsTooLongFailsTheStepWithItsLayerAndTheNextStepWorks) {
  const OpenModel model("qwen3moe", "Q8_0");
  Place place{.share = 0.0};
  std::atomic<int> n_requests = 0;
  place.misses = {.deadline = 500ms, .before_answer = [&](const auto& request) {
                    if (request.layer.value == 1 && ++n_requests == 3) {
                      std::this_thread::sleep_for(2s);
                    }
                  }};
  Placed placed(model, place);
  const std::string error = error_of(Errc::device, [&] { placed.run(text()); });
  expect_contains(error, "layer 1");
  expect_contains(error, "did not answer within 500 ms");
  std::this_thread::sleep_for(1500ms);                  // until it is awake again
  error_of(Errc::device, [&] { placed.run(text()); });  // it held the mailbox until then
  placed.runtime.truncate({}, 0);
  expect_same_bits(run_alone(*model, text()), placed.run(text()), "after a fault");
}

TEST(ExpertRuntime, AWorkerThatFailsIsNamedWithItsLayerAndItsReason) {
  const OpenModel model("qwen3moe", "Q8_0");
  Place place{.share = 0.0};
  place.misses = {.before_answer = [](const auto&) { throw std::runtime_error("no more fuel"); }};
  Placed placed(model, place);
  const std::string error = error_of(Errc::device, [&] { placed.run(text()); });
  expect_contains(error, "layer 0");
  expect_contains(error, "no more fuel");
}

TEST(ExpertRuntime, ADeviceThatIsTooSmallSaysSoAtTheStart) {
  const OpenModel model("qwen3moe", "Q8_0");
  Place place{.share = 1.0};
  place.device.n_bytes = 64 * kKiB;
  expect_contains(error_of(Errc::out_of_memory, [&] { Placed placed(model, place); }),
                  "cannot allocate");
}

}  // namespace
}  // namespace sluice::engine::test
