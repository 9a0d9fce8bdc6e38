// Placement invariance on a GPU: wherever experts are, however they move, and whoever drives the
// steps, the logits are those of a GPU that holds all of them, to the bit.
// SPDX-License-Identifier: Apache-2.0
#include "gpu/device.h"
#include "unit/engine/held_worker.h"
#include "unit/engine/placed_model.h"
#include "unit/engine/speculation.h"

namespace sluice::engine::test {
namespace {

class CudaInvarianceTest : public backend::cuda::test::DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped()) device = backend::make_cuda_device(0);
  }
  std::unique_ptr<backend::Device> device;
};

OpenModel many_experts_for_gpu(const char* architecture, const char* mix) {
  model_file::SynthOptions options = model::test::tiny_options(architecture, mix);
  options.config.n_experts = 32;
  options.config.n_ctx_train = 1024;
  return OpenModel(options);
}

// Of a device that holds everything.
Logits resident_logits(const OpenModel& model, backend::Device& device, Place place,
                       std::span<const TokenId> tokens, size_t n_prompt) {
  place.share = 1.0;
  return PlacedOn(model, device, place).run(tokens, n_prompt);
}

// A GPU takes float experts in steps of 16 rows at most.
int most_rows(std::string_view mix) { return mix == "F32" ? 16 : 64; }

TEST_F(CudaInvarianceTest, HoldsForEveryArchitectureMixAndBudget) {
  const std::vector<TokenId> tokens = text(120);
  size_t i = 0;
  LayerStats all;
  for (const char* architecture : model::test::kArchitectures) {
    for (const char* mix : {"F32", "Q8_0", "Q4_K_M"}) {
      const OpenModel model = many_experts_for_gpu(architecture, mix);
      Place place{.n_ctx = 128, .max_rows = most_rows(mix)};
      const size_t n_prompt = static_cast<size_t>(place.max_rows) - 3;
      const Logits expected = resident_logits(model, *device, place, tokens, n_prompt);
      for (const double share : {0.0, 0.03, 0.1, 0.3, 0.6}) {
        place.share = share;
        place.cut = i / 2 % 3 == 0 ? StepCut::segmented : StepCut::whole;
        place.link_share = static_cast<double>(i % 3) / 2;
        place.device.cpu_gbps = i % 2 == 0 ? 1e3 : 1e-3;  // who brings a prompt's experts
        place.staging = i++ % 5 < 2 ? eager_staging() : StagingOptions{};
        PlacedOn placed(model, *device, place);
        expect_same_bits(expected, placed.run(tokens, n_prompt),
                         cat(architecture, " ", mix, ", ", share, " of the experts, link share ",
                             place.link_share, ", segmented ", place.cut == StepCut::segmented,
                             ", prefetch ", place.staging.enabled));
        const LayerStats sum = placed.runtime.stats().total();
        all.n_hits += sum.n_hits, all.n_staged += sum.n_staged;
        all.n_link += sum.n_link, all.n_cpu += sum.n_cpu;
        const int64_t n_calls = sum.n_hits + sum.n_staged + sum.n_link + sum.n_cpu;
        const model::Config& c = (*model).config();
        const auto n_decoded = static_cast<int64_t>(tokens.size() - n_prompt);
        EXPECT_EQ(n_calls, n_decoded * c.n_layers * c.n_experts_used);
      }
    }
  }
  EXPECT_GT(all.n_hits, 0);
  EXPECT_GT(all.n_staged, 0);
  EXPECT_GT(all.n_link, 0);
  EXPECT_GT(all.n_cpu, 0);
}

// Mapped files are woven on their way to the device.
TEST_F(CudaInvarianceTest, HoldsForRarerFormsOfFiles) {
  const std::vector<TokenId> tokens = text(60);
  for (const model::test::RareForm& form : model::test::rare_forms()) {
    for (const char* mix : {"F32", "Q4_K_M"}) {
      const OpenModel copied(form.options(mix)), mapped(form.options(mix), Weights::mapped);
      Place place{.share = 1.0, .n_ctx = 64, .max_rows = most_rows(mix)};
      const Logits expected = resident_logits(copied, *device, place, tokens, 13);
      place.weaves = true;
      expect_same_bits(expected, PlacedOn(mapped, *device, place).run(tokens, 13),
                       cat(form.name, " ", mix, ", mapped"));
      place.weaves = false;
      for (const double share : {0.0, 0.3}) {
        place.share = share;
        expect_same_bits(expected, PlacedOn(copied, *device, place).run(tokens, 13),
                         cat(form.name, " ", mix, ", ", share, " of the experts"));
      }
    }
  }
}

