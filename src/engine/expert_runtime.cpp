// See expert_runtime.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/expert_runtime.h"

#include "backend/ram/ram_ops.h"
#include "base/error.h"

namespace sluice::engine {

ExpertRuntime::ExpertRuntime(const model::Model& model, backend::RamDevice& device,
                             ThreadPool& host_threads, const ExpertRuntimeOptions& options)
    : model_(model),
      device_threads_(options.n_device_threads),
      cache_(options.cache),
      slots_(device, model, cache_),
      mailbox_(device, {.max_rows = options.max_rows,
                        .max_pairs = int64_t{options.max_rows} * model.config().n_experts_used,
                        .n_cols = model.config().d_model}),
      main_(device.make_stream("main")),
      copies_(device, *main_, slots_, model, cache_, options.copies),
      worker_(model, host_threads, mailbox_, options.misses) {
  auto ops = backend::make_ram_ops(device, device_threads_, mailbox_, options.device_gbps);
  auto experts = std::make_unique<DeviceExperts>(*ops, model, slots_);
  experts_ = experts.get();
  stepper_ = std::make_unique<Stepper>(model, std::move(ops), options.kv, options.max_rows,
                                       std::move(experts));
  copies_.boundary(cache_.fill());
  copies_.finish();
}

void ExpertRuntime::step(std::span<const StepRow> rows, const Stepper::OnLogits& on_logits) {
  worker_.begin_step();
  main_->run([&] { stepper_->step(rows, on_logits); });
  try {
    main_->finish();
  } catch (const Error& e) {
    const std::string fault = worker_.end_step();
    throw Error(Errc::device, fault.empty() ? e.what() : fault);
  }
  worker_.end_step();
  copies_.boundary(learn(rows));
}

std::span<const policy::Move> ExpertRuntime::learn(std::span<const StepRow> rows) {
  const bool is_decode = rows.size() == 1;
  cache_.begin_step(is_decode ? policy::Phase::decode : policy::Phase::prefill,
                    static_cast<int>(rows.size()));
  for (const model::Layer& layer : model_.layers()) {
    const std::span<const policy::RoutedExpert> routed = experts_->routed(layer.id);
    const size_t n_used = routed.size() / rows.size();
    for (size_t r = 0; r < rows.size(); ++r) {
      cache_.touch(layer.id, routed.subspan(r * n_used, n_used));
    }
  }
  return cache_.end_step();
}

}  // namespace sluice::engine
