// See simulate_report.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate/simulate_report.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace sluice::cli {
namespace {

using policy::CostModel;
using policy::ReplayResult;

const std::vector<double> kBudgets = {3, 6.25, 9, 12.5, 18.75, 25, 31.25, 37.5, 43.75, 50, 60, 75};
constexpr double kFrontierBudget = 12.5;
const std::vector<double> kCopyCosts = {0, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64};

// Each sqrt(2) times the one before, to two decimals.
std::vector<double> half_octaves(double first, int n) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(std::round(100 * first * std::exp2(i / 2.0)) / 100);
  return values;
}

class Report {
 public:
  Report(const TraceSummary& summary, const policy::RoutingTrace& trace,
         const SimulateOptions& options, const Progress& progress)
      : summary_(summary),
        trace_(trace),
        shape_(trace.header.shape),
        options_(options),
        machine_(options.machines[0]),
        progress_(progress) {}

  Json document() {
    const std::vector<SimulatedRow> rows =
        run({all_contenders().begin(), all_contenders().end()}, {machine_});
    return {{"trace", trace_json()},    {"machine", machine_json()}, {"curves", curves(rows)},
            {"speed_map", speed_map()}, {"layers", layers(rows)},    {"frontier", frontier()}};
  }

 private:
  std::vector<SimulatedRow> run(std::vector<Contender> contenders,
                                std::vector<CostModel> machines) const {
    SimulateOptions options = options_;
    options.contenders = std::move(contenders);
    options.budgets = kBudgets;
    options.machines = std::move(machines);
    return simulate(shape_, policy::steps_of(trace_), trace_.steps.size(), &trace_, options,
                    progress_);
  }

  Json trace_json() const {
    return {{"model", summary_.header.model},
            {"source", summary_.source},
            {"n_layers", shape_.n_layers},
            {"n_experts", shape_.n_experts},
            {"n_experts_used", shape_.n_experts_used},
            {"n_prefill", summary_.n_prefill},
            {"n_decode", summary_.n_decode},
            {"expert_bytes_total", summary_.expert_bytes()}};
  }

  Json machine_json() const {
    return {{"link_gbps", machine_.link_gbps},
            {"cpu_gbps", machine_.cpu_gbps},
            {"gpu_gbps", machine_.gpu_gbps},
            {"handshake_us", machine_.handshake_us}};
  }

  // Rows come budget by budget, each with all contenders.
  static Json curves(const std::vector<SimulatedRow>& rows) {
    Json curves = Json::array();
    for (const Contender& contender : all_contenders()) {
      Json points = Json::array();
      for (const SimulatedRow& row : rows) {
        if (row.contender.name != contender.name) continue;
        const policy::TokenTime& time = row.result.time;
        points.push_back({{"budget", row.budget},
                          {"hit_rate", row.result.hit_rate()},
                          {"mb_per_token", mb_per_token(row.result)},
                          {"ms_per_token", time.total_ms},
                          {"gpu_ms", time.gpu_ms},
                          {"cpu_ms", time.cpu_ms},
                          {"handshake_ms", time.handshake_ms},
                          {"copy_ms", time.copy_ms},
                          {"copy_wait_ms", time.copy_wait_ms}});
      }
      curves.push_back({{"policy", contender.name}, {"points", std::move(points)}});
    }
    return curves;
  }

  // The policy learns as it goes, so with more slots it may happen to copy more than pays. Slots
  // can be left empty: each cell shows the fastest of its own budget and all smaller ones, and
  // used_budget says which one that was.
  Json speed_map() const {
    const std::vector<double> links = half_octaves(4, 9);
    std::vector<CostModel> machines(links.size(), machine_);
    for (size_t i = 0; i < links.size(); ++i) machines[i].link_gbps = links[i];
    Json speeds = Json::array(), used = Json::array();
    double best = 0.0, best_budget = 0.0;
    for (const SimulatedRow& row : run({all_contenders()[0]}, machines)) {
      const bool is_first = row.budget == kBudgets[0];
      if (is_first) speeds.push_back(Json::array()), used.push_back(Json::array());
      const double speed = tokens_per_second(row.result);
      if (is_first || speed >= best) best = speed, best_budget = row.budget;
      speeds.back().push_back(best);
      used.back().push_back(best_budget);
    }
    Json vram = Json::array();
    for (const double budget : kBudgets) {
      vram.push_back(budget / 100.0 * static_cast<double>(summary_.expert_bytes()) / kGiB);
    }
    return {{"policy", all_contenders()[0].name}, {"budgets", kBudgets},
            {"vram_gib", std::move(vram)},        {"links", links},
            {"tokens_per_s", std::move(speeds)},  {"used_budget", std::move(used)}};
  }

  Json layers(const std::vector<SimulatedRow>& rows) const {
    Json hit_rate = Json::array();
    for (const SimulatedRow& row : rows) {
      if (row.contender.policy != policy::PolicyKind::mixture) continue;
      hit_rate.push_back(row.result.layer_hit_rate);
    }
    return {{"budgets", kBudgets}, {"hit_rate", hit_rate}, {"use_entropy", use_entropy()}};
  }

