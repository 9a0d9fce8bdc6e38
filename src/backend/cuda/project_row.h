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

constexpr bool project_row_fits(int n_cols) { return project_in_is_one_kernel(1, n_cols); }

}  // namespace sluice::backend::cuda
