// The public interface: what a session holds after each call, why a generation ends, and that a bad
// request leaves everything as it was.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <new>
#include <optional>

#include "sampler/greedy.h"
#include "sluice/sluice.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

struct SessionTest : testing::Test {
  SessionTest() : path(file.path()), model(Model::load(path, {.n_threads = 2})) {}

  // All logits of tokens appended to a session.
  static Logits append(Session& session, std::span<const TokenId> tokens) {
    Logits all;
    session.append(tokens, [&](int pos, std::span<const float> logits) {
      EXPECT_EQ(pos, static_cast<int>(all.size() / 261));
      all.insert(all.end(), logits.begin(), logits.end());
    });
    return all;
  }

  OpenModel file{"qwen3moe", "F32"};
  std::string path;
  Model model;
};

TEST_F(SessionTest, InfoSaysWhatTheFileSays) {
  const ModelInfo& info = model.info();
  EXPECT_EQ(info.architecture, "qwen3moe");
  EXPECT_EQ(info.n_layers, 2);
  EXPECT_EQ(info.d_model, 64);
  EXPECT_EQ(info.n_vocab, 261);
  EXPECT_EQ(info.n_ctx_train, 512);
  EXPECT_EQ(info.n_experts, 10);
  EXPECT_EQ(info.n_experts_used, 3);
  EXPECT_EQ(info.eos, 258);
}

TEST_F(SessionTest, LogitsAreThoseOfTheStepper) {
  const std::vector<TokenId> tokens = random_tokens(30, 1);
  const Logits expected = run_alone(*file, tokens);
  for (const int chunk : {1, 7, 512}) {
    Session session(model, {.n_ctx = 64, .prefill_chunk = chunk});
    expect_same_bits(expected, append(session, tokens), cat("chunks of ", chunk));
    EXPECT_EQ(session.n_tokens(), 30);
    EXPECT_EQ(session.stats().n_prefill_tokens, 30);
    EXPECT_EQ(session.stats().n_decode_tokens, 0);
  }
}

TEST_F(SessionTest, GeneratesTheLargestLogitAgainAndAgain) {
  std::vector<TokenId> text = random_tokens(5, 2);
  Session session(model, {.n_ctx = 64});
  const GenerateResult got = session.generate(text, {.n_tokens = 8});
  ASSERT_EQ(got.tokens.size(), 8u);
  EXPECT_EQ(got.reason, StopReason::length);
  for (const TokenId token : got.tokens) {
    const Logits logits = run_alone(*file, text);
    EXPECT_EQ(token, sampler::greedy(std::span(logits).last(261))) << "after " << text.size();
    text.push_back(token);
  }
  EXPECT_EQ(session.n_tokens(), 13);
  EXPECT_EQ(session.stats().n_decode_tokens, 8);
  // Going on without a new prompt is going on from there.
  Session longer(model, {.n_ctx = 64});
  const auto all = longer.generate(random_tokens(5, 2), {.n_tokens = 12});
  const auto more = session.generate({}, {.n_tokens = 4});
  EXPECT_TRUE(std::equal(more.tokens.begin(), more.tokens.end(), all.tokens.begin() + 8));
}

TEST_F(SessionTest, StopsWhereItIsTold) {
  const std::vector<TokenId> prompt = random_tokens(5, 3);
  Session session(model, {.n_ctx = 9});
  const auto full = session.generate(prompt, {.n_tokens = 100});
  EXPECT_EQ(full.reason, StopReason::context_full);
  EXPECT_EQ(session.n_tokens(), 9);
  EXPECT_EQ(full.tokens.size(), 5u) << "four that are in the text, and one more it led to";

  Session other(model, {.n_ctx = 64});
  std::vector<TokenId> seen;
  const auto stopped = other.generate(prompt, {.n_tokens = 100}, [&](TokenId token) {
    seen.push_back(token);
    return seen.size() < 3;
  });
  EXPECT_EQ(stopped.reason, StopReason::callback);
  EXPECT_EQ(stopped.tokens, seen);
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), full.tokens.begin()));
}

// The end token is one that comes up: the first that is not the very first again.
TEST_F(SessionTest, StopsAtAnEndToken) {
  std::vector<TokenId> prompt, tokens;
  size_t at = 0;
  for (uint64_t seed = 0; seed < 20 && at == 0; ++seed) {
    prompt = random_tokens(5, seed);
    tokens = Session(model, {.n_ctx = 64}).generate(prompt, {.n_tokens = 20}).tokens;
    while (at < tokens.size() && tokens[at] == tokens[0]) ++at;
    if (at == tokens.size()) at = 0;
  }
  ASSERT_GT(at, 0u) << "no prompt gives two different tokens";
  Session session(model, {.n_ctx = 64});
  const auto ended = session.generate(prompt, {.n_tokens = 100, .end_tokens = {260, tokens[at]}});
  EXPECT_EQ(ended.reason, StopReason::end_of_text);
  EXPECT_EQ(ended.tokens.size(), at) << "the end itself is not among them";
  EXPECT_EQ(session.n_tokens(), 5 + static_cast<int>(at)) << "nor in the text";
  const auto more = session.generate({}, {.n_tokens = 3});
  EXPECT_EQ(more.tokens.front(), tokens[at]);
}

