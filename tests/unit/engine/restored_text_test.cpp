// Texts that an Engine writes to files and reads back, among its other requests: what follows has
// the bits of a text that was computed, and whatever is wrong with a file fails that request alone.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "sluice/engine.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

struct Outcome {
  std::vector<TokenId> tokens;
  Logits logits;  // of every choice
  RequestEnd end;
};

class Submitted {
 public:
  Submitted(Engine& engine, Request request) {
    if (request.n_tokens != 0 && request.restore_from.empty()) {
      request.choose = [out = out_](std::span<const float> logits) {
        out->logits.insert(out->logits.end(), logits.begin(), logits.end());
        return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
      };
    }
    request.on_token = [out = out_, inner = std::move(request.on_token)](TokenId token) {
      out->tokens.push_back(token);
      return !inner || inner(token);
    };
    request.on_end = [out = out_, done = done_](const RequestEnd& end) {
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

struct RestoredText : testing::TestWithParam<const char*> {
  RestoredText() : RestoredText(GetParam()) {}
  explicit RestoredText(const char* architecture)
      : file(architecture, "Q8_0"), model(Model::load(file.path(), {.n_threads = 2})) {}

  // Room for so many contexts of 256 tokens.
  EngineOptions options(int n_contexts = 4) const {
    EngineOptions o{.session = {.n_ctx = 256, .prefill_chunk = 64}, .n_sequences = 2};
    Engine probe(model, {.session = o.session, .n_sequences = 1});
    o.kv_bytes = probe.stats().kv_bytes * static_cast<uint64_t>(n_contexts);
    return o;
  }
  RequestEnd save(Engine& engine, const std::vector<TokenId>& text, const std::string& path) {
    return Submitted(engine, {.prompt = text, .n_tokens = 0, .save_to = path}).wait().end;
  }
  RequestEnd restore(Engine& engine, const std::string& path) {
    return Submitted(engine, {.restore_from = path}).wait().end;
  }

  OpenModel file;
  Model model;
  TempDir dir;
  const std::vector<TokenId> document = random_tokens(150, 1);
};

// The counters once nobody runs: they are published behind the last callback.
EngineStats settled(const Engine& engine) {
  for (;;) {
    const EngineStats stats = engine.stats();
    if (stats.n_running + stats.n_queued == 0) return stats;
    std::this_thread::yield();
  }
}

std::vector<TokenId> joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void expect_failed(const RequestEnd& end, Errc code, const std::string& words) {
  EXPECT_EQ(end.reason, StopReason::failed);
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->code(), code);
  EXPECT_NE(std::string(end.error->what()).find(words), std::string::npos) << end.error->what();
}

INSTANTIATE_TEST_SUITE_P(Models, RestoredText, testing::Values("qwen3moe", "qwen35moe"),
                         [](const auto& info) { return std::string(info.param); });

// Saved by one engine, restored by another: as after a restart.
TEST_P(RestoredText, IsReusedAndGivesTheBitsOfOneThatWasComputed) {
  const std::vector<TokenId> question = joined(document, random_tokens(12, 2));
  Outcome expected;
  {
    Engine first(model, options());
    const RequestEnd saved = save(first, document, dir / "d");
    EXPECT_EQ(saved.reason, StopReason::length);
    EXPECT_EQ(saved.n_prompt, 150);
    expected = Submitted(first, {.prompt = question, .n_tokens = 10}).wait();
  }
  Engine second(model, options());
  const RequestEnd restored = restore(second, dir / "d");
  EXPECT_EQ(restored.reason, StopReason::length);
  EXPECT_EQ(restored.n_prompt, 150);
  EXPECT_EQ(restored.n_reused, 150);
  for (int round = 0; round < 2; ++round) {
    const Outcome got = Submitted(second, {.prompt = question, .n_tokens = 10}).wait();
    EXPECT_GE(got.end.n_reused, 150);
    EXPECT_EQ(got.tokens, expected.tokens);
    ASSERT_EQ(got.logits.size(), expected.logits.size());
    EXPECT_EQ(std::memcmp(got.logits.data(), expected.logits.data(), got.logits.size() * 4), 0);
  }
  EXPECT_LT(settled(second).n_prompt_tokens, 30) << "the document was computed again";
}

TEST_P(RestoredText, IsTheFileThatASessionWrites) {
  Session session(model, options().session);
  session.append(document);
  session.save(dir / "by-session");
  Engine engine(model, options());
  EXPECT_EQ(save(engine, document, dir / "by-engine").reason, StopReason::length);
  EXPECT_EQ(gguf::test::read_file(dir / "by-session"), gguf::test::read_file(dir / "by-engine"));
  EXPECT_EQ(session.load(dir / "by-engine"), document);
}

// An answer that is saved holds all but its last token, which was never computed.
TEST_P(RestoredText, MayHoldAnAnswerToo) {
  Engine engine(model, options());
  const Outcome answer =
      Submitted(engine, {.prompt = document, .n_tokens = 8, .save_to = dir / "d"}).wait();
  Engine other(model, options());
  EXPECT_EQ(restore(other, dir / "d").n_prompt, 157);
  const std::vector<TokenId> next = joined(joined(document, answer.tokens), {5});
  EXPECT_EQ(Submitted(other, {.prompt = next, .n_tokens = 1}).wait().end.n_reused, 157);
}

TEST_P(RestoredText, IsNotReadAgainWhileItIsThere) {
  Engine engine(model, options());
  save(engine, document, dir / "d");
  const int n_free = settled(engine).n_free_pages;
  EXPECT_EQ(restore(engine, dir / "d").n_reused, 150);
  EXPECT_EQ(settled(engine).n_free_pages, n_free) << "it is there twice";
}

// Others run meanwhile; their tokens stay those of a session.
TEST_P(RestoredText, DisturbsNobody) {
  Engine first(model, options());
  save(first, document, dir / "d");
  const std::vector<TokenId> prompt = random_tokens(20, 3);
  const std::vector<TokenId> expected =
      Session(model, options().session).generate(prompt, {.n_tokens = 40}).tokens;
  Engine engine(model, options());
  std::optional<Submitted> restored, broken, saved;
  Submitted other(
      engine, {.prompt = prompt, .n_tokens = 40, .on_token = [&, n = 0](TokenId) mutable {
                 ++n;
                 if (n == 5) restored.emplace(engine, Request{.restore_from = dir / "d"});
                 if (n == 9) broken.emplace(engine, Request{.restore_from = dir / "x"});
                 if (n == 12) {
                   saved.emplace(engine,
                                 Request{.prompt = document, .n_tokens = 0, .save_to = dir / "e"});
                 }
                 return true;
               }});
  EXPECT_EQ(other.wait().tokens, expected);
  EXPECT_EQ(restored->wait().end.n_reused, 150);
  expect_failed(broken->wait().end, Errc::bad_file, "cannot be opened");
  EXPECT_EQ(saved->wait().end.reason, StopReason::length);
  EXPECT_EQ(gguf::test::read_file(dir / "d"), gguf::test::read_file(dir / "e"));
}

// The pool holds one context, and it is taken: the restored text waits for its end.
TEST_P(RestoredText, WaitsForRoom) {
  Engine first(model, options());
  save(first, document, dir / "d");
  Engine engine(model, options(1));
  bool has_ended = false;
  std::optional<Submitted> restored;
  Submitted other(engine,
                  {.prompt = random_tokens(200, 4), .n_tokens = 30, .on_token = [&](TokenId) {
                     if (!restored) {
                       restored.emplace(engine, Request{.restore_from = dir / "d"});
                     }
                     has_ended = true;
                     return true;
                   }});
  EXPECT_EQ(other.wait().end.n_new, 30);
  EXPECT_EQ(restored->wait().end.reason, StopReason::length);
  EXPECT_TRUE(has_ended);
  EXPECT_EQ(Submitted(engine, {.prompt = joined(document, {1}), .n_tokens = 1}).wait().end.n_reused,
            150);
}

TEST_P(RestoredText, OfADamagedOrForeignFileIsRefused) {
  Engine engine(model, options());
  save(engine, document, dir / "d");
  Engine other(model, options());
  const std::string whole = gguf::test::read_file(dir / "d");
  const auto put = [&](std::string bytes) {
    std::ofstream(dir / "bad", std::ios::binary) << bytes;
    return restore(other, dir / "bad");
  };
  std::string changed = whole;
  changed[whole.size() / 2] = static_cast<char>(changed[whole.size() / 2] ^ 1);
  expect_failed(put(changed), Errc::bad_file, "its sum does not match");
  expect_failed(put(whole.substr(0, whole.size() - 1)), Errc::bad_file, "it was cut");
  expect_failed(put(whole.substr(0, 100)), Errc::bad_file, "ends within its header");
  expect_failed(put("once upon a time"), Errc::bad_request, "is no text that sluice has saved");
  expect_failed(put(""), Errc::bad_request, "is no text that sluice has saved");
  expect_failed(restore(other, dir / "nothing"), Errc::bad_file, "cannot be opened");
  EngineOptions others = options();
  others.session.k_type = others.session.v_type = KvType::f32;
  Engine wide(model, {.session = others.session});
  expect_failed(restore(wide, dir / "d"), Errc::bad_request, "-ctk f16");
  Engine small(model, {.session = {.n_ctx = 100}});
  expect_failed(restore(small, dir / "d"), Errc::bad_request, "the context holds 100");
  const EngineStats stats = settled(other);
  EXPECT_EQ(stats.n_kept_texts, 0);
  EXPECT_EQ(stats.n_free_pages, stats.n_pages) << "a failed one left pages";
  EXPECT_EQ(stats.n_failed, 6);
  EXPECT_EQ(restore(other, dir / "d").n_reused, 150) << "and the engine lives on";
}

TEST_P(RestoredText, OfAnotherModelIsRefused) {
  const OpenModel others("olmoe", "Q8_0");
  Engine foreign(Model::load(others.path(), {.n_threads = 1}), {.session = {.n_ctx = 256}});
  save(foreign, random_tokens(40, 5), dir / "d");
  Engine engine(model, options());
  expect_failed(restore(engine, dir / "d"), Errc::bad_request, "a text of another model");
}

// Of a full disk, or a folder that is gone; the text stays, and so does what was saved before.
TEST_P(RestoredText, ThatCannotBeWrittenIsTold) {
  Engine engine(model, options());
  expect_failed(save(engine, document, dir / "gone/d"), Errc::bad_file, "cannot be created");
  EXPECT_EQ(settled(engine).n_kept_texts, 1);
  EXPECT_EQ(save(engine, document, dir / "d").n_reused,
            GetParam() == std::string("qwen3moe") ? 149 : 128);
}

// Cancelled ones write nothing.
TEST_P(RestoredText, IsNotWrittenOnceItsRequestIsCancelled) {
  Engine engine(model, options());
  uint64_t id = 0;
  std::promise<void> has_id;
  Request request{.prompt = document, .n_tokens = 50, .save_to = dir / "d"};
  request.on_token = [&, is = has_id.get_future().share()](TokenId) {
    is.wait();
    engine.cancel(id);
    return true;
  };
  Submitted cancelled(engine, std::move(request));
  id = cancelled.id;
  has_id.set_value();
  EXPECT_EQ(cancelled.wait().end.reason, StopReason::cancelled);
  EXPECT_FALSE(fs::exists(dir / "d"));
  EXPECT_FALSE(fs::exists(dir / "d.partial"));
}

TEST_P(RestoredText, TakesNoPromptAndNoSecondFile) {
  Engine engine(model, options());
  for (Request request : {Request{.prompt = {1}, .restore_from = dir / "d"},
                          Request{.save_to = dir / "e", .restore_from = dir / "d"}}) {
    EXPECT_THROW(engine.submit(std::move(request)), Error);
  }
  EXPECT_EQ(engine.stats().n_refused, 2);
}

}  // namespace
}  // namespace sluice::engine::test
