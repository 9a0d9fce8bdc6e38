// A plan as JSON, and as a table that a person understands in ten seconds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/files/json_text.h"
#include "engine/machine/session_plan.h"

namespace sluice::cli {

// What a plan was made for, and the plan.
struct PlannedModel {
  std::string path;
  uint64_t file_bytes = 0;
  const engine::SessionPlan& session;
  const GpuList& gpus;        // of this machine; none where another was planned for
  std::string device_reason;  // why none of them is used
};

// "16 cores, 62 GB/s (measured)"
std::string describe_cpu(const Machine& machine);

Json plan_json(const PlannedModel& model);

void print_plan(const PlannedModel& model);

}  // namespace sluice::cli
