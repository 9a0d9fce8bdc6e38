// The runs of `sluice simulate`: policies x budgets x machines, replayed in one pass over a trace.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/trace/replay.h"

namespace sluice::cli {

// What was replayed, as far as a pass over it tells.
struct TraceSummary {
  TraceSummary(policy::TraceHeader trace_header, std::string trace_source);

  void add(const policy::RoutingStep& step);
  uint64_t n_steps() const { return n_prefill + n_decode; }
  uint64_t expert_bytes() const;  // of all experts of all layers

  policy::TraceHeader header;
  std::string source;  // a file, or how it was made
  uint64_t n_prefill = 0;
  uint64_t n_decode = 0;
  std::vector<uint32_t> uses;  // [n_layers, n_experts]
};

// A policy, or Belady's optimum, which is none: it knows the future.
struct Contender {
  std::string_view name;
  std::optional<policy::PolicyKind> policy;  // nothing: Belady
};

std::span<const Contender> all_contenders();

struct SimulateOptions {
  std::vector<Contender> contenders;
  std::vector<double> budgets;  // per cent of all experts
  std::vector<policy::CostModel> machines;
  std::optional<double> copy_cost;  // of the default policy; nothing: as each machine has it
  const policy::RoutingProfile* profile = nullptr;

  bool needs_whole_trace() const;  // Belady does
};

struct SimulatedRow {
  Contender contender;
  double budget;
  policy::CostModel machine;
  double copy_cost;  // that the policy heeds; 0 for all but the default
  policy::ReplayResult result;
};

double tokens_per_second(const policy::ReplayResult& result);
double mb_per_token(const policy::ReplayResult& result);  // copied

using Progress = std::function<void(uint64_t done, uint64_t total)>;  // in steps

// Feeds every step to every replay.
void run_replays(const policy::StepSource& next, std::span<policy::Replay> replays,
                 const std::function<void(uint64_t n_steps)>& progress);

// A row for each machine, budget and contender, in this order. `whole` is the trace that `next`
// gives, where Belady needs it; n_steps is for the progress alone.
std::vector<SimulatedRow> simulate(const policy::RoutingShape& shape,
                                   const policy::StepSource& next, uint64_t n_steps,
                                   const policy::RoutingTrace* whole,
                                   const SimulateOptions& options, const Progress& progress);

}  // namespace sluice::cli
