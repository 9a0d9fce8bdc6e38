// The cost model against a GPU: what `sluice bench` measured on H200 machines, line by line, and
// what is predicted for it. A line either gave a figure of policy/plan/gpu_costs.h its value, and
// says which, or tests them all. Who measures again corrects the lines and the machine's rates
// here, then single figures.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <span>

#include "base/miss_split.h"
#include "policy/plan/fitted_rates.h"
#include "policy/plan/planner.h"
#include "policy/trace/replay.h"
#include "policy/trace/trace_generator.h"
#include "unit/policy/measured_shapes.h"

namespace sluice::policy::planner_test {
namespace {

constexpr double kWithin = 0.15;
constexpr double kFits = 0.02;       // of a line that gave a figure
constexpr double kSameError = 0.03;  // of a known error, before the table has to be corrected

struct Line {
  const char* what;
  Steps steps;
  int n_slots;  // of all layers' experts
  double link_share;
  double measured;           // tokens/s
  const char* gave = "";     // the figure that has its value from this line
  double known_error = 0.0;  // where the forecast is farther off than kWithin: by how much
};

constexpr Steps decode(int n, int depth) { return {.n_tokens = n, .depth = depth}; }
constexpr Steps prompt(int n, int depth = 0) {
  return {.is_prompt = true, .n_tokens = n, .depth = depth};
}

// a65068a; 16 cores. Its rates were not written down beside the lines; with these the cost model of
// that commit gives all 27 forecasts in the tables to their last digit. Of launch, readback and
// sampling they show the sum alone. The handshake is what is assumed where calibration finds 0.
Hardware h200() {
  Hardware h;
  h.vram_free = 140 * kGiB;
  h.ram_free = 125 * kGiB;
  h.gpu_gbps = 4168.3;
  h.link_gbps = 52.5;
  h.cpu_gbps = 114.16;
  h.copy_interference = 0.448;
  h.handshake_us = 35.0;
  h.launch_us = 10.2;
  h.readback_us = h.sampling_us = 0.0;
  h.n_cores = 16;
  return h;
}

// 4be1297 and 18c2b6f, on another machine: the GPU's rate and the CPU's are those with which the
// cost model of that day gives the forecasts in its tables.
Hardware earlier_h200() {
  Hardware h = h200();
  h.gpu_gbps = 4290.0;
  h.link_gbps = 52.0;
  h.cpu_gbps = 112.0;
  h.copy_interference = MachineRates().copy_interference;
  h.launch_us = 12.0;
  h.readback_us = 15.0;
  h.sampling_us = 5.0;
  return h;
}

Placement with_slots(const ModelShape& model, int n_slots, double link_share) {
  Placement place{.n_gpu_layers = model.n_layers(), .link_share = link_share};
  for (int i = 0; i < model.n_layers(); ++i) {
    place.n_slots.push_back((n_slots + i) / model.n_layers());
  }
  return place;
}

double predicted(const ModelShape& model, const Hardware& machine, const Line& line,
                 const LocalityCurve& locality) {
  return predict_steps(model, machine, {.n_ctx = 40960, .prefill_chunk = 4096}, line.steps,
                       with_slots(model, line.n_slots, line.link_share), locality);
}

void print(const Line& line, double tokens_per_second, const char* by = "") {
  std::printf("%-38s %8.1f %8.1f %+6.1f %% %s%s%s\n", line.what, line.measured, tokens_per_second,
              100.0 * (tokens_per_second / line.measured - 1.0), by, *line.gave ? "gave " : "",
              line.gave);
}

void compare(const ModelShape& model, const Hardware& machine, std::span<const Line> lines,
             const LocalityCurve& locality = LocalityCurve::typical()) {
  for (const Line& line : lines) {
    const double speed = predicted(model, machine, line, locality);
    print(line, speed);
    const double error = speed / line.measured - 1.0;
    if (line.known_error == 0.0) {
      EXPECT_NEAR(error, 0.0, *line.gave ? kFits : kWithin) << line.what << ": " << speed;
    } else {
      EXPECT_NEAR(error, line.known_error, kSameError)
          << line.what << ": " << speed << " tokens/s; correct the known error";
    }
  }
}

// What the cache makes of the very text that was measured: 512 tokens after a prompt of 256, from
// slots without anything of use; the first time does not count, and three more do.
LocalityCurve replayed(const ModelShape& model, int n_slots) {
  const auto n_experts = model.layers[0].n_experts;
  GeneratorOptions text;
  text.shape = generator_shape(model.n_layers(), n_experts, model.n_experts_used,
                               model.layers[0].expert_bytes);
  text.n_prefill = 256;
  text.n_decode = 512;
  const RoutingTrace trace = generate_trace(text);
  const CostModel cost{h200()};
  const double share = static_cast<double>(n_slots) / (n_experts * model.n_layers());
  Replay replay(text.shape, {.copy_cost = cost.copy_cost(), .wait_cost = cost.wait_cost()}, share,
                std::span(&cost, 1));
  const std::span steps(trace.steps);
  for (const RoutingStep& step : steps.first(256)) replay.step(step);
  const auto decode_once = [&] {
    for (const RoutingStep& step : steps.subspan(256)) replay.step(step);
    return replay.result();
  };
  const ReplayResult first = decode_once();
  decode_once(), decode_once();
  const ReplayResult all = decode_once();
  const auto n_lookups = static_cast<double>(all.n_lookups - first.n_lookups);
  const auto n_hits = static_cast<double>(all.n_hits - first.n_hits);
  const auto n_copies = static_cast<double>(all.n_copies - first.n_copies);
  return LocalityCurve({{share, n_hits / n_lookups, n_copies / (n_lookups - n_hits)}});
}

ModelShape with_heads(ModelShape qwen3_30b) {
  qwen3_30b.n_heads = 32;
  return qwen3_30b;
}

// By a generated text's routing, which the cache follows. Trials had chosen to read all misses at
// 12, 11 and 8 GiB (mode_trial.h), as the forecasts in the tables show; no split was asked for.
constexpr Line kTexts30B[] = {
    {"12 GiB, all misses read", decode(512, 256), 3860, 1.0, 535.2},
    {"8 GiB, all misses read", decode(512, 256), 2356, 1.0, 303.6},
    {"8 GiB, split 0.35", decode(512, 256), 2356, 0.35, 329.0},
    {"8 GiB, split 0.6", decode(512, 256), 2356, 0.6, 311.9},
    {"5 GiB", decode(512, 256), 1229, 0.0, 218.2},
    {"5 GiB, split 0.35", decode(512, 256), 1229, 0.35, 216.3},
    {"5 GiB, split 0.6", decode(512, 256), 1229, 0.6, 180.0},
};
constexpr Line kTexts35B[] = {
    {"11 GiB, all misses read", decode(512, 256), 4526, 1.0, 504.7},
};
constexpr Line kEarlierTexts30B[] = {
    {"12 GiB, earlier", decode(512, 256), 3861, 0.0, 517.9},
    {"8 GiB, earlier", decode(512, 256), 2357, 0.0, 316.1},
    {"8 GiB, split 0.35, earlier", decode(512, 256), 2357, 0.35, 324.0},
    {"8 GiB, split 0.6, earlier", decode(512, 256), 2357, 0.6, 318.7},
    {"5 GiB, split 0.32, earlier", decode(512, 256), 1231, 0.317, 205.3},
    {"5 GiB, split 0.35, earlier", decode(512, 256), 1231, 0.35, 209.6},
    {"5 GiB, split 0.6, earlier", decode(512, 256), 1231, 0.6, 180.0},
    {"no expert, split 0.4, earlier", decode(512, 256), 0, 0.4, 95.3},
    {"no expert in VRAM, earlier", decode(512, 256), 0, 0.0, 80.4},
};

TEST(ForecastOnAnH200, OfQwen3_30B) {
  const ModelShape model = with_heads(qwen3_30b());
  constexpr Line kLines[] = {
      {"decode 128, all in VRAM", decode(128, 0), 6144, 0.0, 718.4, "kKernelSeconds"},
      {"decode 128 at 8192", decode(128, 8192), 6144, 0.0, 563.0, "kAttendRate"},
      {"decode 512 at 256, a text's routing", decode(512, 256), 6144, 0.0, 667.9, "kSplitSeconds"},
      {"decode 512 at 256", decode(512, 256), 6144, 0.0, 669.7},
      {"no expert in VRAM, split 0.4", decode(512, 256), 0, 0.4, 93.2},
      {"no expert in VRAM", decode(512, 256), 0, 0.0, 90.3},
      {"prompt of 32", prompt(32), 6144, 0.0, 3328.5},
      {"prompt of 64", prompt(64), 6144, 0.0, 5663.3},
      {"prompt of 128", prompt(128), 6144, 0.0, 8774.2},
      {"prompt of 256", prompt(256), 6144, 0.0, 13504.3},
      {"prompt of 512", prompt(512), 6144, 0.0, 17442.7},
      {"prompt of 1024", prompt(1024), 6144, 0.0, 20134.7},
      {"prompt of 2048", prompt(2048), 6144, 0.0, 20766.3},
      {"prompt of 4096", prompt(4096), 6144, 0.0, 19898.7},
      {"prompt of 8192", prompt(8192), 6144, 0.0, 16954.7},
      {"prompt of 128 at 8192", prompt(128, 8192), 6144, 0.0, 3964.8, "kAttendRowOps"},
      {"prompt of 512 at 8192", prompt(512, 8192), 6144, 0.0, 11033.8},
      {"prompt of 2048 at 8192", prompt(2048, 8192), 6144, 0.0, 12047.0, "kAttendOpsPerByte"},
      {"prompt of 8192 at 8192", prompt(8192, 8192), 6144, 0.0, 10681.1},
      // Random weights use about half of the experts; a text is supposed to use them all.
      {"prompt of 2048, 12 GiB", prompt(2048), 3718, 0.0, 17288.2, "", -0.18},
      {"prompt of 2048, 5 GiB", prompt(2048), 1088, 0.0, 12581.6, "", -0.46},
  };
  compare(model, h200(), kLines);
  compare(model, h200(), kTexts30B);
  compare(model, earlier_h200(), kEarlierTexts30B);
}

// Random weights that go their own way choose the same experts again and again.
TEST(ForecastOnAnH200, WhereSomeMightBeMissingAndNoneIs) {
  constexpr Line kLines[] = {
      {"12 GiB, the model's own routing", decode(512, 256), 3860, 0.0, 653.0, "kLookupSeconds"}};
  const LocalityCurve all_hit({{0.5, 1.0}});
  compare(with_heads(qwen3_30b()), h200(), kLines, all_hit);
}

TEST(ForecastOnAnH200, OfQwen36_35B) {
  constexpr Line kLines[] = {
      {"decode 128, all in VRAM", decode(128, 0), 10240, 0.0, 676.5, "kStateRate"},
      {"decode 512 at 256", decode(512, 256), 10240, 0.0, 657.3},
      {"no expert in VRAM, split 0.4", decode(512, 256), 0, 0.4, 149.6},
      {"no expert in VRAM", decode(512, 256), 0, 0.0, 134.9},
      {"prompt of 2048", prompt(2048), 10240, 0.0, 20351.7},
      {"prompt of 2048, 11 GiB", prompt(2048), 4294, 0.0, 8736.6},
  };
  compare(qwen36_35b(), h200(), kLines);
  compare(qwen36_35b(), h200(), kTexts35B);
}

TEST(ForecastOnAnH200, OfADenseModel) {
  constexpr Line kLines[] = {{"decode", decode(128, 0), 36, 0.0, 313.0, "kNetworkRate"}};
  compare(qwen3_8b(), earlier_h200(), kLines);
}

// The costs alone: with the hits that there were.
TEST(ForecastOnAnH200, OfTextsWhoseHitsAreKnown) {
  const auto check = [](const ModelShape& model, const Hardware& machine,
                        std::span<const Line> lines) {
    for (const Line& line : lines) {
      if (line.n_slots == 0) continue;
      const double speed = predicted(model, machine, line, replayed(model, line.n_slots));
      print(line, speed, "by its own routing ");
      EXPECT_NEAR(speed / line.measured, 1.0, kWithin) << line.what;
    }
  };
  check(with_heads(qwen3_30b()), h200(), kTexts30B);
  check(with_heads(qwen3_30b()), earlier_h200(), kEarlierTexts30B);
  check(qwen36_35b(), h200(), kTexts35B);
}

// Of the ways that were measured with so many slots the plan is like one that is never below 0.95
// of the best: like 0.35 at 8 GiB, like that or none of the misses at 5.
TEST(ForecastOnAnH200, ChoosesASplitThatIsAmongTheFastest) {
  for (const auto& [n_slots, may_be_none] : {std::pair(2356, false), std::pair(1229, true)}) {
    Wishes wishes;
    wishes.moe = MoeWish::cache;
    wishes.n_slots = n_slots;
    const Plan plan = make_plan(with_heads(qwen3_30b()), h200(), wishes);
    const auto share = static_cast<float>(plan.link_share);
    if (may_be_none && share == 0.0f) continue;
    for (int n_misses = 1; n_misses <= 3; ++n_misses) {
      EXPECT_EQ(link_reads(n_misses, share), link_reads(n_misses, 0.35f))
          << n_slots << " experts in VRAM, split " << share << ", " << n_misses << " misses";
    }
  }
}

}  // namespace
}  // namespace sluice::policy::planner_test