TEST_F(SessionTest, LetsTheCallerChooseTokens) {
  Session session(model, {.n_ctx = 64});
  const auto least = [](std::span<const float> logits) {
    return static_cast<TokenId>(std::ranges::min_element(logits) - logits.begin());
  };
  const auto got = session.generate(random_tokens(5, 2), {.n_tokens = 3, .choose = least});
  Session other(model, {.n_ctx = 64});
  std::vector<float> logits;
  other.append(random_tokens(5, 2),
               [&](int, std::span<const float> l) { logits.assign(l.begin(), l.end()); });
  EXPECT_EQ(got.tokens.front(), least(logits));
}

TEST_F(SessionTest, TakesTheTokensThatAreGivenAndThenGoesOnByItself) {
  const std::vector<TokenId> prompt = {1, 2, 3}, given = {7, 8};
  Session session(model), same(model);
  const GenerateResult result = session.generate(prompt, {.n_tokens = 3, .given = given});
  ASSERT_EQ(result.tokens.size(), 3u);
  EXPECT_EQ(std::vector(result.tokens.begin(), result.tokens.begin() + 2), given);
  const Logits logits = append(same, std::vector<TokenId>{1, 2, 3, 7, 8});
  EXPECT_EQ(result.tokens[2], sampler::greedy(std::span(logits).last(261)));
}

TEST_F(SessionTest, TruncatingForgetsTheRest) {
  const std::vector<TokenId> a = random_tokens(20, 4), b = random_tokens(6, 5);
  Session session(model, {.n_ctx = 64});
  session.append(a);
  session.truncate(9);
  EXPECT_EQ(session.n_tokens(), 9);
  error_of(Errc::bad_request, [&] { session.generate({}, {.n_tokens = 1}); });
  std::vector<TokenId> fresh(a.begin(), a.begin() + 9);
  fresh.insert(fresh.end(), b.begin(), b.end());
  Session other(model, {.n_ctx = 64});
  const GenerateOptions options{.n_tokens = 5};
  EXPECT_EQ(session.generate(b, options).tokens, other.generate(fresh, options).tokens);
}

TEST_F(SessionTest, TruncatingToTheWholeTextChangesNothing) {
  const std::vector<TokenId> prompt = random_tokens(6, 8);
  const GenerateOptions options{.n_tokens = 4};
  Session session(model, {.n_ctx = 32}), other(model, {.n_ctx = 32});
  session.append(prompt);
  session.truncate(6);
  EXPECT_EQ(session.generate({}, options).tokens, other.generate(prompt, options).tokens);
}

TEST_F(SessionTest, ABadRequestLeavesTheSessionAsItWas) {
  const std::vector<TokenId> prompt = random_tokens(6, 6);
  Session session(model, {.n_ctx = 10, .prefill_chunk = 2});
  session.append(prompt);
  const auto refused = [&](std::vector<TokenId> tokens, const char* part) {
    expect_contains(error_of(Errc::bad_request, [&] { session.append(tokens); }), part);
    EXPECT_EQ(session.n_tokens(), 6);
  };
  refused({1, 2, 3, 4, 5}, "5 tokens do not fit");
  refused({1, 261}, "token id 261");
  refused({-1}, "token id -1");
  expect_contains(error_of(Errc::bad_request, [&] { session.truncate(7); }), "7 of 6");
  expect_contains(error_of(Errc::bad_request, [&] { session.truncate(-1); }), "-1 of 6");
  session.append(std::vector<TokenId>{1, 2, 3, 4});
  EXPECT_EQ(session.n_tokens(), 10);
  Session empty(model, {.n_ctx = 10});
  expect_contains(error_of(Errc::bad_request, [&] { empty.generate({}); }), "prompt is empty");
}

TEST_F(SessionTest, APromptIsStoppedBetweenChunksAndTheSessionGoesOn) {
  const std::vector<TokenId> prompt = random_tokens(30, 1);
  Session session(model, {.n_ctx = 64, .prefill_chunk = 8});
  GenerateOptions options{.n_tokens = 5};
  options.prompt.should_stop = [&] { return session.n_tokens() >= 16; };
  const GenerateResult got = session.generate(prompt, options);
  EXPECT_EQ(got.reason, StopReason::callback);
  EXPECT_TRUE(got.tokens.empty());
  EXPECT_EQ(session.n_tokens(), 16);
  const Logits expected = run_alone(*file, prompt);
  const std::span rest = std::span(prompt).subspan(16);
  Logits all;
  session.append(rest,
                 [&](int, std::span<const float> l) { all.insert(all.end(), l.begin(), l.end()); });
  expect_same_bits(std::span(expected).subspan(16 * 261), all, "after the stop");
}

