// See planned_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/planned_file.h"

#include "cli/plan/plan_table.h"
#include "engine/machine/session_plan.h"
#include "gguf/model_file.h"

namespace sluice::cli {

std::string plan_text(const std::string& path, const ModelOptions& flags,
                      const SessionOptions& session, int n_sequences) {
  const gguf::ModelFile file = gguf::ModelFile::open(path);
  SessionOptions options = session;
  const bool may_use_gpu = options.device.kind != DeviceKind::sim;
  const GpuList gpus = may_use_gpu ? find_gpus() : GpuList{};
  engine::PlanRequest request{.file = file,
                              .options = options,
                              .n_threads = flags.n_threads,
                              .weights = flags.weights,
                              .must_fit = false,
                              .n_sequences = n_sequences};
  const engine::DeviceChoice choice = engine::choose_device(request, nullptr, gpus);
  options.device.kind = choice.kind;
  if (options.device.kind == DeviceKind::cuda) {
    request.gpu = &engine::usable_gpu(gpus, options.device.gpu);
  }
  const engine::SessionPlan plan = engine::plan_session(request);
  return dump(
      plan_json({path, file.file_bytes(), plan, gpus, choice.has_gpu ? choice.reason : ""}));
}

}  // namespace sluice::cli
