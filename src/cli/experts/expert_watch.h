// What a command tells of a session's experts where it is asked to: --expert-stats,
// --expert-stats-json and --trace-out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "cli/simulate/trace_file.h"
#include "sluice/sluice.h"

namespace CLI {
class App;
}

namespace sluice::cli {

struct ExpertWatchFlags {
  bool table = false;
  std::string json;   // a file; "-": standard output
  std::string trace;  // a file

  void add_to(CLI::App& command);  // must outlive the parse
};

// Files are opened at once, so that a place that cannot be written shows before the work, and
// appear whole at its end.
class ExpertWatch {
 public:
  // Sees the routing of every session that is opened with these options, which it must outlive.
  ExpertWatch(const ExpertWatchFlags& flags, const std::string& model_file,
              SessionOptions& options);

  // The table goes to `to`.
  void finish(std::FILE* to, const PlacementInfo& placement, const ExpertStats& stats);
  void finish(std::FILE* to, const Session& session) {
    finish(to, session.placement(), session.expert_stats());
  }

 private:
  void record(const RoutedToken& token);

  const ExpertWatchFlags& flags_;
  std::optional<OutputFile> json_;
  policy::RoutingStep step_;
  std::optional<TraceOutput> trace_;
};

}  // namespace sluice::cli