TEST_F(SessionTest, AnswersAPromptInAsManyStepsAsItHasChunks) {
  for (const int chunk : {1, 8, 30, 512}) {
    Session session(model, {.n_ctx = 64, .prefill_chunk = chunk});
    session.generate(random_tokens(30, 1), {.n_tokens = 3});
    const int width = std::min(chunk, 64);
    EXPECT_EQ(session.stats().n_prefill_steps, (30 + width - 1) / width);
    EXPECT_EQ(session.stats().n_prefill_tokens, 30);
    EXPECT_EQ(session.stats().n_decode_tokens, 3);
  }
}

// In the third chunk, once, whatever it is; then the rest again.
TEST_F(SessionTest, AFaultInALaterChunkLeavesTheChunksBeforeIt) {
  const std::vector<TokenId> tokens = random_tokens(40, 2);
  const Logits expected = run_alone(*file, tokens);
  DeviceOptions device;
  device.kind = DeviceKind::sim;
  device.moe = ExpertPlace::cache;
  device.n_slots = 6;
  DeviceOptions segmented = device;
  segmented.is_segmented = true;
  DeviceOptions by_both = device;
  by_both.n_gpu_layers = 1;
  const std::function<void()> faults[] = {[] { throw Error(Errc::device, "broken"); },
                                          [] { throw std::runtime_error("broken"); },
                                          [] { throw std::bad_alloc(); }};
  for (const DeviceOptions& d : {DeviceOptions{}, device, segmented, by_both}) {
    for (const int chunk : {1, 9, 18}) {  // wider than 16: experts stream through
      for (const auto& fault : faults) {
        std::atomic<bool> fails = true;
        SessionOptions options{.n_ctx = 64, .prefill_chunk = chunk, .device = d};
        Session session(model, options);
        const auto fail_later = [&](int, int) {  // in the midst of the third chunk
          if (session.n_tokens() > 2 * chunk && fails.exchange(false)) fault();
        };
        EXPECT_ANY_THROW(session.append(tokens, {}, {.progress = fail_later}));
        ASSERT_FALSE(fails);
        ASSERT_EQ(session.n_tokens(), 2 * chunk);
        EXPECT_EQ(session.stats().n_prefill_tokens, 2 * chunk);
        Logits all;
        session.append(
            std::span(tokens).subspan(static_cast<size_t>(2 * chunk)),
            [&](int, std::span<const float> l) { all.insert(all.end(), l.begin(), l.end()); });
        expect_same_bits(std::span(expected).subspan(static_cast<size_t>(2 * chunk) * 261), all,
                         cat("chunks of ", chunk));
      }
    }
  }
}

TEST_F(SessionTest, AnAnswerThatFailsGoesOnWhereItWas) {
  Session session(model, {.n_ctx = 64}), other(model, {.n_ctx = 64});
  const auto expected = other.generate(random_tokens(5, 2), {.n_tokens = 8});
  std::vector<TokenId> seen;
  const auto count = [&](TokenId token) {
    if (seen.size() == 3) throw std::runtime_error("the pipe is closed");
    seen.push_back(token);
    return true;
  };
  EXPECT_THROW(session.generate(random_tokens(5, 2), {.n_tokens = 8}, count), std::runtime_error);
  EXPECT_EQ(session.n_tokens(), 8);
  for (const TokenId token : session.generate({}, {.n_tokens = 5}).tokens) seen.push_back(token);
  EXPECT_EQ(seen, expected.tokens);
}

TEST_F(SessionTest, RefusesOptionsThatMakeNoSense) {
  for (const SessionOptions& o :
       {SessionOptions{.n_ctx = -1}, SessionOptions{.prefill_chunk = -1}}) {
    error_of(Errc::bad_request, [&] { Session session(model, o); });
  }
  for (const int n_threads : {-1, 1025}) {
    expect_contains(
        error_of(Errc::bad_request, [&] { Model::load(path, {.n_threads = n_threads}); }),
        std::to_string(n_threads));
  }
  expect_contains(error_of(Errc::bad_file, [&] { Model::load(path + ".gone"); }), path + ".gone");
}

TEST_F(SessionTest, OutlivesItsModelAndMayBeMoved) {
  const std::vector<TokenId> prompt = random_tokens(4, 7);
  std::optional<Model> short_lived(Model::load(path, {.n_threads = 1}));
  Session session(*short_lived, {.n_ctx = 32});
  session.append(prompt);
  short_lived.reset();
  Session moved = std::move(session);
  const GenerateOptions options{.n_tokens = 4};
  Session fresh(model, {.n_ctx = 32});
  EXPECT_EQ(moved.generate({}, options).tokens, fresh.generate(prompt, options).tokens);
}

TEST_F(SessionTest, TheDefaultContextIsTheTrainedOne) {
  EXPECT_EQ(Session(model).n_ctx(), 512);
  EXPECT_EQ(Session(model, {.n_ctx = 1000}).n_ctx(), 1000);
}

}  // namespace
}  // namespace sluice::engine::test
