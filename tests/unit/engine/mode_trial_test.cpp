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

// Takes a set time for every step, and now and then a much longer one; tells where it was routed.
class TimedDriver final : public StepDriver {
 public:
  TimedDriver(double seconds, RouteOverride reroute, TrialRoutes& routes)
      : step_seconds_(seconds), reroute_(std::move(reroute)), routes_(routes) {}

  void step(std::span<const StepRow> rows, policy::Phase, const StepListener&) override {
    n_tokens_ += static_cast<int>(rows.size());
    routes_.emplace_back(kTrialUsed, -1);
    reroute_(LayerId(1), 0, routes_.back());
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
  explicit Trial(int n_ctx) {
    TextRouting text(config(), nullptr);
    const auto make = [&](RouteOverride reroute) {
      return std::make_unique<TimedDriver>(0.01, std::move(reroute), routes);
    };
    tokens_per_second = try_steps(make, text, 100, n_ctx);
  }

  TrialRoutes routes;
  double tokens_per_second = 0.0;
};

TEST(ModeTrial, TakesTheMedianOfStepsSinceSlowOnesAreNoise) {
  EXPECT_NEAR(Trial(64).tokens_per_second, 100.0, 1e-6);
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
