// The Engine through its public header: the same tokens and logits as a Session's, alone and with
// others; what is shared between texts; and every way in which a request ends, without touching the
// others.
// SPDX-License-Identifier: Apache-2.0
#include "sluice/engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <future>

#include "base/random.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

using namespace std::chrono_literals;

// What a request did, collected by its callbacks; ready when it has ended.
struct Outcome {
  std::vector<TokenId> tokens;
  Logits logits;  // of every choice
  RequestEnd end;
};

// Draws by the logits and a seed: as a sampler does, without one.
TokenId draw_token(std::span<const float> logits, uint64_t seed, uint64_t n) {
  double sum = 0.0;
  for (const float l : logits) sum += std::exp(static_cast<double>(l));
  double left = static_cast<double>(random_bits(seed, n) >> 11) * 0x1p-53 * sum;
  for (size_t i = 0; i < logits.size(); ++i) {
    left -= std::exp(static_cast<double>(logits[i]));
    if (left < 0.0) return static_cast<TokenId>(i);
  }
  return static_cast<TokenId>(logits.size() - 1);
}

std::function<TokenId(std::span<const float>)> chooser(Logits& seen, uint64_t seed) {
  return [&seen, seed, n = uint64_t{0}](std::span<const float> logits) mutable {
    seen.insert(seen.end(), logits.begin(), logits.end());
    return draw_token(logits, seed, n++);
  };
}

class Submitted {
 public:
  Submitted(Engine& engine, Request request, std::optional<uint64_t> seed = std::nullopt) {
    const auto out = out_;  // callbacks may outlive this
    if (seed) {
      request.choose = [out, choose = chooser(out->logits, *seed)](std::span<const float> logits) {
        return choose(logits);
      };
    }
    request.on_token = [out, inner = std::move(request.on_token)](TokenId token) {
      out->tokens.push_back(token);
      return !inner || inner(token);
    };
    request.on_end = [out, done = done_](const RequestEnd& end) {
      out->end = end;
      done->set_value();
    };
    id = engine.submit(std::move(request));
  }

  const Outcome& wait() {
    EXPECT_EQ(is_done_.wait_for(120s), std::future_status::ready);
    return *out_;
  }

  uint64_t id = 0;

 private:
  std::shared_ptr<Outcome> out_ = std::make_shared<Outcome>();
  std::shared_ptr<std::promise<void>> done_ = std::make_shared<std::promise<void>>();
  std::shared_future<void> is_done_{done_->get_future()};
};

struct EngineTest : testing::Test {
  EngineTest() : model(Model::load(file.path(), {.n_threads = 2})) {}

  Outcome by_session(const std::vector<TokenId>& prompt, int n_tokens,
                     std::optional<uint64_t> seed = std::nullopt) const {
    Outcome out;
    Session session(model, options().session);
    GenerateOptions generate{.n_tokens = n_tokens};
    if (seed) generate.choose = chooser(out.logits, *seed);
    out.tokens = session.generate(prompt, generate).tokens;
    return out;
  }
  static EngineOptions options() { return {.session = {.n_ctx = 512, .prefill_chunk = 64}}; }

  OpenModel file{"qwen3moe", "Q8_0"};
  Model model;
};

void expect_same(const Outcome& got, const Outcome& expected, const std::string& what) {
  EXPECT_EQ(got.tokens, expected.tokens) << what;
  ASSERT_EQ(got.logits.size(), expected.logits.size()) << what;
  EXPECT_EQ(std::memcmp(got.logits.data(), expected.logits.data(), got.logits.size() * 4), 0)
      << what;
}

