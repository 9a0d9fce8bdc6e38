// How fast a plan really is: up to 280 steps run with it, and 24 of them count. This decides
// between plans that a forecast cannot tell apart. Every automatic choice that is known to have
// failed elsewhere trusted a microbenchmark.
//
// Steps count once the cache knows the text. Before that copies fill the link in every plan, and
// all of them are as slow: on an H200 98.5 to 99.6 tokens/s for plans that end at 255 to 270
// (decision 0023).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "engine/machine/text_routing.h"
#include "engine/step/step_driver.h"

namespace sluice::engine {

// Makes a driver that takes these experts, whatever its routers choose.
using MakeDriver = std::function<std::unique_ptr<StepDriver>(RouteOverride reroute)>;

// Steps before those that count, but no more than take two seconds: hits are then as frequent as
// they stay, to 1 % (LocalityCurve::typical()).
constexpr int kTrialWarmUp = 256;

// Tokens/s of single steps on the driver's clock: the median, after those to warm up. Each step is
// the next token of the text, and routed like it.
double try_steps(const MakeDriver& make_driver, TextRouting& text, int n_vocab, int n_ctx);

}  // namespace sluice::engine
