// The one place where a session's wishes and a machine's rates become a plan. `plan` shows it,
// `run` and `bench` carry it out, and all of them ask here, so what is shown is what runs. The
// command line sees this header of the engine alone (tests/layering.py): a plan speaks in policy's
// terms, which the public headers do not have.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/machine/machine_record.h"
#include "gguf/model_file.h"
#include "model/model.h"
#include "policy/plan/planner.h"
#include "policy/trace/routing_profile.h"
#include "sluice/sluice.h"

namespace sluice::engine {

struct PlanRequest {
  const gguf::ModelFile& file;
  const SessionOptions& options;
  int n_threads = 0;        // 0: one per core that counts
  uint64_t held_bytes = 0;  // of the model's weights, that this process has in memory already
  // How they are held; automatic: nobody has loaded them, and trials with either count.
  WeightMemory weights = WeightMemory::automatic;
  bool must_fit = true;                   // else memory that is short is a warning
  const MachineRecord* record = nullptr;  // what was measured; null: as the options' file has it
  const GpuInfo* gpu = nullptr;           // of DeviceKind::cuda; null: this machine is asked
  // Not yet a session's to wish for.
  int n_sequences = 1;
  int n_kept = 0;       // as policy::Workload
  int n_kv_tokens = 0;  // as policy::Workload
  bool may_quantise_kv = false;
  bool mtp = false;
};

// A way of running that was not told from the best by prediction.
struct PlannedWay {
  policy::Plan plan;
  std::string trial_key;
  double measured = 0.0;  // tokens/s of a trial; 0: not tried
};

struct SessionPlan {
  policy::ModelShape shape;  // as planned: with its MTP blocks where they were asked for
  Machine machine;           // as described, or this one, with what was measured on it
  policy::LocalityCurve locality = policy::LocalityCurve::typical();
  std::string locality_source;                    // for people
  std::optional<policy::RoutingProfile> profile;  // that was kept of this model
  std::vector<PlannedWay> ways;                   // the best by prediction first
  size_t chosen = 0;
  std::vector<std::string> warnings;

  const policy::Plan& plan() const { return ways[chosen].plan; }
  bool needs_trials() const;
  // Takes the fastest of what was tried, once all are.
  void choose_by_trials();
};

// Throws as policy::make_plan() and model_file::read_shape() do. For a GPU also where it cannot
// hold all experts: those that do without are still to come.
SessionPlan plan_session(const PlanRequest& request);

// The GPU of that number; throws Errc::device, with the reason, where it cannot be used.
const GpuInfo& usable_gpu(const GpuList& list, int index);

// What DeviceKind::automatic comes to: cuda or cpu. Another wish is kept, and throws where there is
// no such GPU, or where it cannot compute this. The model is bound from the file where it is null.
struct DeviceChoice {
  DeviceKind kind = DeviceKind::cpu;
  std::string reason;    // why not the GPU, in one line
  bool has_gpu = false;  // this machine has one: then the reason is news
};
DeviceChoice choose_device(const PlanRequest& request, const model::Model* model,
                           const GpuList& list);

// Rows of a step that a GPU can take of this model.
int most_gpu_rows(const model::Model& model);

// Throws Errc::unsupported_model where a GPU cannot compute this model.
void require_gpu_can(const model::Model& model);

// This machine without a GPU: cores, free memory within the limits of the container, and the CPU's
// rates as the record has them, or else by the number of cores, which says so.
Machine this_machine(int n_threads = 0, const std::string& machine_path = "");

// The machine that a session's options stand for, before anything is measured on it; n_threads is
// not 0. `held_bytes` count as free where free memory is this machine's: they are what a plan asks
// for.
Machine described_machine(const DeviceOptions& device, int n_threads, uint64_t held_bytes,
                          const GpuInfo* gpu = nullptr);

// By which a record knows the device; "CPU" where there is none.
std::string device_name(const DeviceOptions& device, const Machine& machine);

// The file where measurements of this session belong; empty: nothing is measured, since a described
// machine's time is not ours, and a small model's speed tells nothing.
std::string record_path(const DeviceOptions& device, const policy::ModelShape& shape);

// Adds what was measured to the record at `path`, as it is then; gives a warning, or nothing.
template <typename Measured>
std::string keep_measured(const std::string& path, const Measured& measured);

}  // namespace sluice::engine