TEST_F(EngineTest, GivesASessionsTokensAloneAndWithOthers) {
  std::vector<std::vector<TokenId>> prompts;
  std::vector<Outcome> expected;
  for (uint64_t i = 0; i < 8; ++i) {
    prompts.push_back(random_tokens(1 + 37 * i, i));
    expected.push_back(by_session(prompts[i], 24, i));
  }
  Engine alone(model, options());
  for (uint64_t i = 0; i < 8; ++i) {
    const Outcome got = Submitted(alone, {.prompt = prompts[i], .n_tokens = 24}, i).wait();
    expect_same(got, expected[i], cat("alone, request ", i));
    EXPECT_EQ(got.end.reason, StopReason::length);
    EXPECT_EQ(got.end.n_prompt, std::ssize(prompts[i]));
    EXPECT_EQ(got.end.n_new, 24);
  }
  Engine together(model, options());
  std::vector<Submitted> all;
  for (uint64_t i = 0; i < 8; ++i) {
    all.emplace_back(together, Request{.prompt = prompts[i], .n_tokens = 24}, i);
  }
  for (uint64_t i = 0; i < 8; ++i) {
    expect_same(all[i].wait(), expected[i], cat("of eight, request ", i));
  }
  together.drain();
  const EngineStats stats = together.stats();
  EXPECT_EQ(stats.n_finished, 8);
  EXPECT_EQ(stats.n_new_tokens, 8 * 24);
  EXPECT_LT(stats.n_steps, 8 * 24) << "steps were shared";
}

TEST_F(EngineTest, TakesTheMostProbableWhereNobodyChooses) {
  const std::vector<TokenId> prompt = random_tokens(30, 3);
  Engine engine(model, options());
  EXPECT_EQ(Submitted(engine, {.prompt = prompt, .n_tokens = 12}).wait().tokens,
            by_session(prompt, 12).tokens);
  const Outcome none = Submitted(engine, {.prompt = prompt, .n_tokens = 0}).wait();
  EXPECT_TRUE(none.tokens.empty());
  EXPECT_EQ(none.end.reason, StopReason::length);
}

TEST_F(EngineTest, EndsWhereASessionDoes) {
  const std::vector<TokenId> prompt = random_tokens(490, 4);
  Engine engine(model, options());
  const Outcome full = Submitted(engine, {.prompt = prompt}).wait();
  EXPECT_EQ(full.end.reason, StopReason::context_full);
  EXPECT_EQ(full.tokens, by_session(prompt, 100).tokens);
  const TokenId last = full.tokens.back();
  const auto at = std::ranges::find(full.tokens, last) - full.tokens.begin();
  const Outcome ended = Submitted(engine, {.prompt = prompt, .end_tokens = {last}}).wait();
  EXPECT_EQ(ended.end.reason, StopReason::end_of_text);
  EXPECT_EQ(std::ssize(ended.tokens), at);
  const Outcome stopped =
      Submitted(engine, {.prompt = prompt, .on_token = [](TokenId) { return false; }}).wait();
  EXPECT_EQ(stopped.end.reason, StopReason::callback);
  EXPECT_EQ(stopped.tokens.size(), 1u);
}

TEST_F(EngineTest, ComputesWhatTextsShareOnce) {
  const std::vector<TokenId> document = random_tokens(300, 5);
  const auto question = [&](uint64_t i) {
    std::vector<TokenId> prompt = document;
    const auto more = random_tokens(10, 100 + i);
    prompt.insert(prompt.end(), more.begin(), more.end());
    return prompt;
  };
  Engine engine(model, options());
  const Outcome first = Submitted(engine, {.prompt = question(0), .n_tokens = 8}, 0).wait();
  EXPECT_EQ(first.end.n_reused, 0);
  const Outcome second = Submitted(engine, {.prompt = question(1), .n_tokens = 8}, 1).wait();
  EXPECT_EQ(second.end.n_reused, 300);
  expect_same(second, by_session(question(1), 8, 1), "after another that begins like it");
  // The conversation goes on: prompt and answer are there, but for the last token.
  std::vector<TokenId> longer = question(0);
  longer.insert(longer.end(), first.tokens.begin(), first.tokens.end());
  longer.push_back(7);
  EXPECT_EQ(Submitted(engine, {.prompt = longer, .n_tokens = 1}).wait().end.n_reused, 310 + 7);
  engine.drain();
  EXPECT_EQ(engine.stats().n_prompt_tokens, 310 + 10 + 2);
  EXPECT_EQ(engine.stats().n_reused_tokens, 300 + 317);
}

