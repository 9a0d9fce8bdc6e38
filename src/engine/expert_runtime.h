// Steps of a model on a device that holds only some of its experts. Each step is one submission:
// the device computes the trunk and the experts it has, the host meanwhile those it has not.
// Between steps the policy learns what was routed, and experts move. Which experts are where never
// changes a bit of the logits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/ram/ram_device.h"
#include "engine/device_experts.h"
#include "engine/expert_copies.h"
#include "engine/miss_worker.h"
#include "engine/stepper.h"

namespace sluice::engine {

struct ExpertRuntimeOptions {
  policy::CacheOptions cache;
  KvOptions kv;
  int max_rows = 1;
  int n_device_threads = 1;
  double device_gbps = 500.0;  // on the virtual clock
  ExpertCopyOptions copies;
  MissWorkerOptions misses;
};

class ExpertRuntime {
 public:
  // The model's weights stand in host memory; all outlive it.
  ExpertRuntime(const model::Model& model, backend::RamDevice& device, ThreadPool& host_threads,
                const ExpertRuntimeOptions& options);

  // As Stepper::step. Throws Errc::device where the step could not be finished; the sequence is
  // then as if some of its rows were missing, and must be truncated or dropped.
  void step(std::span<const StepRow> rows, const Stepper::OnLogits& on_logits);

  Stepper& stepper() { return *stepper_; }
  const policy::ExpertCache& cache() const { return cache_; }
  const ExpertSlots& slots() const { return slots_; }
  ExpertCopies& copies() { return copies_; }
  backend::Stream& main() { return *main_; }
  int64_t n_computed_by_host() const { return worker_.n_answered(); }  // pairs

 private:
  std::span<const policy::Move> learn(std::span<const StepRow> rows);

  const model::Model& model_;
  ThreadPool device_threads_;
  policy::ExpertCache cache_;
  ExpertSlots slots_;
  backend::Mailbox mailbox_;
  std::unique_ptr<backend::Stream> main_;  // ends before what its work uses
  ExpertCopies copies_;
  MissWorker worker_;
  DeviceExperts* experts_ = nullptr;  // the stepper's
  std::unique_ptr<Stepper> stepper_;
};

}  // namespace sluice::engine
