// Decides between plans that a forecast cannot tell apart, by a few dozen real steps with each.
// Every automatic choice that is known to have failed elsewhere trusted a microbenchmark.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "engine/machine/machine_record.h"
#include "engine/step/step_driver.h"
#include "policy/plan/planner.h"

namespace sluice::engine {

// Makes what takes the steps of a plan; it lives for the trial.
using MakeDriver = std::function<std::unique_ptr<StepDriver>(const policy::Plan& plan)>;

// Tokens/s of single steps on the driver's clock: the median, after some to warm up. Its sequence 0
// is empty before and after.
double try_steps(StepDriver& driver, int n_vocab, int n_ctx);

// The fastest of them. What the trials know of this model is not tried again, and what is tried is
// added to them.
const policy::Plan& fastest(std::span<const policy::Plan> plans, const MakeDriver& make,
                            int n_vocab, const std::string& model, MachineRecord& trials);

}  // namespace sluice::engine
