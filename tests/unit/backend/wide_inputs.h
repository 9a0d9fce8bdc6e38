// Random inputs of a wide step's products as int8 rows, for tests of kernels' bodies in g++.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <vector>

#include "backend/cuda/int8_rows.h"
#include "backend/cuda/lanes.h"
#include "base/random.h"
#include "quant/activation.h"

namespace sluice::backend::cuda {

inline size_t tile_count(int64_t n) { return static_cast<size_t>(n); }

// Int8 rows as kernels have them; what is behind their columns is not a number.
struct TileRows {
  TileRows(int n_rows, int n_cols_, uint64_t seed)
      : n_cols(n_cols_),
        n_chunks(row_shape(n_cols_).n_chunks),
        q(tile_count(n_rows * n_chunks) * 256, int8_t{99}),
        d(tile_count(n_rows * n_chunks) * 8, std::nanf("")),
        y(d) {
    for (int r = 0; r < n_rows; ++r) {
      std::vector<float> x(tile_count(n_cols));
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = random_signed(random_bits(seed + static_cast<uint64_t>(r), i));
      }
      const auto at = tile_count(r * n_chunks);
      quant::quantize_activation(x, q.data() + 256 * at, d.data() + 8 * at, y.data() + 8 * at);
    }
  }
  Int8Rows rows() { return {q.data(), d.data(), y.data(), n_chunks}; }
  quant::ActivationView view(int r) const {
    const auto at = tile_count(r * n_chunks);
    return {q.data() + 256 * at, d.data() + 8 * at, y.data() + 8 * at};
  }

  int n_cols, n_chunks;
  std::vector<int8_t> q;
  std::vector<float> d, y;
};

}  // namespace sluice::backend::cuda
