// The router's choice for one token.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace sluice::backend::cpu {

// p = softmax(scores); the experts.size() largest, best first, ties to the lower index; their p as
// weights, divided by their sum where renormalize. scores is overwritten with p.
void choose_experts(std::span<float> scores, bool renormalize, std::span<int32_t> experts,
                    std::span<float> weights);

}  // namespace sluice::backend::cpu
