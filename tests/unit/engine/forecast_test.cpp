// The planner against the clock: on a grid of machines, the RAM device's virtual time per token in
// every mode is what the planner said it would be, and the mode it chose is the best there is, or
// nearly so.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "backend/ram/ram_device.h"
#include "engine/device/device_steps.h"
#include "policy/trace/replay.h"
#include "policy/trace/trace_generator.h"
#include "support/sanitizers.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

constexpr int kWarmUp = 96;
constexpr int kMeasured = 64;
constexpr double kRealExpertBytes = 2.8e6;

struct GridMachine {
  double link, cpu, vram;  // GB/s, GB/s, share of the model
};

std::vector<GridMachine> grid() {
  std::vector<GridMachine> all;
  for (const double link : {3.0, 12.0, 25.0, 55.0}) {
    for (const double cpu : {10.0, 100.0}) {
      for (const double vram : {0.05, 0.15, 0.3, 0.6, 1.1}) all.push_back({link, cpu, vram});
    }
  }
  if (sluice::test::kSanitized)
    all.erase(all.begin() + 10, all.end());  // times do not differ there
  return all;
}

// Routing as of a real text; a model whose experts are a few kilobytes instead of megabytes, on
// machines that are slower by as much: all times are those of the real ones.
class Forecast : public ::testing::Test {
 protected:
  static model_file::SynthOptions options() {
    model_file::SynthOptions o = model::test::tiny_options("qwen3moe", "Q8_0");
    o.config.n_layers = 6;
    o.config.n_experts = 64;
    o.config.n_experts_used = 6;
    o.config.d_ff = 64;
    o.config.n_heads = 2;
    o.config.n_kv_heads = 1;
    return o;
  }

  // A text, and what an earlier run of its first part has left, so that caches begin warm.
  struct Text {
    Text(uint64_t seed, uint64_t expert_bytes) {
      policy::GeneratorOptions generator;
      generator.shape = policy::generator_shape(6, 64, 6, expert_bytes);
      generator.seed = seed;
      generator.n_prefill = kWarmUp;
      generator.n_decode = kMeasured;
      trace = policy::generate_trace(generator);
      std::vector<uint32_t> uses(6 * 64, 0);
      for (int i = 0; i < kWarmUp; ++i) {
        for (int layer = 0; layer < 6; ++layer) {
          for (const auto& routed : trace.steps[static_cast<size_t>(i)].layer(layer)) {
            ++uses[static_cast<size_t>(layer * 64 + routed.expert.value)];
          }
        }
      }
      profile.add_run(uses, kWarmUp);
    }

    policy::RoutingTrace trace;
    policy::RoutingProfile profile{6, 64};
  };

  Forecast() : model(options()), shape(model.shape()), known(3, shape.layers[0].expert_bytes) {}

  policy::Hardware hardware(const GridMachine& m, int n_sequences = 1) const {
    const double scale = static_cast<double>(shape.layers[0].expert_bytes) / kRealExpertBytes;
    uint64_t n_bytes = shape.expert_bytes() + shape.output_bytes;
    for (const policy::LayerShape& layer : shape.layers) n_bytes += layer.trunk_bytes;
    policy::Hardware h;
    h.vram_free =
        static_cast<uint64_t>(m.vram * static_cast<double>(n_bytes)) + fixed_bytes(n_sequences);
    h.ram_free = 64 * kGiB;
    h.gpu_gbps = 400.0 * scale;
    h.link_gbps = m.link * scale;
    h.cpu_gbps = m.cpu * scale;
    h.n_cores = 8;
    h.experts_us = 30.0;  // more than a GPU has, so that it counts beside a slow link or CPU
    return h;
  }

  // Buffers and staging weigh more beside a tiny model than beside a real one: they come on top.
  uint64_t fixed_bytes(int n_sequences) const {
    policy::Placement none{6, std::vector<int>(6), 0, 0.0};
    policy::Workload all = work();
    all.n_sequences = n_sequences;
    const policy::VramBytes bytes = policy::price(shape, all, none).vram;
    return bytes.scratch + bytes.staging + bytes.tables + bytes.kv;
  }

  static policy::Workload work() { return {.n_ctx = kWarmUp + kMeasured, .prefill_chunk = 1}; }

