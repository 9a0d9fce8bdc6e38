// See bench_rates.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/bench_rates.h"

#include "cli/plan/plan_table.h"
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

policy::Steps steps_of(const BenchTest& test) {
  return {test.kind == BenchKind::prefill, test.n_tokens, test.depth};
}

policy::Workload work_of(const SessionOptions& session) {
  return {.k_type = static_cast<policy::KvType>(session.k_type),
          .v_type = static_cast<policy::KvType>(session.v_type),
          .prefill_chunk = session.prefill_chunk > 0 ? session.prefill_chunk : policy::kUsualChunk};
}

}  // namespace

BenchForecast forecast_tests(const gguf::ModelFile& file, const BenchPlan& plan, int n_threads) {
  if (plan.session.device.kind != DeviceKind::cpu) return {};
  const engine::SessionPlan known = engine::plan_session({.file = file,
                                                          .options = plan.session,
                                                          .n_threads = n_threads,
                                                          .held_bytes = file.file_bytes(),
                                                          .must_fit = false});
  const Machine& machine = known.machine;
  BenchForecast forecast{.tokens_per_second = {}, .rates = describe_cpu(machine)};
  if (!machine.cpu_source.starts_with("measured")) {
    forecast.rates += "; nothing was measured here yet";
  }
  for (const BenchTest& test : plan.tests) {
    forecast.tokens_per_second.push_back(
        policy::predict_steps(known.shape, machine, work_of(plan.session), steps_of(test)));
  }
  return forecast;
}

void keep_rates(const BenchReport& report, const policy::ModelShape& shape) {
  const DeviceOptions& device = report.session.device;
  const std::string path = engine::record_path(device, shape);
  if (path.empty() || device.kind != DeviceKind::cpu || !report.route_trace.empty()) return;
  for (const BenchRun& run : report.runs) {
    std::vector<policy::MeasuredSteps> measured;
    bool decodes = false;
    for (const BenchTest& test : run.tests) {
      decodes = decodes || test.kind == BenchKind::decode;
      measured.push_back({steps_of(test), test.n_tokens / median(test.seconds)});
    }
    if (!decodes) continue;  // prompts alone do not tell how fast memory is read
    const MachineRates rates = policy::fit_cpu_rates(shape, engine::this_machine(run.n_threads()),
                                                     work_of(report.session), measured);
    const std::string warning = engine::keep_measured(
        path, engine::ModelRates{engine::model_key(shape.name, report.model.file_bytes),
                                 run.n_threads(), rates});
    if (!warning.empty()) print_warning(warning);
  }
}

}  // namespace sluice::cli
