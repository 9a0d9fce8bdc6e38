// How fast a plan really is, by a few dozen steps with it: what decides between plans that a
// forecast cannot tell apart. Every automatic choice that is known to have failed elsewhere trusted
// a microbenchmark.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/machine/text_routing.h"
#include "engine/step/step_driver.h"

namespace sluice::engine {

// Tokens/s of single steps on the driver's clock: the median, after some to warm up. Each step is
// the next token of the text, whose routes the driver was made with. Its sequence 0 is empty before
// and after.
double try_steps(StepDriver& driver, TextRouting& text, int n_vocab, int n_ctx);

}  // namespace sluice::engine