  // What the cache makes of this routing on that machine, by the share of experts that it holds.
  policy::LocalityCurve locality(const policy::Hardware& h) const {
    const policy::CostModel cost{h};
    std::vector<policy::LocalityCurve::Point> points;
    double before = 0.0;
    for (const double share : {0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.6, 0.8}) {
      policy::CacheOptions cache{.copy_cost = cost.copy_cost(), .wait_cost = cost.wait_cost()};
      policy::Replay replay(known.trace.header.shape, cache, share, std::span(&cost, 1),
                            &known.profile);
      for (const policy::RoutingStep& step : known.trace.steps) replay.step(step);
      before = std::max(before, replay.result().hit_rate());
      points.push_back({share, before});
    }
    return policy::LocalityCurve(points);
  }

  policy::Plan plan(const policy::Hardware& h, policy::MoeWish moe,
                    std::optional<int> n_gpu_layers = {}) const {
    policy::Wishes wishes;
    wishes.moe = moe;
    wishes.n_gpu_layers = n_gpu_layers;
    wishes.n_ctx = work().n_ctx;
    wishes.prefill_chunk = 1;
    return policy::make_plan(shape, h, wishes, locality(h));
  }

  // Seconds per step of the second part of texts, a row of each, on the virtual clock.
  double run(const policy::Plan& p, const policy::Hardware& h, std::span<const Text> texts) const {
    if (p.n_gpu_layers == 0) {
      return host_seconds(shape, p.work, shape.n_layers(), {1, kWarmUp + kMeasured / 2},
                          h.cpu_gbps) +
             static_cast<double>(shape.output_bytes) / (h.cpu_gbps * 1e9) +
             policy::step_seconds(h, false);
    }
    backend::RamDevice device({.n_bytes = h.vram_free,
                               .link_gbps = h.link_gbps,
                               .delay_us = 0.0,
                               .clock = backend::Clock::virtual_time,
                               .device_gbps = h.gpu_gbps,
                               .cpu_gbps = h.cpu_gbps,
                               .handshake_us = h.handshake_us,
                               .layer_us = policy::kGpuLayerSeconds * 1e6,
                               .experts_us = h.experts_us,
                               .lookup_us = policy::kLookupSeconds * 1e6,
                               .link_us = policy::kLinkBursts * policy::kLinkBurstSeconds * 1e6,
                               .copy_interference = h.copy_interference,
                               .before_copy = {}});
    ThreadPool threads(1);
    ExpertRuntimeOptions options = runtime_options(p, shape, h, policy::PolicyKind::mixture);
    options.profile = &texts[0].profile;
    int pos = 0;
    options.reroute = [&](LayerId layer, int64_t row, std::span<int32_t> experts) {
      const Text& text = texts[static_cast<size_t>(row)];
      const auto routed = text.trace.steps[static_cast<size_t>(pos)].layer(layer.value);
      for (size_t k = 0; k < routed.size(); ++k) experts[k] = routed[k].expert.value;
    };
    RegisteredExperts experts(*model, device);
    ExpertRuntime runtime(experts, shape, device, threads, options);
    double start = 0.0;
    for (; pos < kWarmUp + kMeasured; ++pos) {
      if (pos == kWarmUp) start = runtime.seconds();
      std::vector<StepRow> rows;
      for (int r = 0; r < std::ssize(texts); ++r) {
        rows.push_back({static_cast<TokenId>(pos % 261), SequenceId(r), true});
      }
      runtime.step(rows, policy::Phase::decode, {[](int64_t, std::span<const float>) {}});
    }
    return (runtime.seconds() - start) / kMeasured;
  }

  OpenModel model;
  policy::ModelShape shape;
  Text known;  // to the planner
};

