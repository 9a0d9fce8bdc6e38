// Plans that are tried: how fast a driver's steps are, token by token of a text; its sequence is
// empty afterwards.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/mode_trial.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cpu/host_memory.h"

namespace sluice::engine::test {
namespace {

// Takes a set time for every step, and now and then a much longer one.
class TimedDriver final : public StepDriver {
 public:
  explicit TimedDriver(double seconds) : step_seconds_(seconds) {}
  ~TimedDriver() override { EXPECT_EQ(n_tokens_, 0); }

  void step(std::span<const StepRow> rows, policy::Phase, const StepListener&) override {
    n_tokens_ += static_cast<int>(rows.size());
    seconds_ += n_tokens_ % 5 == 0 ? 100.0 : step_seconds_;
  }
  void truncate(SequenceId, int n_tokens) override { n_tokens_ = n_tokens; }
  void fork(SequenceId, SequenceId, int) override {}
  int n_tokens(SequenceId) const override { return n_tokens_; }
  int max_rows() const override { return 1; }
  uint64_t kv_bytes() const override { return 0; }
  const RoutingLog& log() const override { return log_; }
  double seconds() const override { return seconds_; }

 private:
  double step_seconds_;
  double seconds_ = 0.0;
  int n_tokens_ = 0;
  RoutingLog log_{backend::allocate_host, 1, 1, 1};
};

model::Config config() {
  model::Config config;
  config.n_layers = 2;
  config.n_experts = 8;
  config.n_experts_used = 2;
  return config;
}

TEST(ModeTrial, TakesTheMedianOfStepsSinceSlowOnesAreNoise) {
  TextRouting text(config(), nullptr);
  TimedDriver driver(0.01);
  EXPECT_NEAR(try_steps(driver, text, 100, 64), 100.0, 1e-6);
}

TEST(ModeTrial, AShortContextIsNoObstacle) {
  TextRouting text(config(), nullptr);
  TimedDriver driver(0.01);
  EXPECT_NEAR(try_steps(driver, text, 100, 1), 100.0, 1e-6);
}

// Every step is the next token of the text: as many as there are steps.
TEST(ModeTrial, GoesThroughTheText) {
  TextRouting text(config(), nullptr), beside(config(), nullptr);
  TimedDriver driver(0.01);
  try_steps(driver, text, 100, 20);
  for (int i = 0; i < 19; ++i) beside.next_token();
  for (const int layer : {0, 1}) {
    EXPECT_TRUE(std::ranges::equal(text.experts(LayerId(layer)), beside.experts(LayerId(layer))));
  }
}

}  // namespace
}  // namespace sluice::engine::test
