// Plans that are tried: the fastest wins, what was tried once is not tried again, and the sequence
// is empty afterwards.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/mode_trial.h"

#include <gtest/gtest.h>

#include <map>

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
  int n_tokens(SequenceId) const override { return n_tokens_; }
  int max_rows() const override { return 1; }
  uint64_t kv_bytes() const override { return 0; }
  const RoutingLog& log() const override { return log_; }
  double seconds() const override { return seconds_; }

 private:
  double step_seconds_;
  double seconds_ = 0.0;
  int n_tokens_ = 0;
  RoutingLog log_{1, 1, 1};
};

policy::Plan plan_of(policy::Mode mode) {
  policy::Plan plan;
  plan.mode = mode;
  plan.work.n_ctx = 64;
  return plan;
}

struct ModeTrial : testing::Test {
  const policy::Plan& choose() {
    return fastest(
        plans,
        [&](const policy::Plan& plan) {
          ++n_tried;
          return std::make_unique<TimedDriver>(step_seconds.at(plan.mode));
        },
        100, "model", record);
  }

  std::vector<policy::Plan> plans = {plan_of(policy::Mode::expert_cache),
                                     plan_of(policy::Mode::streamed),
                                     plan_of(policy::Mode::cpu_experts)};
  std::map<policy::Mode, double> step_seconds = {{policy::Mode::expert_cache, 0.02},
                                                 {policy::Mode::streamed, 0.01},
                                                 {policy::Mode::cpu_experts, 0.03}};
  MachineRecord record;
  int n_tried = 0;
};

TEST_F(ModeTrial, TheFastestWinsWhateverWasForecast) {
  EXPECT_EQ(choose().mode, policy::Mode::streamed);
  EXPECT_EQ(n_tried, 3);
  ASSERT_EQ(record.trials.size(), 3u);
  EXPECT_EQ(record.trials[1].mode, "streamed");
  EXPECT_NEAR(record.trials[1].tokens_per_second, 100.0, 1e-6);  // the median: slow steps are noise
}

TEST_F(ModeTrial, WhatIsKnownIsNotTriedAgain) {
  choose();
  step_seconds[policy::Mode::cpu_experts] = 0.001;
  EXPECT_EQ(choose().mode, policy::Mode::streamed);
  EXPECT_EQ(n_tried, 3);
  record.trials.erase(record.trials.begin() + 2);  // as if that mode had never been tried
  EXPECT_EQ(choose().mode, policy::Mode::cpu_experts);
  EXPECT_EQ(n_tried, 4);
}

TEST_F(ModeTrial, AShortContextIsNoObstacle) {
  for (policy::Plan& plan : plans) plan.work.n_ctx = 1;
  EXPECT_EQ(choose().mode, policy::Mode::streamed);
}

}  // namespace
}  // namespace sluice::engine::test
