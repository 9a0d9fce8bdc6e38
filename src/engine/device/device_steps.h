// What takes a session's steps on a device: measures the machine where nobody has, plans what lives
// where, tries what the plan cannot decide, and makes the driver that carries it out. The driver
// says what became of the wishes (placement()), and keeps the routing profile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/ram_device_options.h"
#include "engine/device/expert_runtime.h"
#include "gguf/model_file.h"
#include "policy/plan/planner.h"
#include "sluice/sluice.h"

namespace sluice::engine {

// What carries out a plan; which experts stay is up to the policy.
ExpertRuntimeOptions runtime_options(const policy::Plan& plan, const policy::ModelShape& shape,
                                     const Machine& hardware, policy::PolicyKind policy);

// How many texts a driver takes; one alone is a session's.
struct TextsWish {
  int n_sequences = 1;
  int n_kept = 0;        // as policy::Workload
  int n_kv_tokens = 0;   // as policy::Workload
  bool has_map = false;  // somebody wants to see which experts are used
};

struct DeviceRequest {
  const gguf::ModelFile& file;
  const model::Model& model;
  ThreadPool& threads;
  const SessionOptions& options;
  uint64_t held_bytes = 0;  // of its weights, that this process has in memory already
  TextsWish texts = {};
  RouteOverride reroute;
  std::function<void(backend::RamDeviceOptions&)> watch_device = {};  // tests set its hooks here
};

// All outlive the driver. Throws as the planner and the runtime do.
std::unique_ptr<StepDriver> make_device_driver(DeviceRequest request);

}  // namespace sluice::engine
