// Placement invariance: wherever experts are, however they move, and whoever drives the steps, the
// logits are the same to the bit. And the proof that this can fail.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/engine/placed_model.h"
#include "unit/engine/shown_slot.h"

namespace sluice::engine::test {
namespace {

using backend::Clock;
using policy::PolicyKind;

constexpr PolicyKind kPolicies[] = {PolicyKind::mixture, PolicyKind::lru, PolicyKind::lru_global,
                                    PolicyKind::slru,    PolicyKind::lfu, PolicyKind::dlfu};

// Enough experts that three in a hundred are one.
OpenModel many_experts(const char* architecture, const char* mix,
                       Weights weights = Weights::woven) {
  model_file::SynthOptions options = model::test::tiny_options(architecture, mix);
  options.config.n_experts = 32;
  options.config.n_ctx_train = 1024;
  return OpenModel(options, weights);
}

// Each with another policy, driver and link, with and without prefetch, in turn; and now and then
// from experts that stand in the file.
TEST(PlacementInvariance, HoldsFor256TokensOfEveryArchitectureMixAndBudget) {
  const std::vector<TokenId> tokens = text(256);
  size_t i = 0;
  for (const char* architecture : model::test::kArchitectures) {
    for (const char* mix : {"F32", "Q8_0", "Q4_K_M"}) {
      const OpenModel model = many_experts(architecture, mix);
      const OpenModel mapped = many_experts(architecture, mix, Weights::mapped);
      const Logits expected = run_alone(
          *model, tokens, 64, {.kv = {.n_sequences = 1, .n_ctx = 256, .page_tokens = 64}});
      for (const double share : {0.0, 0.03, 0.1, 0.3, 0.6, 1.0}) {
        Place place{.share = share, .n_ctx = 256};
        place.policy = kPolicies[i % std::size(kPolicies)];
        place.cut = i / 2 % 2 == 0 ? StepCut::whole : StepCut::segmented;
        place.device.link_gbps = i / 3 % 2 == 0 ? 50.0 : 1.0;
        place.link_share = i / 4 % 2 == 0 ? 0.0 : 0.5;
        if (i++ % 5 < 3) place.staging = eager_staging();
        Placed placed(i % 3 == 0 ? mapped : model, place);
        expect_same_bits(expected, placed.run(tokens, 20),
                         cat(architecture, " ", mix, ", ", share, " of the experts"));
      }
    }
  }
}

// Copied and mapped; with a first layer on the host, or all on the device and woven on the way.
TEST(PlacementInvariance, HoldsForRarerFormsOfFiles) {
  const std::vector<TokenId> tokens = text(60);
  for (const model::test::RareForm& form : model::test::rare_forms()) {
    for (const char* mix : {"F32", "Q4_K_M"}) {
      const model_file::SynthOptions options = form.options(mix);
      const OpenModel copied(options), mapped(options, Weights::mapped);
      const Logits expected = run_alone(*copied, tokens);
      expect_same_bits(expected, run_alone(*mapped, tokens), cat(form.name, " ", mix, ", mapped"));
      for (const double share : {0.0, 0.3, 1.0}) {
        for (const int n_host_layers : {0, 1}) {
          Place place{.share = share, .n_host_layers = n_host_layers};
          place.weaves = share == 1.0 && n_host_layers == 0;
          if (n_host_layers == 0) place.staging = eager_staging();
          for (const OpenModel* model : {&copied, &mapped}) {
            Placed placed(*model, place);
            expect_same_bits(expected, placed.run(tokens, 20),
                             cat(form.name, " ", mix, ", ", share, " of the experts, ",
                                 n_host_layers, " host layers, mapped ", model == &mapped));
          }
        }
      }
    }
  }
}

// Every policy, driver, link, share of misses that the device reads, and with prefetch or without.
TEST(PlacementInvariance, HoldsForEveryWayOfRunning) {
  const OpenModel model = many_experts("qwen3moe", "Q4_K_M");
  const Logits expected = run_alone(*model, text());
  int64_t n_by_cpu = 0, n_over_link = 0;
  for (const PolicyKind policy : kPolicies) {
    for (const StepCut cut : {StepCut::whole, StepCut::segmented}) {
      for (const double link_share : {0.0, 0.5, 1.0}) {
        for (const double gbps : {0.5, 50.0}) {
          for (const bool prefetches : {false, true}) {
            Place place{.share = 0.2, .policy = policy, .link_share = link_share, .cut = cut};
            place.device.link_gbps = gbps;
            if (prefetches) place.staging = eager_staging();
            Placed placed(model, place);
            expect_same_bits(
                expected, placed.run(text()),
                cat("policy ", policy_name(policy), ", segmented ", cut == StepCut::segmented,
                    ", link share ", link_share, ", ", gbps, " GB/s, prefetch ", prefetches));
            const LayerStats all = placed.runtime.stats().total();
            n_by_cpu += all.n_cpu, n_over_link += all.n_link;
          }
        }
      }
    }
  }
  EXPECT_GT(n_by_cpu, 0);
  EXPECT_GT(n_over_link, 0);
}

TEST(PlacementInvariance, HoldsOnBothClocks) {
  const OpenModel model("qwen3moe", "Q4_K_M");
  const Logits expected = run_alone(*model, text());
  for (const bool prefetches : {false, true}) {
    for (const Clock clock : {Clock::wall, Clock::virtual_time}) {
      Place place{.share = 0.3, .link_share = 0.5};
      place.device.clock = clock;
      if (prefetches) place.staging = eager_staging();
      Placed placed(model, place);
      expect_same_bits(expected, placed.run(text()), "clock");
      EXPECT_GT(placed.runtime.n_computed_by_host(), 0);
    }
  }
}

TEST(PlacementInvariance, HoldsWhereTheFirstLayersAreTheHosts) {
  for (const char* architecture : model::test::kArchitectures) {
    const OpenModel model(architecture, "Q4_K_M");
    const Logits expected = run_alone(*model, text());
    for (int n = 1; n < (*model).config().n_layers; ++n) {
      Placed placed(model, {.share = 0.3, .n_host_layers = n});
      expect_same_bits(expected, placed.run(text()), cat(architecture, ", ", n));
    }
  }
}

// A token of each of so many sequences in a step, of different ones every time: widths in between
// are padded. The model's code runs once for each of the five widths.
TEST(PlacementInvariance, HoldsForEveryWidthOfAStep) {
  constexpr int kWidths[] = {1, 3, 2, 4, 5, 8, 11, 16, 7, 1, 13};
  for (const char* architecture : model::test::kArchitectures) {
    const OpenModel model(architecture, "Q4_K_M");
    for (const bool prefetches : {false, true}) {
      Runner alone(*model, {.kv = {.n_sequences = 16, .n_ctx = 64, .page_tokens = 64}});
      Place place{.share = 0.3, .link_share = 0.3, .n_ctx = 64, .n_sequences = 16};
      if (prefetches) place.staging = eager_staging();
      Placed placed(model, place);
      Logits expected, got;
      for (int t = 0; t < 44; ++t) {
        std::vector<StepRow> rows;
        for (int s = 0; s < kWidths[t % std::size(kWidths)]; ++s) {
          rows.push_back({static_cast<TokenId>(random_bits(7, uint64_t(t * 16 + s)) % 261),
                          SequenceId((s + t) % 16), true});
        }
        alone.step(rows, std::vector<Logits*>(rows.size(), &expected));
        placed.runtime.step(rows, policy::Phase::decode,
                            {[&](int64_t, std::span<const float> logits) {
                              got.insert(got.end(), logits.begin(), logits.end());
                            }});
      }
      expect_same_bits(expected, got, cat(architecture, ", prefetch ", prefetches));
      EXPECT_EQ(placed.runtime.n_forwards(), 5);
    }
  }
}

// Not once a token: what varies is data.
TEST(PlacementInvariance, HoldsThrough512ReplaysOfOneRecording) {
  for (const char* architecture : {"qwen3moe", "qwen35moe", "qwen3next"}) {
    const OpenModel model = many_experts(architecture, "Q4_K_M");
    const std::vector<TokenId> tokens = text(512);
    const Logits expected =
        run_alone(*model, tokens, 64, {.kv = {.n_sequences = 1, .n_ctx = 512, .page_tokens = 64}});
    Placed placed(model, {.share = 0.3, .link_share = 0.3, .n_ctx = 512});
    expect_same_bits(expected, placed.run(tokens, 1), cat(architecture, ", 512 tokens"));
    EXPECT_EQ(placed.runtime.n_forwards(), 1);
  }
}

// Prompts: experts that are missing stream through two buffers, or are computed by the CPU.
TEST(PlacementInvariance, HoldsForPrompts) {
  for (const char* architecture : {"qwen2moe", "llama", "qwen35moe", "qwen3next"}) {
    const OpenModel model(architecture, "Q4_K_M"), mapped(architecture, "Q4_K_M", Weights::mapped);
    const std::vector<TokenId> tokens = text(80);
    const Logits expected = run_alone(*model, tokens);
    for (const double share : {0.0, 0.3, 1.0}) {
      for (const double link_gbps : {0.3, 1e3}) {
        Place place{.share = share};
        place.device.link_gbps = link_gbps;
        place.device.cpu_gbps = 10.0;
        place.staging = eager_staging();  // for what follows the prompt
        for (const OpenModel* m : {&model, &mapped}) {
          Placed placed(*m, place);
          expect_same_bits(expected, placed.run(tokens, 60), cat(architecture, ", ", share));
          const bool streams = share < 1.0 && link_gbps > 1.0;
          EXPECT_EQ(placed.runtime.stats().streamed_bytes > 0, streams);
        }
      }
    }
  }
}

// Where the CPU computes what is missing, rows go through the mailbox in three parts.
TEST(PlacementInvariance, HoldsForPromptsWiderThanTheMailbox) {
  constexpr int kRows = 2 * kMailboxRows + 44;
  const std::vector<TokenId> tokens = text(kRows + 9);
  for (const char* mix : {"F32", "Q4_K_M"}) {
    const OpenModel model = many_experts("qwen2moe", mix);
    const Logits expected = run_alone(
        *model, tokens, 64, {.kv = {.n_sequences = 1, .n_ctx = kRows + 9, .page_tokens = 64}});
    Place place{.share = 0.3, .n_ctx = kRows + 9, .max_rows = kRows};
    place.device.link_gbps = 0.3;
    place.device.cpu_gbps = 10.0;
    place.staging = eager_staging();
    Placed placed(model, place);
    expect_same_bits(expected, placed.run(tokens, kRows), mix);
    EXPECT_EQ(placed.runtime.stats().streamed_bytes, 0u);
  }
}

// Buffers with room for one to four experts in each half, and ten missing: every half is used again
// and again, before what it held was computed or after. On a link that is faster than the work, and
// on one whose copies come late.
TEST(PlacementInvariance, HoldsForPromptsThatUseBothBuffersManyTimes) {
  const OpenModel model("qwen2moe", "Q4_K_M");
  const std::vector<TokenId> tokens = text(90);
  const Logits expected = run_alone(*model, tokens);
  uint64_t slot_bytes = 0;
  for (const policy::LayerShape& layer : model.shape().layers) {
    slot_bytes = std::max(slot_bytes, policy::slot_bytes(layer));
  }
  for (const uint64_t in_half : {1, 2, 3, 4}) {
    for (const double delay_us : {0.0, 300.0}) {
      for (const double share : {0.0, 0.3}) {
        Place place{.share = share, .stream_bytes = 2 * in_half * slot_bytes};
        place.device.link_gbps = 1e3;
        place.device.delay_us = delay_us;
        place.device.cpu_gbps = 1e-3;  // so that the link is preferred
        Placed placed(model, place);
        expect_same_bits(expected, placed.run(tokens, 60),
                         cat(in_half, " in each half, ", delay_us, " us"));
        EXPECT_GT(placed.runtime.stats().streamed_bytes, 4 * slot_bytes);
      }
    }
  }
}

// Between every two steps.
void expect_same_while_shuffled(const OpenModel& model) {
  const Logits expected = run_alone(*model, text());
  Placed placed(model, {.share = 1.0});
  uint64_t round = 0;
  const auto shuffle = [&] { shuffle_residency(placed.runtime, *model, round); };
  expect_same_bits(expected, placed.run(text(), 9, shuffle), "shuffled");
  EXPECT_GT(placed.runtime.n_computed_by_host(), 20);  // of 62 calls of a dense model
}

TEST(PlacementInvariance, HoldsWhileResidencyIsShuffled) {
  for (const char* architecture : model::test::kArchitectures) {
    for (const char* mix : {"F32", "Q8_0", "Q4_K_M"}) {
      expect_same_while_shuffled(OpenModel(architecture, mix));
    }
  }
}

// Every token uses the network of every layer, so that each use of one that came would cost another
// one's: those that are there stay, whatever the policy.
TEST(PlacementInvariance, OfADenseModelTheSameNetworksStay) {
  model_file::SynthOptions options = model::test::tiny_options("qwen3", "Q8_0");
  options.config.n_layers = 8;
  const OpenModel model(options);
  const Logits expected = run_alone(*model, text());
  for (const PolicyKind policy : kPolicies) {
    Place place{.share = 0.5, .policy = policy};
    place.device.link_gbps = 100.0;
    Placed placed(model, place);
    int64_t n_early = 0;
    int n_steps = 0;
    expect_same_bits(expected,
                     placed.run(text(), 9,
                                [&] {
                                  placed.runtime.copies().finish();
                                  if (++n_steps == 3) n_early = placed.runtime.stats().n_copies;
                                }),
                     std::string(policy_name(policy)));
    const ExpertStats stats = placed.runtime.stats();
    EXPECT_EQ(n_early, 4) << policy_name(policy);
    EXPECT_EQ(stats.n_copies, n_early) << policy_name(policy);
    EXPECT_GE(stats.total().n_hits, 4 * (stats.n_tokens - 2)) << policy_name(policy);
  }
}

TEST(PlacementInvariance, OneFlippedByteInOneSlotChangesTheLogits) {
  const OpenModel model("qwen3moe", "Q8_0");
  const Logits expected = run_alone(*model, text());
  Placed placed(model, {.share = 1.0});
  bool is_flipped = false;
  const Logits got = placed.run(text(), 9, [&] {
    placed.runtime.copies().finish();
    if (std::exchange(is_flipped, true)) return;
    placed.runtime.slots().write_changes(placed.runtime.main());
    placed.runtime.main().call([&] {
      for (int e = 0; e < (*model).config().n_experts; ++e) {
        std::byte* const slot = shown_slot(placed.runtime.slots(), LayerId(1), e);
        if (slot) slot[7] ^= std::byte{0x40};
      }
    });
  });
  ASSERT_EQ(got.size(), expected.size());
  EXPECT_NE(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0);
}

TEST(PlacementInvariance, APoisonedSlotIsSeenInTheLogits) {
  const OpenModel model("qwen3moe", "Q8_0");
  Placed placed(model, {.share = 1.0});
  const Logits got = placed.run(text(), 9, [&] {
    placed.runtime.copies().finish();
    placed.runtime.slots().write_changes(placed.runtime.main());
    placed.runtime.main().call([&] {
      ExpertSlots& slots = placed.runtime.slots();
      for (int e = 0; e < (*model).config().n_experts; ++e) {
        std::byte* const slot = shown_slot(slots, LayerId(0), e);
        if (slot) {
          std::memset(slot, 0xff, slots.layout(LayerId(0)).n_bytes);
        }
      }
    });
  });
  EXPECT_TRUE(std::ranges::any_of(got, [](float l) { return !std::isfinite(l); }));
}

}  // namespace
}  // namespace sluice::engine::test
