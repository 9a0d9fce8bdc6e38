// See simulate_table.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate/simulate_table.h"

#include <algorithm>
#include <cstdio>
#include <iomanip>

#include "base/error.h"
#include "base/units.h"
#include "cli/terminal/terminal_text.h"

namespace sluice::cli {
namespace {

bool same_rates(const policy::CostModel& a, const policy::CostModel& b) {
  return a.link_gbps == b.link_gbps && a.cpu_gbps == b.cpu_gbps && a.gpu_gbps == b.gpu_gbps;
}

// Empty where the default policy, the only one that heeds it, does not take part.
std::string copy_costs(std::span<const SimulatedRow> rows) {
  std::vector<double> costs;
  for (const SimulatedRow& row : rows) {
    if (row.contender.policy == policy::PolicyKind::mixture) costs.push_back(row.copy_cost);
  }
  if (costs.empty()) return "";
  const auto [least, most] = std::ranges::minmax(costs);
  if (most == 0.0) return "; default goes for hits alone";
  return cat("; default weighs a copy at ", std::setprecision(3), least,
             least == most ? "" : cat(std::setprecision(3), " to ", most), " uses");
}

void print_head(const TraceSummary& trace, std::span<const SimulatedRow> rows, bool sweeps) {
  const policy::RoutingShape& shape = trace.header.shape;
  std::printf("%s: %s, %d layers x %d experts (%s), %d used; %llu prompt + %llu decoded tokens\n",
              one_line(trace.source).c_str(), one_line(trace.header.model).c_str(), shape.n_layers,
              shape.n_experts, format_bytes(trace.expert_bytes()).c_str(), shape.n_experts_used,
              static_cast<unsigned long long>(trace.n_prefill),
              static_cast<unsigned long long>(trace.n_decode));
  const policy::CostModel& machine = rows[0].machine;
  const std::string costs = copy_costs(rows);
  if (sweeps) {
    std::printf("  handshake %g us%s\n\n", machine.handshake_us, costs.c_str());
  } else {
    std::printf("  link %g, CPU %g, GPU %g GB/s, handshake %g us%s\n\n", machine.link_gbps,
                machine.cpu_gbps, machine.gpu_gbps, machine.handshake_us, costs.c_str());
  }
}

void print_row(const SimulatedRow& row) {
  const policy::ReplayResult& r = row.result;
  std::printf(" %-11s %5.1f %9.1f %7.2f %7.2f %9.2f %7.2f %7.2f %9.2f %9.1f\n",
              cat(row.contender.name, row.contender.policy ? "" : " *").c_str(),
              100.0 * r.hit_rate(), mb_per_token(r), r.time.gpu_ms, r.time.cpu_ms,
              r.time.handshake_ms, r.time.copy_ms, r.time.copy_wait_ms, r.time.total_ms,
              tokens_per_second(r));
}

}  // namespace

Json rows_json(std::span<const SimulatedRow> rows) {
  Json all = Json::array();
  for (const SimulatedRow& row : rows) {
    const policy::ReplayResult& r = row.result;
    all.push_back({{"policy", row.contender.name},
                   {"budget", row.budget},
                   {"hit_rate", r.hit_rate()},
                   {"bytes_copied", r.copied_bytes},
                   {"ms_per_token", r.time.total_ms},
                   {"tokens_per_second", tokens_per_second(r)},
                   {"gpu_ms", r.time.gpu_ms},
                   {"cpu_ms", r.time.cpu_ms},
                   {"handshake_ms", r.time.handshake_ms},
                   {"copy_ms", r.time.copy_ms},
                   {"copy_wait_ms", r.time.copy_wait_ms},
                   {"n_tokens", r.n_tokens},
                   {"n_copies", r.n_copies},
                   {"copy_cost", row.copy_cost},
                   {"link_gbps", row.machine.link_gbps},
                   {"cpu_gbps", row.machine.cpu_gbps},
                   {"gpu_gbps", row.machine.gpu_gbps},
                   {"handshake_us", row.machine.handshake_us}});
  }
  return all;
}

void print_rows(const TraceSummary& trace, std::span<const SimulatedRow> rows) {
  const bool sweeps = !same_rates(rows.front().machine, rows.back().machine);
  print_head(trace, rows, sweeps);
  if (sweeps) std::printf("%7s %6s %6s", "link", "cpu", "gpu");
  std::printf("%8s %-11s %5s %9s %7s %7s %9s %7s %7s %9s %9s\n", "budget", "policy", "hits",
              "MB/token", "gpu ms", "cpu ms", "handshake", "copy ms", "(wait)", "ms/token",
              "tokens/s");
  const SimulatedRow* last = nullptr;
  for (const SimulatedRow& row : rows) {
    const bool is_first =
        !last || last->budget != row.budget || !same_rates(last->machine, row.machine);
    if (last && is_first) std::printf("\n");
    const policy::CostModel& m = row.machine;
    if (sweeps && is_first) {
      std::printf("%7.4g %6.4g %6.4g", m.link_gbps, m.cpu_gbps, m.gpu_gbps);
    } else if (sweeps) {
      std::printf("%21s", "");
    }
    std::printf("%8s", is_first ? cat(row.budget, " %").c_str() : "");
    print_row(row);
    last = &row;
  }
  if (std::ranges::any_of(rows, [](const SimulatedRow& row) { return !row.contender.policy; })) {
    std::printf("\n  * the ceiling: the most hits there can be, by knowing the future.");
  }
  std::printf(
      "\n  Work of experts alone, by a cost model; nothing was measured. GPU, CPU and copies work "
      "side by side,\n  so the parts overlap; (wait) is what copies take longer than all else.\n");
}

}  // namespace sluice::cli