// By mode, where it is possible: experts cached, on the CPU, on the device; nothing on the device.
TEST_F(Forecast, IsWithin15PercentOfTheVirtualClockAndTheChoiceIsTheBest) {
  constexpr std::pair<policy::MoeWish, std::optional<int>> kWays[] = {
      {policy::MoeWish::cache, {}},
      {policy::MoeWish::cpu, {}},
      {policy::MoeWish::gpu, {}},
      {policy::MoeWish::automatic, 0}};
  int n_compared = 0;
  for (const GridMachine& m : grid()) {
    const policy::Hardware h = hardware(m);
    const policy::Mode chosen = plan(h, policy::MoeWish::automatic).mode;
    double best = std::numeric_limits<double>::max(), of_chosen = 0.0;
    for (const auto& [moe, n_gpu_layers] : kWays) {
      policy::Plan p;
      try {
        p = plan(h, moe, n_gpu_layers);
      } catch (const Error&) {
        continue;
      }
      const double seconds = run(p, h, {&known, 1});
      EXPECT_NEAR(1.0 / p.forecast().speed.decode / seconds, 1.0, 0.15)
          << "link " << m.link << ", CPU " << m.cpu << ", VRAM " << m.vram << ", "
          << policy::mode_name(p.mode) << ": " << seconds * 1e6 << " us";
      ++n_compared;
      best = std::min(best, seconds);
      if (p.mode == chosen) of_chosen = seconds;
    }
    ASSERT_GT(of_chosen, 0.0) << policy::mode_name(chosen) << " was chosen, and no way gave it";
    EXPECT_GE(best / of_chosen, 0.95) << "link " << m.link << ", CPU " << m.cpu << ", VRAM "
                                      << m.vram << ", " << policy::mode_name(chosen);
  }
  EXPECT_GE(n_compared, 3 * std::ssize(grid()));
}

// Other texts than the one that the planner's locality came from, with other experts. One text may
// be off by more (of 384 runs with twelve texts one was: 18 %); a forecast is about many.
TEST_F(Forecast, IsWithin15PercentOnRoutingThatThePlannerWasNotTold) {
  std::vector<Text> others;
  for (const uint64_t seed : {4, 5, 6, 7, 8, 9}) {
    others.emplace_back(seed, shape.layers[0].expert_bytes);
  }
  int n_cached = 0;
  for (const GridMachine& m : grid()) {
    const policy::Hardware h = hardware(m);
    policy::Plan p;
    try {
      p = plan(h, policy::MoeWish::cache);
    } catch (const Error&) {
      continue;
    }
    double seconds = 0.0;
    for (const Text& text : others) seconds += run(p, h, {&text, 1});
    seconds /= static_cast<double>(others.size());
    EXPECT_NEAR(1.0 / p.forecast().speed.decode / seconds, 1.0, 0.15)
        << "link " << m.link << ", CPU " << m.cpu << ", VRAM " << m.vram << ": " << seconds * 1e6
        << " us";
    n_cached += p.mode == policy::Mode::expert_cache;
  }
  EXPECT_GE(2 * n_cached, std::ssize(grid()));
}

// A row of each of several sequences, whose texts the planner was not told of.
TEST_F(Forecast, OfSeveralRowsIsWithin15PercentWhereverExpertsAre) {
  std::vector<Text> texts;
  for (uint64_t seed = 20; seed < 36; ++seed) {
    texts.emplace_back(seed, shape.layers[0].expert_bytes);
  }
  for (const int n_rows : {2, 4, 8, 16}) {
    for (const auto& [moe, vram] : {std::pair(policy::MoeWish::gpu, 1.2),
                                    {policy::MoeWish::gpu, 0.3},
                                    {policy::MoeWish::cache, 0.3},
                                    {policy::MoeWish::cpu, 0.3}}) {
      for (const double cpu : {10.0, 100.0}) {
        const policy::Hardware h = hardware({25.0, cpu, vram}, n_rows);
        policy::Wishes wishes;
        wishes.moe = moe;
        wishes.n_ctx = work().n_ctx;
        wishes.n_sequences = n_rows;
        wishes.prefill_chunk = 1;
        const policy::Plan p = policy::make_plan(shape, h, wishes, locality(h));
        const double seconds = run(p, h, std::span(texts).first(static_cast<size_t>(n_rows)));
        EXPECT_NEAR(p.step_seconds() / seconds, 1.0, 0.15)
            << n_rows << " rows, CPU " << cpu << ", " << policy::mode_name(p.mode) << ": "
            << seconds * 1e6 << " us";
      }
    }
  }
}

}  // namespace
}  // namespace sluice::engine::test
