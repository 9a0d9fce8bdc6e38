// What the expert runtime does when something fails, and that it decides by steps alone; its
// logits are placement_invariance_test.cpp's affair.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/expert_runtime.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "unit/engine/counted_device.h"
#include "unit/engine/held_worker.h"
#include "unit/engine/placed_model.h"

namespace sluice::engine::test {
namespace {

using namespace std::chrono_literals;
using backend::Clock;
using backend::RamDevice;

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

TEST(ExpertRuntime, AWorkerThatTakesTooLongFailsTheStepWithItsLayerAndOnceItIsBackStepsWork) {
  const OpenModel model("qwen3moe", "Q8_0");
  for (const StepCut cut : {StepCut::whole, StepCut::segmented}) {
    StandingClock clock;
    HeldWorker held;
    Place place{.share = 0.0, .cut = cut};
    int n_requests = 0;
    place.misses = {
        .deadline = 80ms, .now = clock.now(), .before_answer = [&](const auto& request) {
          if (request.layer.value != 1 || ++n_requests != 3) return;
          clock.wait_until_seen();
          clock.advance(81ms);
          held.stand();
        }};
    Placed placed(model, place);
    const std::string error = error_of(Errc::device, [&] { placed.run(text()); });
    expect_contains(error, "layer 1");
    expect_contains(error, "did not answer within 80 ms");
    EXPECT_EQ(placed.runtime.n_tokens({}), 9 + 1) << "a prompt and a token; the third step failed";
    expect_contains(error_of(Errc::device, [&] { placed.run(text()); }), "still compute");
    EXPECT_EQ(placed.runtime.n_tokens({}), 10);
    held.release();
    bool is_back = false;  // the worker has only just been let go
    while (!is_back) {
      try {
        placed.run(text(1));
        is_back = true;
      } catch (const Error&) {
      }
    }
    placed.runtime.truncate({}, 0);
    expect_same_bits(run_alone(*model, text()), placed.run(text()), "after a fault");
  }
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

// All experts are pinned: every pair is a hit, counted without a log.
TEST(ExpertRuntime, WithoutALogItComputesTheSame) {
  const OpenModel model("qwen2moe", "Q8_0");
  const policy::ModelShape shape = model.shape();
  std::vector<Logits> logits;
  for (const bool logs : {true, false}) {
    ExpertRuntimeOptions o = options_for(shape, {.share = 1.0, .logs = logs});
    for (policy::CacheLayer& layer : o.cache.layers) layer.pinned = true;
    backend::RamDevice device(Place{}.device);
    RegisteredExperts experts(*model, device);
    ThreadPool threads(1);
    ExpertRuntime runtime(experts, shape, device, threads, o);
    Logits& all = logits.emplace_back();
    for (const TokenId token : text(12)) {
      const StepRow row{token, {}, true};
      runtime.step({&row, 1}, policy::Phase::decode, {[&](int64_t, std::span<const float> l) {
                     all.insert(all.end(), l.begin(), l.end());
                   }});
    }
    EXPECT_EQ(runtime.stats().total().n_hits,
              int64_t{12} * (*model).config().n_layers * (*model).config().n_experts_used);
    EXPECT_EQ(runtime.stats().n_tokens, 12);
  }
  expect_same_bits(logits[0], logits[1], "without a log");
}

TEST(ExpertRuntime, ADeviceThatIsTooSmallSaysSoAtTheStart) {
  const OpenModel model("qwen3moe", "Q8_0");
  Place place{.share = 1.0};
  place.device.n_bytes = 64 * kKiB;
  expect_contains(error_of(Errc::out_of_memory, [&] { Placed placed(model, place); }),
                  "cannot allocate");
}

// How many copies a text causes depends on how fast they come, so the text is run until some
// failed.
TEST(ExpertRuntime, CopiesThatFailAreMadeAgainAndTheAnswerIsRight) {
  const OpenModel model("qwen3moe", "Q8_0");
  const Logits expected = run_alone(*model, text());
  std::atomic<bool> is_placed = false;
  Place place{.share = 0.3};
  place.device.before_copy = [&](int64_t n_before) {
    if (is_placed && n_before % 7 == 0) throw Error(Errc::device, "the link is down");
  };
  Placed placed(model, place);
  is_placed = true;
  while (placed.runtime.stats().n_failed_copies < 3 && !HasFailure()) {
    placed.runtime.truncate({}, 0);
    expect_same_bits(expected, placed.run(text()), "with failing copies");
  }
  expect_contains(placed.runtime.copies().last_fault(), "the link is down");
}

TEST(ExpertRuntime, ACopyThatFailsInAWideStepFailsTheStepAndTheNextOneWorks) {
  const OpenModel model("qwen3moe", "Q8_0");
  Place place{.share = 0.1};
  place.device.cpu_gbps = 1e-3;  // so that the link is preferred
  std::atomic<bool> is_down = false;
  place.device.before_copy = [&](int64_t) {
    if (is_down) throw Error(Errc::device, "the link is down");
  };
  Placed placed(model, place);
  is_down = true;
  expect_contains(error_of(Errc::device, [&] { placed.run(text(), 40); }), "the link is down");
  is_down = false;
  EXPECT_EQ(placed.runtime.n_tokens({}), 0);
  expect_same_bits(run_alone(*model, text()), placed.run(text(), 40), "after the fault");
  EXPECT_GT(placed.runtime.stats().streamed_bytes, 0u);
}

// The prompt that finds the copy stream failed ends with that; but what was to be copied into slots
// must still come, or the table would show slots that hold something else.
TEST(ExpertRuntime, AMoveWhoseCopyFailedBeforeAPromptIsMadeAgain) {
  const OpenModel model("qwen3moe", "Q8_0");
  Place place{.share = 0.5, .policy = policy::PolicyKind::lru};
  std::atomic<bool> fails_next = false, has_failed = false;
  place.device.before_copy = [&](int64_t) {
    if (!fails_next.exchange(false)) return;
    has_failed = true;
    throw Error(Errc::device, "the link is down");
  };
  Placed placed(model, place);
  fails_next = true;
  const std::vector<TokenId> same(30, 7);  // whose experts are wanted again and again
  placed.run(std::span(same).first(1));
  ASSERT_GT(placed.runtime.copies().n_copies(), 0);
  while (!has_failed) std::this_thread::yield();
  expect_contains(error_of(Errc::device, [&] { placed.run(text(), 40); }), "the link is down");
  placed.runtime.truncate({}, 0);
  expect_same_bits(run_alone(*model, same), placed.run(same, 1), "after the fault");
}

// What was begun is dropped: the stream can record again, and does what it is asked.
TEST(ExpertRuntime, AStepThatCannotBeRecordedSaysSoEveryTime) {
  const OpenModel model("qwen3moe", "Q8_0");
  CountedDevice device(std::make_unique<backend::RamDevice>(Place{}.device));
  PlacedOn placed(model, device, {});
  device.refuses_recordings = true;
  for (int i = 0; i < 2; ++i) {
    expect_contains(error_of(Errc::device, [&] { placed.run(text(1)); }), "not recorded");
    EXPECT_EQ(placed.runtime.n_tokens({}), 0);
  }
  EXPECT_EQ(device.counts.n_replays, 0);
  device.refuses_recordings = false;
  expect_same_bits(run_alone(*model, text()), placed.run(text()), "afterwards");
}

// How a wide step attends may depend on the length of its text (StepView::n_past), which what is
// recorded cannot know: it serves all lengths.
TEST(ExpertRuntime, WideStepsAreToldHowLongTheTextIsAndRecordedOnesAreNot) {
  const OpenModel model("qwen3moe", "Q8_0");
  const int n_layers = (*model).config().n_layers;
  for (const StepCut cut : {StepCut::whole, StepCut::segmented}) {
    CountedDevice device(std::make_unique<backend::RamDevice>(Place{}.device));
    std::vector<std::pair<int64_t, int64_t>> told;  // rows, n_past
    device.on_attend = [&](const backend::StepView& step) {
      told.emplace_back(step.n_rows, step.n_past);
    };
    PlacedOn placed(model, device, {.share = 0.3, .cut = cut, .n_sequences = 2});
    const auto step = [&](int n_rows, int sequence) {
      told.clear();
      const std::vector<StepRow> rows(static_cast<size_t>(n_rows), {7, SequenceId(sequence), true});
      placed.runtime.step(rows, policy::Phase::prefill, {[](int64_t, std::span<const float>) {}});
      return told;
    };
    using Told = std::vector<std::pair<int64_t, int64_t>>;
    const auto all = [&](int64_t n_rows, int64_t n_past) {
      return Told(static_cast<size_t>(n_layers), {n_rows, n_past});
    };
    EXPECT_EQ(step(20, 0), all(20, 20));
    EXPECT_EQ(step(17, 0), all(17, 37));
    EXPECT_EQ(step(18, 1), all(18, 18)) << "of sequences that have rows";
    if (cut == StepCut::whole) {
      EXPECT_EQ(step(1, 0), all(1, 0)) << "recorded";
      EXPECT_EQ(step(1, 0), Told{}) << "replayed";
      EXPECT_EQ(step(3, 1), all(4, 0)) << "recorded, padded";
    } else {
      EXPECT_EQ(step(1, 0), all(1, 38));
    }
  }
}

// Whatever is thrown, and wherever: in the host's layers, in the device's, by who gets the logits.
TEST(ExpertRuntime, AStepThatThrowsLeavesTheTextAsItWas) {
  const OpenModel model("qwen3moe", "Q8_0");
  const std::vector<TokenId> tokens = text();
  const Logits expected = run_alone(*model, tokens);
  for (const StepCut cut : {StepCut::whole, StepCut::segmented}) {
    for (const int layer : {0, 1}) {
      for (const size_t n_rows : {1u, 20u}) {
        bool throws = false;
        Place place{.share = 0.3, .n_host_layers = 1, .cut = cut};
        if (layer == 1) place.staging = eager_staging();
        const OnLayer fail = [&](int n_done, int) {
          if (n_done == layer + 1 && std::exchange(throws, false)) throw std::bad_alloc();
        };
        Placed placed(model, place);
        placed.run(text(9));
        const std::vector<StepRow> rows(n_rows, {1, {}, true});
        throws = true;
        EXPECT_THROW(placed.runtime.step(rows, policy::Phase::prefill, {{}, fail}), std::bad_alloc);
        EXPECT_EQ(placed.runtime.n_tokens({}), 9);
        const auto refuse = [](int64_t, std::span<const float>) { throw std::runtime_error("no"); };
        EXPECT_THROW(placed.runtime.step(rows, policy::Phase::prefill, {refuse}),
                     std::runtime_error);
        EXPECT_EQ(placed.runtime.n_tokens({}), 9);
        expect_same_bits(std::span(expected).subspan(9 * 261),
                         placed.run(std::span(tokens).subspan(9), n_rows), cat("layer ", layer));
      }
    }
  }
}

// Of the device's memory, in one piece, and of what both sides see.
TEST(ExpertRuntime, TakesWhatThePlannerPricedToTheByte) {
  for (const char* architecture : model::test::kAttending) {
    for (const char* mix : {"F32", "Q4_K_M"}) {
      const OpenModel model(architecture, mix);
      for (const double share : {0.0, 0.4, 1.0}) {
        for (const int n_host_layers : {0, 1}) {
          Place place{.share = share, .n_host_layers = n_host_layers, .staging = eager_staging()};
          place.max_rows = n_host_layers > 0 ? 200 : 8;  // more than the mailbox holds, and fewer
          place.n_sequences = 1 + n_host_layers;
          Placed placed(model, place);
          const std::string what = cat(architecture, " ", mix, ", ", share, ", ", n_host_layers);
          const uint64_t taken = placed.device.options().n_bytes - placed.device.free_bytes();
          const policy::Price& price = placed.runtime.price();
          EXPECT_EQ(taken, price.vram.total()) << what;
          EXPECT_EQ(placed.device.n_blocks(), 1) << what;
          EXPECT_EQ(placed.device.pinned_bytes(), price.pinned.total()) << what;
          place.staging = {};
          EXPECT_EQ(Placed(model, place).device.pinned_bytes(),
                    price.pinned.total() - price.pinned.foresight)
              << what;
        }
      }
    }
  }
}

// Whatever the limit is: some layers registered, a ring, or not even that.
TEST(ExpertRuntime, TakesTheRingThatThePlannerPriced) {
  const OpenModel model("qwen3moe", "Q8_0");
  Place place{.share = 0.4};
  const uint64_t all = Placed(model, place).device.pinned_bytes();
  const uint64_t expert = model.shape().layers[0].expert_bytes;
  for (const uint64_t less : {uint64_t{1}, 8 * expert, 9 * expert, 12 * expert, 20 * expert}) {
    place.device.pin_limit = all - less;
    Placed placed(model, place);
    const policy::PinnedBytes& price = placed.runtime.price().pinned;
    EXPECT_EQ(placed.device.pinned_bytes(), price.total() - price.foresight) << less;
  }
}

TEST(ExpertRuntime, WithoutLeaveToRegisterExpertsGoThroughARingOrStayWithTheCpu) {
  const OpenModel model("qwen3moe", "Q8_0");
  const Logits expected = run_alone(*model, text());
  const auto n_pinned = [&](uint64_t pin_limit) {
    Place place{.share = 0.4, .max_rows = 24};
    place.device.pin_limit = pin_limit;
    place.device.cpu_gbps = 1e-3;  // so that prompts stream, through the ring where there is one
    Placed placed(model, place);
    expect_same_bits(expected, placed.run(text()), cat("pinned memory of ", pin_limit));
    placed.runtime.truncate({}, 0);
    expect_same_bits(expected, placed.run(text(), 24), cat("prompt, pinned memory of ", pin_limit));
    const HostExperts& host = placed.runtime.host_experts();
    return std::pair(host.n_registered(), host.is_copyable(LayerId(1)));
  };
  const uint64_t layer = model.shape().layers[0].expert_bytes * 10;
  const uint64_t needed = Placed(model, {.share = 0.4, .max_rows = 24}).device.pinned_bytes();
  EXPECT_EQ(n_pinned(needed), std::pair(2, true));
  EXPECT_EQ(n_pinned(needed - layer / 2), std::pair(1, true));  // layer 1 by the ring
  EXPECT_EQ(n_pinned(needed - layer), std::pair(1, false));
  EXPECT_EQ(n_pinned(needed - 2 * layer), std::pair(0, false));
}

// Experts that come and go are data of the step that finds them: with the event behind which a
// boundary's copies begin, a token is two submissions at most, however many they are.
TEST(ExpertRuntime, ADecodedTokenIsOneSubmissionAndOneWaitWhateverMoves) {
  const OpenModel model("qwen3moe", "Q8_0");
  Place place{.share = 0.5, .policy = policy::PolicyKind::lru};
  int64_t n_submitted = 0, n_waits = 0;
  const auto count = [](int64_t& n) {
    return [&n](const std::string& stream) { n += stream == "main"; };
  };
  place.device.on_submit = count(n_submitted);
  place.device.on_finish = count(n_waits);
  Placed placed(model, place);
  placed.run(text(10), 1);  // records
  n_submitted = n_waits = 0;
  const int64_t n_before = placed.runtime.copies().n_copies();
  StepListener listener;
  listener.on_pick = [](int64_t, const backend::PickedRow&) {};
  constexpr int64_t kTokens = 60;
  for (const TokenId token : random_tokens(kTokens, 11)) {
    // As many move as can, however slow the machine is.
    while (!placed.runtime.copies().is_idle()) std::this_thread::yield();
    const StepRow row{token, {}, false, 1};
    placed.runtime.step({&row, 1}, policy::Phase::decode, listener);
  }
  EXPECT_GT(placed.runtime.copies().n_copies() - n_before, 2 * kTokens);
  EXPECT_EQ(n_waits, kTokens);
  EXPECT_LE(n_submitted, 2 * kTokens);
}

// What a step has read over the link itself does not cross again to stay: the next step copies it,
// as a part of its one submission.
TEST(ExpertRuntime, WhatWasReadOverTheLinkStaysWithoutCrossingAgain) {
  const OpenModel model("qwen3moe", "Q8_0");
  for (const StepCut cut : {StepCut::whole, StepCut::segmented}) {
    Place place{.share = 0.5, .policy = policy::PolicyKind::lru, .link_share = 1.0, .cut = cut};
    int64_t n_submitted = 0;
    place.device.on_submit = [&](const std::string& stream) { n_submitted += stream == "main"; };
    Placed placed(model, place);
    const std::vector<TokenId> tokens = text(60);
    const Logits expected = run_alone(*model, tokens);
    Logits all = placed.run(std::span(tokens).first(10), 1);
    const int64_t n_before = placed.runtime.copies().n_copies();
    n_submitted = 0;
    const Logits rest = placed.run(std::span(tokens).subspan(10), 1);
    all.insert(all.end(), rest.begin(), rest.end());
    expect_same_bits(expected, all, "by the link");
    EXPECT_GT(placed.runtime.copies().n_landed(), 50);
    EXPECT_EQ(placed.runtime.copies().n_copies(), n_before);
    if (cut == StepCut::whole) {
      EXPECT_LE(n_submitted, 2 * 50) << "a step and its logits";
    }
  }
}

// The prompt's experts come to the place where those of the step before still stand.
TEST(ExpertRuntime, APromptBehindStepsThatReadTheLinkDoesNotDisturbWhatTheyLeft) {
  const OpenModel model("qwen3moe", "Q8_0");
  Place place{.share = 0.3, .policy = policy::PolicyKind::lru, .link_share = 1.0};
  Placed placed(model, place);
  const std::vector<TokenId> tokens = text(90);
  const Logits expected = run_alone(*model, tokens);
  Logits all;
  for (size_t begin = 0; begin < tokens.size(); begin += 30) {  // 3 alone, then 27 together
    for (const auto& [first, n] : {std::pair{begin, 3}, std::pair{begin + 3, 27}}) {
      const Logits some =
          placed.run(std::span(tokens).subspan(first, static_cast<size_t>(n)), n == 3 ? 1 : 27);
      all.insert(all.end(), some.begin(), some.end());
    }
  }
  expect_same_bits(expected, all, "prompts between tokens");
  EXPECT_GT(placed.runtime.copies().n_landed(), 5);
}

TEST(ExpertRuntime, AStepThatFailsDoesNotLeaveHalfOfWhatLanded) {
  const OpenModel model("qwen3moe", "Q8_0");
  Place place{.share = 0.5, .policy = policy::PolicyKind::lru, .link_share = 1.0};
  Placed placed(model, place);
  const std::vector<TokenId> tokens = text(40);
  const Logits expected = run_alone(*model, tokens);
  Logits all;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const StepRow row{tokens[i], {}, true};
    if (i % 5 == 4) {
      const StepListener thrower{
          [](int64_t, std::span<const float>) { throw std::runtime_error("enough"); }};
      EXPECT_THROW(placed.runtime.step({&row, 1}, policy::Phase::decode, thrower),
                   std::runtime_error);
    }
    const Logits some = placed.run(std::span(tokens).subspan(i, 1), 1);
    all.insert(all.end(), some.begin(), some.end());
  }
  expect_same_bits(expected, all, "after steps that failed");
}

TEST(ExpertRuntime, AProfileSaysWhatToLoadFirst) {
  const OpenModel model("qwen3moe", "Q8_0");
  policy::RoutingProfile profile(2, 10);
  std::vector<uint32_t> uses(20, 0);
  uses[3] = uses[7] = uses[12] = uses[19] = 50;
  profile.add_run(uses, 100);
  Placed placed(model, {.share = 0.2, .profile = &profile});
  for (size_t i = 0; i < uses.size(); ++i) {
    const LayerId layer(static_cast<int32_t>(i / 10));
    const ExpertId expert(static_cast<int32_t>(i % 10));
    EXPECT_EQ(placed.runtime.slots().published({layer, expert}) != nullptr, uses[i] > 0) << i;
  }
}

}  // namespace
}  // namespace sluice::engine::test