// A token of each of so many sequences in a step: widths in between are padded.
TEST_F(CudaInvarianceTest, HoldsForEveryWidthOfAStep) {
  constexpr int kWidths[] = {1, 3, 2, 4, 5, 8, 11, 16, 7, 1, 13};
  const auto logits_of = [&](const OpenModel& model, Place place) {
    PlacedOn placed(model, *device, place);
    Logits got;
    for (int t = 0; t < 44; ++t) {
      std::vector<StepRow> rows;
      for (int s = 0; s < kWidths[t % std::size(kWidths)]; ++s) {
        rows.push_back({static_cast<TokenId>(random_bits(7, uint64_t(t * 16 + s)) % 261),
                        SequenceId((s + t) % 16), true});
      }
      placed.runtime.step(rows, policy::Phase::decode,
                          {[&](int64_t, std::span<const float> logits) {
                            got.insert(got.end(), logits.begin(), logits.end());
                          }});
    }
    EXPECT_EQ(placed.runtime.n_forwards(), 5);
    return got;
  };
  for (const char* architecture : model::test::kArchitectures) {
    const OpenModel model(architecture, "Q4_K_M");
    Place place{.share = 1.0, .n_ctx = 64, .n_sequences = 16};
    const Logits expected = logits_of(model, place);
    place.share = 0.3, place.link_share = 0.3;
    for (const bool prefetches : {false, true}) {
      if (prefetches) place.staging = eager_staging();
      expect_same_bits(expected, logits_of(model, place),
                       cat(architecture, ", prefetch ", prefetches));
    }
  }
}

// So many rows a step.
Logits take_steps(StepDriver& driver, std::span<const TokenId> tokens, size_t width,
                  policy::Phase phase, SequenceId sequence = {}) {
  Logits all;
  for (size_t begin = 0; begin < tokens.size(); begin += width) {
    std::vector<StepRow> rows;
    for (const TokenId t : tokens.subspan(begin, std::min(width, tokens.size() - begin))) {
      rows.push_back({t, sequence, true});
    }
    driver.step(rows, phase, {[&](int64_t, std::span<const float> logits) {
                  all.insert(all.end(), logits.begin(), logits.end());
                }});
  }
  return all;
}

Logits take(StepDriver& driver, std::span<const TokenId> tokens, policy::Phase phase,
            SequenceId sequence = {}) {
  return take_steps(driver, tokens, phase == policy::Phase::prefill ? 64 : 1, phase, sequence);
}

// A text that goes back, and a fork, have the bits of texts that were never elsewhere.
TEST_F(CudaInvarianceTest, GoingBackAndForkingLeaveNoTraceInRecurrentStates) {
  const std::vector<TokenId> prompt = random_tokens(40, 1), answer = random_tokens(19, 2),
                             other = random_tokens(9, 3);
  for (const char* architecture : model::test::kHybrids) {
    const OpenModel model = many_experts_for_gpu(architecture, "Q4_K_M");
    const Place place{.share = 0.3, .n_ctx = 128, .n_sequences = 2};
    for (int back = 1; back <= 16; ++back) {
      const size_t kept = answer.size() - static_cast<size_t>(back);
      const auto n_kept = static_cast<int>(prompt.size() + kept);
      PlacedOn fresh(model, *device, place), gone(model, *device, place);
      take(fresh.runtime, prompt, policy::Phase::prefill);
      take(fresh.runtime, std::span(answer).first(kept), policy::Phase::decode);
      take(gone.runtime, prompt, policy::Phase::prefill);
      take(gone.runtime, answer, policy::Phase::decode);
      gone.runtime.fork(SequenceId(0), SequenceId(1), n_kept);
      gone.runtime.truncate({}, n_kept);
      const Logits expected = take(fresh.runtime, other, policy::Phase::decode);
      expect_same_bits(expected, take(gone.runtime, other, policy::Phase::decode),
                       cat(architecture, ", back by ", back));
      expect_same_bits(expected, take(gone.runtime, other, policy::Phase::decode, SequenceId(1)),
                       "forked");
    }
  }
}

