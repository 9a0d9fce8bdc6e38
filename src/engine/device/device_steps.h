// A model on a device, as a session wishes it: measures the machine where nobody has, plans what
// lives where, tries what the plan cannot decide, makes the expert runtime, and keeps the routing
// profile from one run to the next.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "engine/device/expert_runtime.h"
#include "engine/machine/profile_saver.h"
#include "gguf/model_file.h"
#include "policy/plan/planner.h"
#include "sluice/sluice.h"

namespace sluice::engine {

// The public names are the planner's, in its order.
inline policy::KvType planned_type(KvType type) { return static_cast<policy::KvType>(type); }

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

  void step(std::span<const StepRow> rows, policy::Phase phase,
            const StepListener& listener) override;
  void truncate(SequenceId sequence, int n_tokens) override {
    driver_->truncate(sequence, n_tokens);
  }
  int n_tokens(SequenceId sequence) const override { return driver_->n_tokens(sequence); }
  int max_rows() const override { return driver_->max_rows(); }
  uint64_t kv_bytes() const override { return driver_->kv_bytes(); }
  const RoutingLog& log() const override { return driver_->log(); }
  double seconds() const override { return driver_->seconds(); }

  PlacementInfo placement() override;
  ExpertStats stats() const override { return driver_->stats(); }

 private:
  policy::Plan choose_plan(const gguf::ModelFile& file, const model::Model& model,
                           ThreadPool& threads, const SessionOptions& options, int n_ctx);
  std::unique_ptr<StepDriver> make_driver(const policy::Plan& plan, const model::Model& model,
                                          ThreadPool& threads, const SessionOptions& options,
                                          RouteOverride reroute);
  ExpertRuntimeOptions wished_options(const policy::Plan& plan, const SessionOptions& options,
                                      RouteOverride reroute) const;
  void load_profile(const std::string& path, const model::Config& config);
  void fill_info();

  policy::ModelShape shape_;
  PlacementInfo info_;
  policy::Hardware hardware_;  // as described, and then as measured
  backend::RamDevice device_;
  std::optional<policy::RoutingProfile> profile_;
  policy::Plan plan_;
  std::optional<ProfileSaver> saver_;
  std::unique_ptr<StepDriver> driver_;
  ExpertRuntime* runtime_ = nullptr;  // the driver; null where the plan leaves all to the CPU
};

}  // namespace sluice::engine
