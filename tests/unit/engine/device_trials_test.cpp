// The ways that a driver on a device tries before it settles on one: each is run as a text of this
// model's profile routes, and not as the session's own text is. A described machine's clock shows
// that, since what a step takes there depends on its experts alone.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backend/ram/ram_device.h"
#include "engine/device/device_steps.h"
#include "engine/machine/mode_trial.h"
#include "engine/machine/profile_file.h"
#include "engine/machine/session_plan.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

struct DeviceTrials : testing::Test {
  // The CPU as fast as the device: a cache is hardly better than none. Nothing that a wish would
  // switch on by itself.
  DeviceTrials() {
    const policy::Workload work{.n_ctx = 64, .prefill_chunk = 32};
    DeviceOptions& d = options.device;
    d.kind = DeviceKind::sim;
    d.n_gpu_layers = 2;
    d.n_cpu_moe = 1;  // or all would be resident
    d.prefetch = Choice::off;
    d.link_share = 0.0;
    d.sim.is_virtual = true;
    d.sim.machine.vram_free =
        policy::price(shape, work, {2, {0, 0}, 0, 0.0}).vram.total() + shape.expert_bytes() / 5;
    d.sim.machine.link_gbps = 10.0;
    d.sim.machine.cpu_gbps = d.sim.machine.gpu_gbps = 400.0;
    d.sim.machine.handshake_us = 0.1;
    d.profile_path = dir / "profile";
    keep_profile();
  }

  // Of a text whose favourites are the last experts of each layer.
  void keep_profile() const {
    const int n_experts = shape.layers[0].n_experts;
    std::vector<uint32_t> uses(static_cast<size_t>(shape.n_layers() * n_experts));
    for (size_t i = 0; i < uses.size(); ++i) {
      uses[i] = static_cast<uint32_t>(1 + i % static_cast<size_t>(n_experts));
    }
    policy::RoutingProfile profile(shape.n_layers(), n_experts);
    profile.add_run(uses, 1000);
    ProfileFile::save(options.device.profile_path, profile);
  }

  std::unique_ptr<StepDriver> settled(std::function<void(backend::RamDeviceOptions&)> watch) {
    const auto reroute = [](LayerId, int64_t, std::span<int32_t>) {
      ADD_FAILURE() << "a trial is no part of the session's text";
    };
    return make_device_driver({.file = model.file(),
                               .model = *model,
                               .threads = threads,
                               .options = options,
                               .reroute = reroute,
                               .watch_device = std::move(watch)});
  }

  OpenModel model{"qwen3moe", "Q8_0"};
  policy::ModelShape shape = model.shape();
  TempDir dir;
  ThreadPool threads{1};
  SessionOptions options{.n_ctx = 64, .prefill_chunk = 32};
};

// Beside it the same trials by hand, on a device of the same kind: every way, then the fastest to
// stay. Both clocks show the same time to the last digit, and another one for other routes.
TEST_F(DeviceTrials, EveryWayIsRoutedLikeTheProfilesText) {
  const SessionPlan planned =
      plan_session({.file = model.file(), .options = options, .n_threads = 1});
  ASSERT_GT(planned.ways.size(), 1u);
  ASSERT_TRUE(planned.profile);
  backend::RamDeviceOptions kind{.before_copy = {}};
  const auto driver = settled([&](const backend::RamDeviceOptions& o) { kind = o; });
  expect_contains(driver->placement().reason, "ways that were tried");

  const auto seconds_by_hand = [&](const policy::RoutingProfile* profile) {
    backend::RamDevice device(kind);
    RegisteredExperts experts(*model, device);
    const auto make = [&](const policy::Plan& plan, RouteOverride reroute) {
      ExpertRuntimeOptions o =
          runtime_options(plan, planned.shape, planned.machine, policy::PolicyKind::mixture);
      o.place.link_share = 0.0;
      o.reroute = std::move(reroute);
      o.profile = &*planned.profile;
      return std::make_unique<ExpertRuntime>(experts, planned.shape, device, threads, o);
    };
    SessionPlan tried = planned;
    for (PlannedWay& way : tried.ways) {
      EXPECT_GT(way.plan.n_gpu_layers, 0) << "the clock is the device's";
      TextRouting text((*model).config(), profile);
      const auto make_driver = [&](RouteOverride reroute) {
        return make(way.plan, std::move(reroute));
      };
      way.measured = try_steps(make_driver, text, (*model).config().n_vocab, options.n_ctx);
    }
    tried.choose_by_trials();
    return make(tried.plan(), {})->seconds();
  };
  EXPECT_EQ(driver->seconds(), seconds_by_hand(&*planned.profile));
  EXPECT_NE(driver->seconds(), seconds_by_hand(nullptr)) << "routes make a difference";
}

}  // namespace
}  // namespace sluice::engine::test
