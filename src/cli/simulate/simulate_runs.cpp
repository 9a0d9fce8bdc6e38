// See simulate_runs.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate/simulate_runs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "policy/trace/belady.h"

namespace sluice::cli {
namespace {

using policy::PolicyKind;

// Each replay runs over so many steps before the next one does, so that its state stays near the
// core, and steps are still few enough to be held.
constexpr size_t kBatch = 256;

std::vector<SimulatedRow> empty_rows(const SimulateOptions& options) {
  std::vector<SimulatedRow> rows;
  for (const policy::CostModel& machine : options.machines) {
    for (const double budget : options.budgets) {
      for (const Contender& contender : options.contenders) {
        const double copy_cost = contender.policy == PolicyKind::mixture
                                     ? options.copy_cost.value_or(machine.copy_cost())
                                     : 0.0;
        rows.push_back({contender, budget, machine, copy_cost, {}});
      }
    }
  }
  return rows;
}

}  // namespace

TraceSummary::TraceSummary(policy::TraceHeader trace_header, std::string trace_source)
    : header(std::move(trace_header)),
      source(std::move(trace_source)),
      uses(static_cast<size_t>(header.shape.n_total()), 0) {}

void TraceSummary::add(const policy::RoutingStep& step) {
  ++(step.phase == policy::Phase::decode ? n_decode : n_prefill);
  for (int l = 0; l < header.shape.n_layers; ++l) {
    for (const policy::RoutedExpert& routed : step.layer(l)) {
      ++uses[static_cast<size_t>(l * header.shape.n_experts + routed.expert.value)];
    }
  }
}

uint64_t TraceSummary::expert_bytes() const {
  const std::vector<uint64_t>& layers = header.shape.expert_bytes;
  return std::accumulate(layers.begin(), layers.end(), uint64_t{0}) *
         static_cast<uint64_t>(header.shape.n_experts);
}

double tokens_per_second(const policy::ReplayResult& result) {
  return result.time.total_ms > 0.0 ? 1000.0 / result.time.total_ms : 0.0;
}

double mb_per_token(const policy::ReplayResult& result) {
  const auto n_tokens = static_cast<double>(std::max<uint64_t>(result.n_tokens, 1));
  return static_cast<double>(result.copied_bytes) / 1e6 / n_tokens;
}

std::span<const Contender> all_contenders() {
  static const std::vector<Contender> all = [] {
    std::vector<Contender> list;
    for (const PolicyKind kind : {PolicyKind::mixture, PolicyKind::lru, PolicyKind::lru_global,
                                  PolicyKind::slru, PolicyKind::lfu, PolicyKind::dlfu}) {
      list.push_back({policy::policy_name(kind), kind});
    }
    list.push_back({"belady", {}});
    return list;
  }();
  return all;
}

bool SimulateOptions::needs_whole_trace() const {
  return std::ranges::any_of(contenders, [](const Contender& c) { return !c.policy; });
}

void run_replays(const policy::StepSource& next, std::span<policy::Replay> replays,
                 const std::function<void(uint64_t n_steps)>& progress) {
  std::vector<policy::RoutingStep> batch(kBatch);
  for (size_t n = kBatch; n == kBatch;) {
    n = 0;
    while (n < kBatch && next(batch[n])) ++n;
    for (policy::Replay& replay : replays) {
      for (size_t i = 0; i < n; ++i) replay.step(batch[i]);
      progress(n);
    }
  }
}

std::vector<SimulatedRow> simulate(const policy::RoutingShape& shape,
                                   const policy::StepSource& next, uint64_t n_steps,
                                   const policy::RoutingTrace* whole,
                                   const SimulateOptions& options, const Progress& progress) {
  CHECK(whole != nullptr || !options.needs_whole_trace());
  std::vector<SimulatedRow> rows = empty_rows(options);
  // Rows that differ in the machine alone share a replay, unless decisions heed the machine: those
  // of the default policy do, where nobody has said what a copy costs.
  constexpr size_t kAnyMachine = std::numeric_limits<size_t>::max();
  std::map<std::tuple<PolicyKind, double, size_t>, std::vector<SimulatedRow*>> sharing;
  std::vector<SimulatedRow*> of_belady;
  const size_t rows_per_machine = rows.size() / std::max<size_t>(options.machines.size(), 1);
  for (size_t i = 0; i < rows.size(); ++i) {
    SimulatedRow& row = rows[i];
    if (!row.contender.policy) {
      of_belady.push_back(&row);
      continue;
    }
    const bool heeds = row.contender.policy == PolicyKind::mixture && !options.copy_cost;
    sharing[{*row.contender.policy, row.budget, heeds ? i / rows_per_machine : kAnyMachine}]
        .push_back(&row);
  }
  std::vector<policy::Replay> replays;
  for (const auto& [key, sharers] : sharing) {
    const auto& [kind, budget, machine] = key;
    std::vector<policy::CostModel> machines;
    for (const SimulatedRow* row : sharers) machines.push_back(row->machine);
    const policy::CacheOptions cache{
        .policy = kind,
        .copy_cost = sharers[0]->copy_cost,
        .wait_cost = machine == kAnyMachine ? 0.0 : machines[0].wait_cost()};
    replays.emplace_back(shape, cache, budget / 100.0, machines, options.profile);
  }

  uint64_t done = 0;
  const auto advance = [&, total = n_steps * (replays.size() + of_belady.size())](uint64_t n) {
    progress(done += n, total);
  };
  run_replays(next, replays, advance);
  size_t i = 0;
  for (const auto& [key, sharers] : sharing) {
    for (size_t m = 0; m < sharers.size(); ++m) sharers[m]->result = replays[i].result(m);
    ++i;
  }
  for (SimulatedRow* row : of_belady) {
    row->result = policy::replay_belady(*whole, row->budget / 100.0, row->machine);
    advance(n_steps);
  }
  return rows;
}

}  // namespace sluice::cli
