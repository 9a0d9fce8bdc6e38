// See bench_keep.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/bench_keep.h"

#include "cli/terminal/terminal_text.h"
#include "engine/machine/session_plan.h"
#include "policy/plan/fitted_rates.h"

namespace sluice::cli {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

void keep_rates(const BenchReport& report, const policy::ModelShape& shape) {
  const DeviceOptions& device = report.session.device;
  const std::string path = engine::record_path(device, shape);
  if (path.empty() || device.kind != DeviceKind::cpu || !report.route_trace.empty()) return;
  const policy::Workload work{.k_type = static_cast<policy::KvType>(report.session.k_type),
                              .v_type = static_cast<policy::KvType>(report.session.v_type)};
  for (const BenchRun& run : report.runs) {
    std::vector<policy::MeasuredSteps> steps;
    bool decodes = false;
    for (const BenchTest& test : run.tests) {
      const bool is_prompt = test.kind == BenchKind::prefill;
      decodes = decodes || !is_prompt;
      steps.push_back({is_prompt, test.n_tokens, test.depth, test.n_tokens / median(test.seconds)});
    }
    if (!decodes) continue;  // prompts alone do not tell how fast memory is read
    Machine machine = engine::this_machine(run.n_threads());
    machine.cpu_gops = 0.0;
    const MachineRates rates = policy::fit_cpu_rates(shape, machine, work, steps);
    const std::string warning = engine::keep_measured(
        path, engine::ModelRates{engine::model_key(shape.name, report.model.file_bytes),
                                 run.n_threads(), rates.cpu_gbps, rates.cpu_gops});
    if (!warning.empty()) print_warning(warning);
  }
}

}  // namespace sluice::cli
