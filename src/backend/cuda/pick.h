// The best logits of rows, on the device (backend/pick.h). Pointers are device or mapped memory;
// nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/launch.h"
#include "backend/pick.h"

namespace sluice::backend::cuda {

constexpr int kPickParts = 16;

struct Pick {
  const float* logits = nullptr;  // [n_rows, n_cols]
  int n_rows = 0;
  int n_cols = 0;
  const int32_t* n_wanted = nullptr;  // rows from *n_wanted - first on are not picked from
  int first = 0;
  const int32_t* n_best = nullptr;  // 0: nothing is written
  PickedRow* picks = nullptr;       // [n_rows]
  uint64_t* parts = nullptr;        // scratch: [n_rows, kPickParts]
  unsigned* n_done = nullptr;       // scratch: [n_rows], 0 before the first launch
};
void pick(const Pick& p, const Launch& how);

}  // namespace sluice::backend::cuda
