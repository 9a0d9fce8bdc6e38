// See model_driver.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/model_driver.h"

#include "base/error.h"
#include "engine/machine/session_plan.h"
#include "engine/step/stepper.h"

namespace sluice::engine {
namespace {

// Where the wishes leave it open. That there is a GPU which is not used is worth a line.
void choose_device_for(const DriverRequest& request, PlacementInfo& placement) {
  const LoadedModel& model = request.model;
  SessionOptions& options = request.options;
  if (options.device.kind != DeviceKind::automatic) return;
  DeviceChoice choice = choose_device({.file = model.file,
                                       .options = options,
                                       .n_threads = model.pool->n_threads(),
                                       .held_bytes = model.held_bytes,
                                       .weights = model.info.weights,
                                       .n_sequences = request.texts.n_sequences,
                                       .n_kept = request.texts.n_kept,
                                       .n_kv_tokens = request.texts.n_kv_tokens},
                                      &model.model, find_gpus());
  options.device.kind = choice.kind;
  placement.reason = choice.reason;
  if (choice.has_gpu && !choice.reason.empty()) placement.warnings.push_back(choice.reason);
}

// Nothing keeps a session on the CPU from running: memory that is short makes it slow. Mapped
// weights need none that is free.
std::unique_ptr<StepDriver> make_cpu_driver(const DriverRequest& request,
                                            PlacementInfo& placement) {
  const LoadedModel& model = request.model;
  SessionOptions on_cpu = request.options;
  on_cpu.device = {};
  on_cpu.device.machine_path = request.options.device.machine_path;
  const bool is_copied = model.held_bytes > 0;
  const SessionPlan plan =
      plan_session({.file = model.file,
                    .options = on_cpu,
                    .n_threads = model.pool->n_threads(),
                    .held_bytes = is_copied ? model.held_bytes : model.info.file_bytes,
                    .must_fit = false,
                    .n_sequences = request.texts.n_sequences,
                    .n_kept = request.texts.n_kept,
                    .n_kv_tokens = request.texts.n_kv_tokens});
  placement.is_dense = plan.shape.is_dense;
  placement.predicted_decode = plan.plan().forecast().speed.decode;
  placement.predicted_prefill = plan.plan().forecast().speed.prefill;
  placement.prefill_chunk = plan.plan().work.prefill_chunk;
  placement.warnings.insert(placement.warnings.end(), plan.warnings.begin(), plan.warnings.end());
  const policy::Workload& work = plan.plan().work;
  return std::make_unique<Stepper>(model.model, backend::make_cpu_ops(*model.pool),
                                   kv_options(work), work.max_rows(), request.reroute);
}

}  // namespace

std::unique_ptr<StepDriver> make_driver(const DriverRequest& request, PlacementInfo& placement) {
  choose_device_for(request, placement);
  if (request.options.device.kind == DeviceKind::cpu) return make_cpu_driver(request, placement);
  return make_device_driver({.file = request.model.file,
                             .model = request.model.model,
                             .threads = *request.model.pool,
                             .options = request.options,
                             .held_bytes = request.model.held_bytes,
                             .texts = request.texts,
                             .reroute = request.reroute});
}

int wished_context(const LoadedModel& model, const SessionOptions& options) {
  if (options.n_ctx < 0 || options.prefill_chunk < 0) {
    throw Error(
        Errc::bad_request,
        cat("a context of ", options.n_ctx, " tokens, computed ", options.prefill_chunk,
            " at a time; expected a context of 1 or more in chunks of 1 or more (0: default)"));
  }
  return options.n_ctx > 0 ? options.n_ctx : policy::default_context(model.info.n_ctx_train);
}

}  // namespace sluice::engine
