// The log-probabilities of a token and of the likeliest ones, by the model's own scores: before
// temperature, bias and everything else that choosing does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "server/answering/answer_parts.h"

namespace sluice::server {

TokenLogprobs logprobs_of(std::span<const float> logits, TokenId token, int n_best);

}  // namespace sluice::server
