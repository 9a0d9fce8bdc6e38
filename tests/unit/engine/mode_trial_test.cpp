// Plans that are tried: how fast a driver's steps are, token by token of a text, routed like it.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/mode_trial.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cpu/host_memory.h"

namespace sluice::engine::test {
namespace {

constexpr int kTrialUsed = 2;

using TrialRoutes = std::vector<std::vector<int32_t>>;  // of layer 1, by step

// Takes a set time for every step, a longer one for the first ones, and now and then a much longer
// one; tells where it was routed.
struct Timing {
  double seconds = 0.01;
  int n_cold = 0;  // first steps that take longer
  double cold_seconds = 0.01;
  double seldom_seconds = 0.1;
};

class TimedDriver final : public StepDriver {
 public:
  TimedDriver(const Timing& timing, RouteOverride reroute, TrialRoutes& routes)
      : timing_(timing), reroute_(std::move(reroute)), routes_(routes) {}

  void step(std::span<const StepRow> rows, policy::Phase, const StepListener&) override {
    n_tokens_ += static_cast<int>(rows.size());
    routes_.emplace_back(kTrialUsed, -1);
    reroute_(LayerId(1), 0, routes_.back());
    const double usual = n_tokens_ <= timing_.n_cold ? timing_.cold_seconds : timing_.seconds;
    seconds_ += n_tokens_ % 5 == 0 ? timing_.seldom_seconds : usual;
  }
  void truncate(SequenceId, int n_tokens) override { n_tokens_ = n_tokens; }
  void fork(SequenceId, SequenceId, int) override {}
  int n_tokens(SequenceId) const override { return n_tokens_; }
  int max_rows() const override { return 1; }
  uint64_t kv_bytes() const override { return 0; }
  const RoutingLog& log() const override { return log_; }
  double seconds() const override { return seconds_; }

 private:
  Timing timing_;
  RouteOverride reroute_;
  TrialRoutes& routes_;
  double seconds_ = 0.0;
  int n_tokens_ = 0;
  RoutingLog log_{backend::allocate_host, 1, 1, 1};
};

model::Config config() {
  model::Config config;
  config.n_layers = 2;
  config.n_experts = 8;
  config.n_experts_used = kTrialUsed;
  return config;
}

struct Trial {
  explicit Trial(int n_ctx, const Timing& timing = {}) {
    TextRouting text(config(), nullptr);
    const auto make = [&](RouteOverride reroute) {
      return std::make_unique<TimedDriver>(timing, std::move(reroute), routes);
    };
    tokens_per_second = try_steps(make, text, 100, n_ctx);
  }

  TrialRoutes routes;
  double tokens_per_second = 0.0;
};

TEST(ModeTrial, TakesTheMedianOfStepsSinceSlowOnesAreNoise) {
  EXPECT_NEAR(Trial(64).tokens_per_second, 100.0, 1e-6);
}

// With a cold cache all ways are as slow as copies cross the link.
TEST(ModeTrial, StepsCountOnceTheCacheIsWarm) {
  const Timing filling{
      .seconds = 0.003, .n_cold = 200, .cold_seconds = 0.008, .seldom_seconds = 0.008};
  const Trial trial(4096, filling);
  EXPECT_NEAR(trial.tokens_per_second, 1.0 / 0.003, 1e-6);
  EXPECT_EQ(std::ssize(trial.routes), kTrialWarmUp + 24);
}

TEST(ModeTrial, ASlowMachineIsWarmAfterTwoSeconds) {
  const Trial trial(4096, {.seconds = 0.1, .seldom_seconds = 0.1});
  EXPECT_NEAR(trial.tokens_per_second, 10.0, 1e-6);
  EXPECT_NEAR(static_cast<double>(trial.routes.size()), 20 + 24, 1.0);
}

TEST(ModeTrial, AShortContextIsNoObstacle) { EXPECT_NEAR(Trial(1).tokens_per_second, 100.0, 1e-6); }

TEST(ModeTrial, RoutesEveryStepAsTheNextTokenOfTheText) {
  const Trial trial(20);
  ASSERT_EQ(trial.routes.size(), 20u);
  TextRouting beside(config(), nullptr);
  for (const std::vector<int32_t>& experts : trial.routes) {
    EXPECT_TRUE(std::ranges::equal(experts, beside.experts(LayerId(1))));
    beside.next_token();
  }
}

}  // namespace
}  // namespace sluice::engine::test