TEST_F(EngineTest, TextsThatArriveTogetherShareToo) {
  std::vector<TokenId> prompt = random_tokens(400, 6);
  Engine engine(model, options());
  std::promise<void> go;
  Submitted gate(engine, {.prompt = {1}, .n_tokens = 1, .on_token = [&](TokenId) {
                            go.get_future().wait();
                            return true;
                          }});
  std::vector<Submitted> all;
  std::vector<std::vector<TokenId>> prompts;
  for (uint64_t i = 0; i < 4; ++i) {
    prompts.push_back(prompt);
    prompts.back().push_back(static_cast<TokenId>(i));
    all.emplace_back(engine, Request{.prompt = prompts.back(), .n_tokens = 4}, i);
  }
  go.set_value();
  for (uint64_t i = 0; i < 4; ++i) {
    expect_same(all[i].wait(), by_session(prompts[i], 4, i), cat("request ", i));
  }
  engine.drain();
  EXPECT_EQ(engine.stats().n_prompt_tokens, 1 + 401 + 3) << "each its own last token";
}

TEST_F(EngineTest, RefusesWhatCannotBeServed) {
  Engine engine(model, options());
  expect_contains(error_of(Errc::bad_request, [&] { engine.submit({}); }), "empty");
  const std::string error =
      error_of(Errc::bad_request, [&] { engine.submit({.prompt = random_tokens(513, 1)}); });
  expect_contains(error, "513");
  expect_contains(error, "512");
  expect_contains(error_of(Errc::bad_request, [&] { engine.submit({.prompt = {261}}); }), "261");
  expect_contains(
      error_of(Errc::bad_request, [&] { engine.submit({.prompt = {1}, .n_tokens = -2}); }), "-2");
  EXPECT_EQ(engine.stats().n_refused, 4);
  EngineOptions small = options();
  small.kv_bytes = 1000;
  expect_contains(error_of(Errc::bad_request, [&] { Engine e(model, small); }), "1000 bytes");
  small = options();
  small.n_sequences = 0;
  expect_contains(error_of(Errc::bad_request, [&] { Engine e(model, small); }), "0 texts");
}

// A request that stays in its first token until it is let go.
struct HeldEngine : EngineTest {
  static EngineOptions narrow(int n_sequences, int n_queued) {
    EngineOptions o = options();
    o.n_sequences = n_sequences;
    o.n_queued = n_queued;
    return o;
  }
  Request held() {
    return {.prompt = random_tokens(5, 9), .n_tokens = 3, .on_token = [this](TokenId) {
              if (!is_held.exchange(true)) entered.set_value();
              released.wait();
              return true;
            }};
  }
  void release() { go.set_value(); }

  std::promise<void> entered, go;
  std::shared_future<void> released{go.get_future()};
  std::atomic<bool> is_held = false;
};

TEST_F(HeldEngine, RefusesMoreThanTheQueueHolds) {
  Engine engine(model, narrow(1, 2));
  Submitted first(engine, held());
  entered.get_future().wait();
  Submitted second(engine, {.prompt = {1}, .n_tokens = 1});
  Submitted third(engine, {.prompt = {2}, .n_tokens = 1});
  try {
    engine.submit({.prompt = {3}});
    ADD_FAILURE() << "not refused";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::busy);
    expect_contains(e.what(), "3 requests");
  }
  EXPECT_EQ(engine.stats().n_queued + engine.stats().n_running, 3);
  release();
  first.wait(), second.wait(), third.wait();
  engine.drain();
  EXPECT_EQ(engine.stats().n_refused, 1);
  EXPECT_EQ(engine.stats().n_finished, 3);
}

TEST_F(HeldEngine, CancelsWhatRunsAndWhatWaits) {
  Engine engine(model, narrow(2, 4));
  Submitted running(engine, held());
  entered.get_future().wait();
  Submitted other(engine, {.prompt = {1}, .n_tokens = 5}, 5);
  Submitted waiting(engine, {.prompt = {2}, .n_tokens = 5});
  engine.cancel(running.id);
  engine.cancel(waiting.id);
  engine.cancel(12345);
  release();
  EXPECT_EQ(running.wait().end.reason, StopReason::cancelled);
  EXPECT_EQ(running.wait().tokens.size(), 1u) << "within one token";
  EXPECT_EQ(waiting.wait().end.reason, StopReason::cancelled);
  EXPECT_TRUE(waiting.wait().tokens.empty());
  expect_same(other.wait(), by_session({1}, 5, 5), "beside cancelled ones");
  engine.cancel(running.id);
  engine.drain();
  EXPECT_EQ(engine.stats().n_cancelled, 2);
}

