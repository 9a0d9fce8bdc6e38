// Chats of an engine whose model has recurrent layers, and whose template leaves out what the model
// thought: each follow-up goes on from the end of its last question, whatever the others do.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <future>

#include "sluice/engine.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

constexpr uint64_t kChats = 8;

// Asks and answers of random tokens; what the model says is left out of the next prompt.
class Chats {
 public:
  Request question(uint64_t i) {
    add(i, 70);
    ends_[i].push_back(static_cast<int>(texts_[i].size()));
    Request request{.prompt = texts_[i], .keep_at = ends_[i], .n_tokens = 40};
    request.prompt.insert(request.prompt.end(), 4, 7);  // what every answer begins with
    return request;
  }
  void answer(uint64_t i) { add(i, 10); }
  // Where the question before the last ended.
  int last_end(uint64_t i) const {
    const size_t n = ends_[i].size();
    return n < 2 ? 0 : ends_[i][n - 2];
  }

 private:
  void add(uint64_t i, size_t n) {
    const auto more = random_tokens(n, ++seed_);
    texts_[i].insert(texts_[i].end(), more.begin(), more.end());
  }

  std::vector<TokenId> texts_[kChats];
  std::vector<int> ends_[kChats];
  uint64_t seed_ = 200;
};

std::future<RequestEnd> submit(Engine& engine, Request request) {
  // shared: callbacks may be copied.
  const auto done = std::make_shared<std::promise<RequestEnd>>();
  request.on_end = [done](const RequestEnd& end) { done->set_value(end); };
  engine.submit(std::move(request));
  return done->get_future();
}

TEST(EngineOfHybrids, FollowUpsOfEightTexts) {
  const OpenModel file("qwen3next", "Q8_0");
  const Model model = Model::load(file.path(), {.n_threads = 2});
  const SessionOptions options{.n_ctx = 512, .prefill_chunk = 64};
  Engine engine(model, {.session = options, .n_sequences = kChats});
  Chats chats;
  int64_t n_reused = 0;
  for (int round = 0; round < 4; ++round) {
    const bool at_once = round % 2 == 1;
    std::vector<std::future<RequestEnd>> all;
    for (uint64_t i = 0; i < kChats; ++i) {
      all.push_back(submit(engine, chats.question(i)));
      if (!at_once) all.back().wait();
    }
    for (uint64_t i = 0; i < kChats; ++i) {
      const RequestEnd end = all[i].get();
      EXPECT_GE(end.n_reused, chats.last_end(i)) << "chat " << i << ", round " << round;
      n_reused += end.n_reused;
      chats.answer(i);
    }
  }
  std::vector<TokenId> tokens;
  Request last = chats.question(3);  // is answered as if nothing had been kept
  last.on_token = [&](TokenId token) { return tokens.push_back(token), true; };
  n_reused += submit(engine, last).get().n_reused;
  Session session(model, options);
  EXPECT_EQ(tokens, session.generate(last.prompt, {.n_tokens = 40}).tokens);
  engine.drain();
  EXPECT_EQ(engine.stats().n_reused_tokens, n_reused);
  EXPECT_EQ(engine.stats().n_recomputed_tokens, 0);
}

}  // namespace
}  // namespace sluice::engine::test
