// How fast a plan really is, by a few dozen steps with it: what decides between plans that a
// forecast cannot tell apart. Every automatic choice that is known to have failed elsewhere trusted
// a microbenchmark.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "engine/machine/text_routing.h"
#include "engine/step/step_driver.h"

namespace sluice::engine {

// Makes a driver that takes these experts, whatever its routers choose.
using MakeDriver = std::function<std::unique_ptr<StepDriver>(RouteOverride reroute)>;

// Tokens/s of single steps on the driver's clock: the median, after some to warm up. Each step is
// the next token of the text, and routed like it.
double try_steps(const MakeDriver& make_driver, TextRouting& text, int n_vocab, int n_ctx);

}  // namespace sluice::engine
