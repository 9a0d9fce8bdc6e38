// A model on a device, as a session wishes it: plans what lives where, makes the device and the
// expert runtime, and keeps the routing profile from one run to the next.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "engine/expert_runtime.h"
#include "engine/profile_saver.h"
#include "gguf/model_file.h"
#include "policy/planner.h"
#include "sluice/sluice.h"

namespace sluice::engine {

// A machine with that device, as the planner sees it.
policy::Hardware hardware_of(const SimDevice& sim);

// What carries out a plan; which experts stay is up to the policy.
ExpertRuntimeOptions runtime_options(const policy::Plan& plan, const policy::ModelShape& shape,
                                     const policy::Hardware& hardware, policy::PolicyKind policy);

class DeviceSteps final : public StepDriver {
 public:
  // All outlive it. Throws as the planner and the runtime do.
  DeviceSteps(const gguf::ModelFile& file, const model::Model& model, ThreadPool& threads,
              const SessionOptions& options, int n_ctx, RouteOverride reroute);
  ~DeviceSteps() override;

  void step(std::span<const StepRow> rows, const OnRowLogits& on_logits) override;
  void truncate(SequenceId sequence, int n_tokens) override {
    driver_->truncate(sequence, n_tokens);
  }
  int n_tokens(SequenceId sequence) const override { return driver_->n_tokens(sequence); }
  int max_rows() const override { return driver_->max_rows(); }
  uint64_t kv_bytes() const override { return driver_->kv_bytes(); }
  const RoutingLog& log() const override { return driver_->log(); }
  double seconds() const override;

  PlacementInfo placement();
  ExpertStats stats() const { return runtime_ ? runtime_->stats() : ExpertStats{}; }

 private:
  policy::Plan plan_measured(const model::Model& model, ThreadPool& threads,
                             const SessionOptions& options, int n_ctx);
  void make_driver(const model::Model& model, ThreadPool& threads, const SessionOptions& options,
                   RouteOverride reroute);
  ExpertRuntimeOptions wished_options(const SessionOptions& options, RouteOverride reroute);
  void fill_info();

  policy::ModelShape shape_;
  PlacementInfo info_;
  policy::Hardware hardware_;  // as described, and then as measured
  backend::RamDevice device_;
  policy::Plan plan_;
  std::optional<policy::RoutingProfile> profile_;
  std::optional<ProfileSaver> saver_;
  std::unique_ptr<StepDriver> driver_;
  ExpertRuntime* runtime_ = nullptr;  // the driver; null where the plan leaves all to the CPU
  double cpu_seconds_ = 0.0;          // then, on the virtual clock
};

}  // namespace sluice::engine