TEST_F(HeldEngine, EndsWhatIsOverdue) {
  Engine engine(model, narrow(1, 4));
  Submitted first(engine, held());
  entered.get_future().wait();
  Request late{.prompt = {1}, .n_tokens = 5};
  late.deadline = std::chrono::steady_clock::now() - 1s;
  Submitted second(engine, late);
  release();
  EXPECT_EQ(second.wait().end.reason, StopReason::deadline);
  EXPECT_EQ(first.wait().end.reason, StopReason::length);
  EXPECT_EQ(second.wait().end.n_new, 0);
}

TEST_F(HeldEngine, DrainsAndTakesNoMore) {
  Engine engine(model, narrow(1, 4));
  Submitted first(engine, held());
  Submitted second(engine, {.prompt = {1}, .n_tokens = 5});
  auto drained = std::async(std::launch::async, [&] { engine.drain(); });
  const auto refuses = [&] {
    try {
      Submitted(engine, {.prompt = {1}, .n_tokens = 0});
      return false;
    } catch (const Error& e) {
      return e.code() == Errc::shutting_down;
    }
  };
  int n_accepted = 0;
  while (!refuses() && n_accepted < 100000) {
    n_accepted += 1;
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(drained.wait_for(0s), std::future_status::timeout) << "one still runs";
  release();
  EXPECT_EQ(drained.wait_for(120s), std::future_status::ready);
  EXPECT_EQ(first.wait().end.reason, StopReason::length);
  EXPECT_EQ(second.wait().end.reason, StopReason::length);
}

TEST_F(HeldEngine, ItsEndCancelsAll) {
  auto owner = std::make_unique<Engine>(model, narrow(1, 4));
  Engine* engine = owner.get();
  StopReason last = StopReason::length;
  std::function<void()> submit = [&] {  // there is always one, until no more are taken
    engine->submit({.prompt = {1}, .n_tokens = 2, .on_end = [&](const RequestEnd& end) {
                      last = end.reason;
                      submit();
                    }});
  };
  submit();
  owner.reset();
  EXPECT_EQ(last, StopReason::cancelled);
}

TEST_F(EngineTest, ACallbackThatThrowsEndsItsRequestAlone) {
  Engine engine(model, options());
  const auto fails = [](Request request) {
    request.n_tokens = 5;
    return request;
  };
  for (int round = 0; round < 3; ++round) {
    Request bad = fails({.prompt = random_tokens(20, 11)});
    if (round == 0) bad.choose = [](auto) -> TokenId { throw std::runtime_error("no choice"); };
    if (round == 1) bad.on_token = [](TokenId) -> bool { throw Error(Errc::cancelled, "gone"); };
    if (round == 2) bad.choose = [](auto) { return 100000; };
    Submitted good(engine, {.prompt = random_tokens(30, 12), .n_tokens = 20}, 4);
    Submitted ends(engine, bad);
    const Outcome failed = ends.wait();
    EXPECT_EQ(failed.end.reason, StopReason::failed);
    ASSERT_TRUE(failed.end.error);
    expect_contains(failed.end.error->what(), round == 0   ? "no choice"
                                              : round == 1 ? "gone"
                                                           : "100000");
    expect_same(good.wait(), by_session(random_tokens(30, 12), 20, 4), "beside one that fails");
  }
  engine.drain();
  EXPECT_EQ(engine.stats().n_failed, 3);
}

// Four texts of six pages each in a pool of eight: the younger ones wait or are computed again.
TEST_F(EngineTest, AllEndWhereKvPagesAreShort) {
  EngineOptions o = options();
  const EngineStats roomy = Engine(model, o).stats();
  ASSERT_EQ(roomy.n_pages, 8 * 8);
  o.kv_bytes = roomy.kv_bytes / 8;
  Engine engine(model, o);
  EXPECT_EQ(engine.stats().n_pages, 8);
  std::vector<Submitted> all;
  for (uint64_t i = 0; i < 4; ++i) {
    all.emplace_back(engine, Request{.prompt = random_tokens(100, 20 + i), .n_tokens = 250}, i);
  }
  for (uint64_t i = 0; i < 4; ++i) {
    const Outcome& got = all[i].wait();
    EXPECT_EQ(got.end.reason, StopReason::length);
    expect_same(got, by_session(random_tokens(100, 20 + i), 250, i), cat("request ", i));
  }
  engine.drain();
  EXPECT_GT(engine.stats().n_paused, 0);
}

TEST_F(EngineTest, TakesADeviceToo) {
  EngineOptions o = options();
  o.session.device.kind = DeviceKind::sim;
  o.session.device.sim.machine.vram_free = 64 << 20;
  o.session.device.sim.machine.link_gbps = 10.0;
  o.session.device.moe = ExpertPlace::cache;
  o.session.device.n_slots = 7;
  Engine engine(model, o);
  EXPECT_EQ(engine.placement().n_slots, 7);
  std::vector<Submitted> all;
  for (uint64_t i = 0; i < 8; ++i) {
    all.emplace_back(engine, Request{.prompt = random_tokens(1 + 20 * i, i), .n_tokens = 12}, i);
  }
  for (uint64_t i = 0; i < 8; ++i) {
    expect_same(all[i].wait(), by_session(random_tokens(1 + 20 * i, i), 12, i), cat("request ", i));
  }
  engine.drain();
  EXPECT_GT(engine.stats().experts.total().n_calls(), 0);
  const ExpertMap map = engine.expert_map();
  EXPECT_EQ(std::ranges::count(map.where, ExpertMap::Where::ram), 20 - 7);
}

// States of recurrent layers are kept at the ends of messages, and shared from there.
TEST(EngineOfHybrids, SharesStatesAtTheEndsOfMessages) {
  for (const char* architecture : model::test::kHybrids) {
    OpenModel file(architecture, "Q8_0");
    const Model model = Model::load(file.path(), {.n_threads = 2});
    const SessionOptions options{.n_ctx = 512, .prefill_chunk = 64};
    Engine engine(model, {.session = options, .n_sequences = 4});
    const auto prompt_of = [](uint64_t i) {
      std::vector<TokenId> prompt = random_tokens(150, 5);
      const auto more = random_tokens(70, 100 + i);
      prompt.insert(prompt.end(), more.begin(), more.end());
      return prompt;
    };
    const auto expected = [&](uint64_t i) {
      Outcome out;
      Session session(model, options);
      out.tokens =
          session.generate(prompt_of(i), {.n_tokens = 20, .choose = chooser(out.logits, i)}).tokens;
      return out;
    };
    const Outcome first =
        Submitted(engine, {.prompt = prompt_of(0), .keep_at = {150}, .n_tokens = 20}, 0).wait();
    expect_same(first, expected(0), architecture);
    std::vector<Submitted> all;
    for (uint64_t i = 1; i < 4; ++i) {
      all.emplace_back(engine, Request{.prompt = prompt_of(i), .keep_at = {150}, .n_tokens = 20},
                       i);
    }
    for (uint64_t i = 1; i < 4; ++i) {
      const Outcome& got = all[i - 1].wait();
      expect_same(got, expected(i), cat(architecture, ", request ", i));
      EXPECT_EQ(got.end.n_reused, 150) << architecture;
    }
  }
}

TEST_F(EngineTest, ShowsWhichExpertsAreUsed) {
  Engine engine(model, options());
  EXPECT_EQ(engine.expert_map().heat, std::vector<float>(20, 0.0f));
  Submitted(engine, {.prompt = random_tokens(20, 1), .n_tokens = 1}).wait();
  engine.drain();
  const ExpertMap map = engine.expert_map();
  EXPECT_EQ(map.n_layers, 2);
  EXPECT_EQ(map.n_experts, 10);
  EXPECT_EQ(std::ranges::count(map.where, ExpertMap::Where::ram), 20);
  double sum = 0.0;
  for (const float heat : map.heat) sum += static_cast<double>(heat);
  EXPECT_EQ(sum, 20 * 3 * 2) << "twenty tokens, three experts, two layers";
}

}  // namespace
}  // namespace sluice::engine::test