// What stays had its first tokens, then steps that were padded to 16 rows, as the fresh text has.
TEST_F(CudaInvarianceTest, GoingBackAgainAndAgainEqualsTheTextThatStays) {
  const std::vector<TokenId> tokens = random_tokens(150, 20);
  for (const char* architecture : model::test::kHybrids) {
    const OpenModel model = many_experts_for_gpu(architecture, "Q4_K_M");
    const Place place{.share = 0.3, .n_ctx = 256};
    PlacedOn fresh(model, *device, place), gone(model, *device, place);
    take(gone.runtime, std::span(tokens).first(3), policy::Phase::prefill);
    const size_t n = speculate(gone.runtime, tokens, 3);
    ASSERT_GT((n - 3) % 16, 8u) << "the fresh text's last step has 16 rows too";
    take(fresh.runtime, std::span(tokens).first(3), policy::Phase::prefill);
    take_steps(fresh.runtime, std::span(tokens).subspan(3, n - 3), 16, policy::Phase::decode);
    expect_same_bits(take(fresh.runtime, std::span(tokens).subspan(n), policy::Phase::decode),
                     take(gone.runtime, std::span(tokens).subspan(n), policy::Phase::decode),
                     architecture);
    EXPECT_EQ(gone.runtime.went_back().n_computed, 0);
  }
}

// Takes experts out of the table and puts them back at random, between every two steps.
TEST_F(CudaInvarianceTest, HoldsFor512TokensWhileResidencyIsShuffled) {
  const std::vector<TokenId> tokens = text(512);
  for (const char* architecture : {"qwen3moe", "qwen35moe", "qwen3next"}) {
    for (const char* mix : {"F32", "Q8_0", "Q4_K_M"}) {
      const OpenModel model = many_experts_for_gpu(architecture, mix);
      Place place{.share = 1.0, .n_ctx = 512, .max_rows = 16};
      const Logits expected = resident_logits(model, *device, place, tokens, 9);
      PlacedOn placed(model, *device, place);
      uint64_t round = 0;
      const auto shuffle = [&] {
        placed.runtime.set_link_share(static_cast<float>(round % 3) / 2);
        shuffle_residency(placed.runtime, *model, round);
      };
      expect_same_bits(expected, placed.run(tokens, 9, shuffle), cat(architecture, " ", mix));
      EXPECT_GT(placed.runtime.n_computed_by_host(), 50);
    }
  }
}

// A worker that never answers: the device's wait ends with the deadline, the error names the layer,
// and the next request has the bits of one before.
TEST_F(CudaInvarianceTest, AWorkerThatStandsStillFailsTheStepAndNothingElse) {
  const OpenModel model = many_experts_for_gpu("qwen3moe", "Q4_K_M");
  HeldWorker held;
  std::atomic<bool> stands_still = false;
  Place place{.share = 0.1, .n_ctx = 128, .max_rows = 16};
  place.misses.deadline = std::chrono::milliseconds(200);
  place.misses.before_answer = [&](const backend::Mailbox::Request& request) {
    if (stands_still && request.layer.value == 1) held.stand();
  };
  PlacedOn placed(model, *device, place);
  const Logits before = placed.run(text(30));
  placed.runtime.truncate({}, 0);
  stands_still = true;
  try {
    placed.run(text(30));
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::device);
    EXPECT_EQ(std::string(e.what()).rfind("layer 1", 0), 0u) << e.what();
  }
  stands_still = false;
  held.release();
  // Until the worker has let go of the old request, steps fail at once.
  const auto start = std::chrono::steady_clock::now();
  Logits after;
  while (after.empty() && std::chrono::steady_clock::now() - start < std::chrono::minutes(1)) {
    placed.runtime.truncate({}, 0);
    try {
      after = placed.run(text(30));
    } catch (const Error& e) {
      ASSERT_EQ(e.code(), Errc::device);
    }
  }
  expect_same_bits(before, after, "after the fault");
}

}  // namespace
}  // namespace sluice::engine::test
