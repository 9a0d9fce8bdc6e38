// A projection of a single row (project.h decides when).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/project.h"

namespace sluice::backend::cuda {

// out = W norm(x), or += W in. One launch for each type of weights, or for two that files mix.
struct ProjectRow {
  const float* x = nullptr;  // [n_cols], with norm; or
  const float* norm = nullptr;
  float eps = 0.0f;
  Int8Rows in;
  int n_cols = 0;
  const StripeWeight* weights = nullptr;
  int n_weights = 0;
  float* out = nullptr;
  bool adds = false;
  AddedScores scores = {};  // where it adds, of one weight
};
void project_row(const ProjectRow& p, const Launch& how);

// Whether the row and a unit of weights for each warp have room in shared memory.
bool project_row_fits(const StripeWeight* weights, int n_weights, int n_cols, const Launch& how);

}  // namespace sluice::backend::cuda
