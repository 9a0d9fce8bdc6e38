// An answer that fails in the engine's thread: the client hears that the log says why, and it does.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include "server/answering/answer_run.h"
#include "unit/server/demo_service.h"

namespace sluice::server {
namespace {

// Breaks with the first token.
class BrokenFormat : public AnswerFormat {
 public:
  explicit BrokenFormat(std::function<void()> fault) : fault_(std::move(fault)) {}
  Json whole(const std::vector<Choice>&) override { return {}; }
  std::string delta(int, const Delta&) override {
    fault_();
    return "";
  }
  std::string choice_end(int, const Choice&) override { return "end"; }
  std::string end(const std::vector<Choice>&) override { return "end"; }
  std::string failure(const ApiError& error) override { return error.what(); }

 private:
  std::function<void()> fault_;
};

struct Outcome {
  std::string body;
  std::vector<std::string> log;
};

Outcome outcome_of(std::function<void()> fault) {
  const ModelService& service = demo_service();
  Metrics metrics;
  Outcome outcome;
  const std::shared_ptr<const ModelService> model(&service, [](const ModelService*) {});
  const AnswerContext context{model, metrics,
                              [&](const std::string& line) { outcome.log.push_back(line); }};
  const auto answer = std::make_shared<FakeAnswer>();
  GenerationFields how;
  how.stream = true;
  how.n_tokens = 4;
  run_answer(context, std::make_shared<FakeExchange>(answer), plan_completion(service, "a", how),
             std::make_unique<BrokenFormat>(std::move(fault)));
  answer->wait();
  outcome.body = answer->body;
  return outcome;
}

TEST(AnswerFault, OfTheEngineIsLoggedAndNotShown) {
  const Outcome outcome = outcome_of([] { throw Error(Errc::device, "the GPU fell off"); });
  EXPECT_EQ(outcome.body, "the model could not answer; the server's log says why");
  EXPECT_EQ(outcome.log, std::vector<std::string>{"fault: the GPU fell off"});
}

TEST(AnswerFault, OfTheServersOwnCodeIsLoggedAndNotShown) {
  const Outcome outcome = outcome_of([] { throw std::runtime_error("a bug at /home/me"); });
  EXPECT_EQ(outcome.body, "the model could not answer; the server's log says why");
  EXPECT_EQ(outcome.log, std::vector<std::string>{"fault: a bug at /home/me"});
}

TEST(AnswerFault, OfTheRequestIsShownAndNotLogged) {
  const Outcome outcome = outcome_of([] { throw Error(Errc::bad_request, "no such thing"); });
  EXPECT_EQ(outcome.body, "no such thing");
  EXPECT_TRUE(outcome.log.empty());
}

}  // namespace
}  // namespace sluice::server