  // Bits, by layer: log2(n_experts) where all are used alike.
  std::vector<double> use_entropy() const {
    const auto n_experts = static_cast<size_t>(shape_.n_experts);
    const std::vector<uint32_t>& uses = summary_.uses;
    std::vector<double> entropy;
    for (size_t first = 0; first < uses.size(); first += n_experts) {
      double n = 0.0;
      for (size_t e = 0; e < n_experts; ++e) n += uses[first + e];
      double bits = 0.0;
      for (size_t e = 0; e < n_experts; ++e) {
        const double share = uses[first + e] / std::max(n, 1.0);
        if (share > 0.0) bits -= share * std::log2(share);
      }
      entropy.push_back(bits);
    }
    return entropy;
  }

  // What is known before the first token is decoded: earlier runs, or else the prompt.
  policy::RoutingProfile foreknowledge() const {
    if (options_.profile != nullptr) return *options_.profile;
    TraceSummary prompt(trace_.header, "");
    for (const policy::RoutingStep& step : trace_.steps) {
      if (step.phase == policy::Phase::decode) break;
      prompt.add(step);
    }
    policy::RoutingProfile profile(shape_.n_layers, shape_.n_experts);
    profile.add_run(prompt.uses, prompt.n_steps());
    return profile;
  }

  // Three ways with a miss, on machines of many speeds: "compute" never copies, "cache" computes
  // the miss where it is and copies for the future, "stream" copies first and computes on the GPU.
  Json frontier() const {
    const std::vector<double> links = half_octaves(2, 11);
    const std::vector<double> cpus = half_octaves(5, 11);
    std::vector<CostModel> machines;
    for (const double link : links) {
      for (const double cpu : cpus) {
        machines.push_back(machine_);
        machines.back().link_gbps = link;
        machines.back().cpu_gbps = cpu;
      }
    }
    std::vector<CostModel> streaming = machines;
    for (CostModel& machine : streaming) machine.streams_misses = true;

    const double share = kFrontierBudget / 100.0;
    const policy::RoutingProfile known = foreknowledge();
    std::vector<policy::Replay> replays;
    replays.emplace_back(
        shape_, policy::CacheOptions{.policy = policy::PolicyKind::lfu, .max_copy_bytes = 0}, share,
        machines, &known);
    replays.emplace_back(shape_, policy::CacheOptions{}, share, streaming, options_.profile);
    for (const double cost : kCopyCosts) {
      replays.emplace_back(shape_, policy::CacheOptions{.copy_cost = cost}, share, machines,
                           options_.profile);
    }
    uint64_t done = 0;
    run_replays(policy::steps_of(trace_), replays,
                [&](uint64_t n) { progress_(done += n, trace_.steps.size() * replays.size()); });
    return frontier_json(links, cpus, replays);
  }

  static Json frontier_json(const std::vector<double>& links, const std::vector<double>& cpus,
                            const std::vector<policy::Replay>& replays) {
    Json compute = Json::array(), cache = Json::array(), stream = Json::array();
    Json copy_cost = Json::array(), megabytes = Json::array();
    for (size_t l = 0; l < links.size(); ++l) {
      for (Json* grid : {&compute, &cache, &stream, &copy_cost, &megabytes}) {
        grid->push_back(Json::array());
      }
      for (size_t c = 0; c < cpus.size(); ++c) {
        const size_t machine = l * cpus.size() + c;
        compute.back().push_back(tokens_per_second(replays[0].result(machine)));
        stream.back().push_back(tokens_per_second(replays[1].result(machine)));
        size_t best = 0;
        for (size_t i = 1; i < kCopyCosts.size(); ++i) {
          const auto ms = [&](size_t j) { return replays[2 + j].result(machine).time.total_ms; };
          if (ms(i) < ms(best)) best = i;
        }
        const ReplayResult result = replays[2 + best].result(machine);
        cache.back().push_back(tokens_per_second(result));
        copy_cost.back().push_back(kCopyCosts[best]);
        megabytes.back().push_back(mb_per_token(result));
      }
    }
    return {{"budget", kFrontierBudget},
            {"links", links},
            {"cpus", cpus},
            {"modes", {"compute", "cache", "stream"}},
            {"tokens_per_s", {{"compute", compute}, {"cache", cache}, {"stream", stream}}},
            {"copy_cost", copy_cost},
            {"mb_per_token", megabytes}};
  }

  const TraceSummary& summary_;
  const policy::RoutingTrace& trace_;
  const policy::RoutingShape& shape_;
  const SimulateOptions& options_;
  const CostModel& machine_;
  const Progress& progress_;
};

}  // namespace

Json report_document(const TraceSummary& summary, const policy::RoutingTrace& trace,
                     const SimulateOptions& options, const Progress& progress) {
  return Report(summary, trace, options, progress).document();
}

}  // namespace sluice::cli
