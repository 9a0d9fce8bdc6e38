// Rows of int8 activations (numeric contract, part A) as kernels hand them to each other. A row's
// memory reaches to the end of its last chunk of 256, so that it can be read in whole chunks; what
// stands behind its columns does not matter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::backend::cuda {

struct Int8Rows {
  int8_t* q = nullptr;  // [n_rows, 256 n_chunks]
  float* d = nullptr;   // [n_rows, 8 n_chunks]
  float* y = nullptr;   // [n_rows, 8 n_chunks]
  int n_chunks = 0;

  // Without the first r rows.
  constexpr Int8Rows from(int64_t r) const {
    return {q + 256 * n_chunks * r, d + 8 * n_chunks * r, y + 8 * n_chunks * r, n_chunks};
  }
  explicit constexpr operator bool() const { return q != nullptr; }
};

}  // namespace sluice::backend::cuda
