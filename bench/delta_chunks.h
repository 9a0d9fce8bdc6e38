// The chunked form of the gated delta rule, for bench/delta_net.cpp alone: sluice does not use it
// (docs/decisions/0021).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cpu/delta_rule.h"

namespace sluice::backend::cpu {

// All columns of one head of 128 dimensions, S as delta_rule has it. chunk: 64 at most. AVX-512.
void delta_chunks(const DeltaToken* tokens, int n_tokens, int chunk, float* state);

}  // namespace sluice::backend::cpu
