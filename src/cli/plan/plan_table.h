// A plan as JSON, and as a table that a person understands in ten seconds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/files/json_text.h"
#include "policy/plan/planner.h"
#include "sluice/device.h"

namespace sluice::cli {

// What a plan was made from and for.
struct PlannedModel {
  std::string path;
  uint64_t file_bytes = 0;
  policy::ModelShape shape;             // as planned: with its MTP blocks where they were asked for
  std::vector<MeasuredSpeed> measured;  // in earlier trials on that device
};

Json plan_json(const PlannedModel& model, const policy::Hardware& hardware,
               const policy::Plan& plan);

void print_plan(const PlannedModel& model, const policy::Hardware& hardware,
                const policy::Plan& plan);

}  // namespace sluice::cli
