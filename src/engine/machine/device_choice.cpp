// What DeviceKind::automatic comes to, and what of a model a GPU cannot compute yet: see
// session_plan.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "backend/device.h"
#include "backend/gpu_limits.h"
#include "base/error.h"
#include "engine/machine/session_plan.h"

namespace sluice {

GpuList find_gpus() { return backend::list_gpus(); }

}  // namespace sluice

namespace sluice::engine {
namespace {

std::string obstacle_of(const model::Layer& layer) {
  if (layer.delta_net && layer.delta_net.head_dim > backend::kGpuMostStateDim) {
    return cat("recurrent heads of ", layer.delta_net.head_dim, " values; ",
               backend::kGpuMostStateDim, " is the most");
  }
  const auto& router = layer.router;
  if (!quant::is_float(router.weight.type)) {
    return cat("a router of type ", quant::type_name(router.weight.type));
  }
  if (router.weight.n_rows > backend::kGpuMostExperts || router.n_used > backend::kGpuMostUsed) {
    return cat(router.n_used, " of ", router.weight.n_rows, " experts; ", backend::kGpuMostUsed,
               " of ", backend::kGpuMostExperts, " is the most");
  }
  if (layer.attention.n_heads > backend::kGpuMostHeads) {
    return cat(layer.attention.n_heads, " heads; ", backend::kGpuMostHeads, " is the most");
  }
  return {};
}

// In words, or empty.
std::string obstacle_of(const model::Model& model) {
  for (const model::Layer& layer : model.layers()) {
    if (std::string found = obstacle_of(layer); !found.empty()) {
      return cat("layer ", layer.id.value, ": ", found);
    }
  }
  return {};
}

bool is_wide(const backend::ExpertsView& e) {
  const bool is_shared_alike = !e.shared_gate || (!quant::is_float(e.shared_gate.type) &&
                                                  !quant::is_float(e.shared_down.type) &&
                                                  e.shared_gate.type == e.shared_up.type);
  return !quant::is_float(e.gate.type) && !quant::is_float(e.down.type) &&
         e.gate.type == e.up.type && is_shared_alike;
}

DeviceChoice on_cpu(const std::string& why, bool has_gpu) {
  return {DeviceKind::cpu, cat("the CPU computes: ", why), has_gpu};
}

std::string rate(double tokens_per_second) {
  return cat(std::round(tokens_per_second * 10.0) / 10.0, " tokens/s");
}

DeviceChoice faster(const PlanRequest& request, const GpuInfo& gpu) {
  SessionOptions options = request.options;
  options.device.kind = DeviceKind::cuda;
  const SessionPlan planned = plan_session({.file = request.file,
                                            .options = options,
                                            .n_threads = request.n_threads,
                                            .held_bytes = request.held_bytes,
                                            .weights = request.weights,
                                            .record = request.record,
                                            .gpu = &gpu,
                                            .n_sequences = request.n_sequences,
                                            .n_kept = request.n_kept,
                                            .n_kv_tokens = request.n_kv_tokens,
                                            .may_quantise_kv = request.may_quantise_kv,
                                            .mtp = request.mtp});
  const policy::Forecast& cpu = planned.plan().forecast(policy::Mode::cpu_only);
  const double by_gpu = planned.plan().forecast().speed.decode;
  const bool cpu_can = cpu.host_bytes <= planned.machine.ram_free;
  const bool is_open = options.device.moe != ExpertPlace::gpu;
  if (!is_open || !cpu_can || cpu.speed.decode <= by_gpu) return {DeviceKind::cuda, {}, true};
  return on_cpu(
      cat("predicted at ", rate(cpu.speed.decode), ", ", planned.machine.gpu, " at ", rate(by_gpu)),
      true);
}

}  // namespace

int most_gpu_rows(const model::Model& model) {
  const bool all_wide = std::ranges::all_of(
      model.layers(), [](const model::Layer& layer) { return is_wide(layer.experts); });
  return all_wide ? backend::kGpuWideRows : backend::kGpuMostRows;
}

void require_gpu_can(const model::Model& model) {
  const std::string obstacle = obstacle_of(model);
  if (obstacle.empty()) return;
  throw Error(Errc::unsupported_model,
              cat("GPUs cannot compute this yet: ", obstacle, "; use --device cpu"));
}

DeviceChoice choose_device(const PlanRequest& request, const model::Model* model,
                           const GpuList& list) {
  const DeviceOptions& wish = request.options.device;
  const bool has_gpu = !list.gpus.empty();
  if (wish.kind != DeviceKind::automatic && wish.kind != DeviceKind::cuda) {
    return {wish.kind, {}, has_gpu};
  }
  try {
    const GpuInfo& gpu = usable_gpu(list, wish.gpu);
    const model::Model bound = model ? *model : model::Model(request.file);
    require_gpu_can(bound);
    if (wish.kind == DeviceKind::cuda) return {wish.kind, {}, true};
    return faster(request, gpu);
  } catch (const Error& e) {
    if (wish.kind == DeviceKind::cuda) throw;
    return on_cpu(e.what(), has_gpu);
  }
}

}  // namespace sluice::engine
