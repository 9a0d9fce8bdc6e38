// What the layers compute, in the operations of backend/ops.h: the same for every backend.
// Where experts live is not known here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/layer.h"
#include "model/step.h"

namespace sluice::model {

// One layer of attention and experts. x: [n_rows, d_model], updated in place. What differs between
// architectures (biases, norms of heads, rope, the router's weights, a shared expert) is in the
// views that their binding made.
void forward_attention_moe(const Layer& w, Step& step);

// The same for models whose layers are either a gated DeltaNet or attention.
void forward_hybrid_moe(const Layer& w, Step& step);

}  // namespace sluice::model
