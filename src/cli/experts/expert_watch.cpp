// See expert_watch.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/experts/expert_watch.h"

#include <CLI/CLI.hpp>

#include "base/check.h"
#include "cli/experts/expert_stats_table.h"
#include "cli/simulate/routing_shape.h"

namespace sluice::cli {

void ExpertWatchFlags::add_to(CLI::App& command) {
  const std::string group = "Experts";
  command.add_flag("--expert-stats", table, "at the end, show where experts were found, by layer")
      ->group(group);
  command.add_option("--expert-stats-json", json, "write that to a file as JSON; - is stdout")
      ->group(group);
  command
      .add_option("--trace-out", trace,
                  "record which experts every token used, for sluice simulate --trace; a name that "
                  "ends in .csv gets CSV")
      ->group(group);
}

ExpertWatch::ExpertWatch(const ExpertWatchFlags& flags, const std::string& model_file,
                         SessionOptions& options)
    : flags_(flags) {
  if (!flags.json.empty() && flags.json != "-") json_.emplace(flags.json);
  if (flags.trace.empty()) return;
  trace_.emplace(flags.trace, policy::TraceHeader{model_file, read_routing_shape(model_file)});
  options.on_routing = [this](const RoutedToken& token) { record(token); };
}

void ExpertWatch::record(const RoutedToken& token) {
  step_.phase = token.is_prompt ? policy::Phase::prefill : policy::Phase::decode;
  step_.token = token.token;
  step_.routed.clear();
  step_.begin = {0};
  CHECK(token.n_used > 0 && token.experts.size() == token.weights.size());
  for (size_t i = 0; i < token.experts.size(); ++i) {
    step_.routed.push_back({ExpertId(token.experts[i]), token.weights[i]});
    const size_t n = i + 1;
    if (n % static_cast<size_t>(token.n_used) == 0) step_.begin.push_back(static_cast<int>(n));
  }
  trace_->write(step_);
}

void ExpertWatch::finish(std::FILE* to, const PlacementInfo& placement, const ExpertStats& stats) {
  if (trace_) trace_->commit();
  if (!flags_.json.empty()) {
    const std::string text = dump(expert_stats_json(placement, stats), 2) + "\n";
    if (json_) {
      json_->append(std::as_bytes(std::span(text)));
      json_->commit();
    } else {
      std::fputs(text.c_str(), stdout);
    }
  }
  if (flags_.table) print_expert_stats(to, placement, stats);
}

}  // namespace sluice::cli
