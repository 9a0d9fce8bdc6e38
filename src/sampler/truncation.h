// The stages that drop unlikely tokens: top-k, top-p, min-p, locally typical and top-n-sigma. Each
// looks at the candidates that the stages before it left. min_keep: at least so many stay.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sampler/candidates.h"

namespace sluice::sampler {

void top_k(Candidates& candidates, int k);
void top_p(Candidates& candidates, float p, size_t min_keep);
void min_p(Candidates& candidates, float p, size_t min_keep);
void typical_p(Candidates& candidates, float p, size_t min_keep);
void top_n_sigma(Candidates& candidates, float n, size_t min_keep);

// The expected logit, sum_i p_i l_i with p = softmax(l), relative to the largest; after weigh(),
// which returned `total`. The entropy in nats is ln(total) minus this.
double mean_below_max(const Candidates& candidates, double total);

}  // namespace sluice::sampler
