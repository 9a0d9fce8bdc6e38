// int8(norm(x)) of several rows, once for all blocks of the kernel behind. Pointers are device
// memory; nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/int8_rows.h"
#include "backend/cuda/launch.h"

namespace sluice::backend::cuda {

struct QuantizeRows {
  const float* x = nullptr;        // [.., n_cols]
  const int32_t* index = nullptr;  // row r is row index[r]; null: r
  const float* norm = nullptr;     // [n_cols]; null: x as it is
  float eps = 0.0f;
  int n_rows = 0;
  int n_cols = 0;
  Int8Rows out;  // [n_rows]
};
void quantize_rows(const QuantizeRows& p, const Launch& how);

}  // namespace sluice::backend::cuda
