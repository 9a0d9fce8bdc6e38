// This machine as the planner sees it: cores, and the RAM that is free for us, within the limits of
// the container we may be in. The CPU's rate is what a session measured before, if one did; else it
// is an estimate, and says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/plan/hardware.h"

namespace sluice::cli {

constexpr double kGbpsPerCore = 8.0;  // what one core's expert kernel reads, on server cores

policy::Hardware this_machine();

}  // namespace sluice::cli
