// The flags of `sluice simulate` that are lists: policies, budgets, and machines to sweep.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/simulate/simulate_runs.h"

namespace CLI {
class App;
}

namespace sluice::cli {

// All throw Errc::bad_request with what was expected.
std::vector<Contender> parse_contenders(const std::string& list);  // empty: all
std::vector<double> parse_budgets(const std::string& list);

struct MachineFlags {
  std::string description, link, cpu, gpu, handshake;  // empty: not said

  void add_to(CLI::App& command);  // must outlive the parse

  // Every combination of the rates; what was not said is as --hw has it, or typical.
  std::vector<policy::CostModel> all() const;
};

}  // namespace sluice::cli
