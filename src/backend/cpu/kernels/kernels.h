// Products of stored weight rows with quantised input rows, as fast as this CPU can: the row dots
// of the numeric contract (quant/dot.h), equal to them in every bit.
//
// A kernel takes eight rows at once, woven so that a row is a lane of a vector (quant/stripes.h;
// rows that lie as in the file are woven on the way), unpacks 256 columns of them (unpack.h), and
// multiplies these with all input rows (multiply.h). So no sum runs across lanes, the float steps
// of the contract are plain vector operations, and one source serves every type of CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/stripes.h"

namespace sluice::backend::cpu {

// Input rows that stand side by side: what a word of weights is multiplied with is one run of
// memory, so that one address serves all rows and every cache line is used up at once. For one row
// these are plain arrays. The form is that of the contract's part A, with the sums that kernels
// correct by: unsigned weights w + offset give sums too high by offset * sum q.
struct QuantizedInputs {
  const int8_t* q;     // [n/4, n_rows, 4]
  const float* d;      // [n/32, n_rows]
  const float* y;      // [n/32, n_rows], d * sum of the block's q
  const float* sum16;  // [n/16, n_rows], sum of q over 16
  const float* sum32;  // [n/32, n_rows], sum of q over 32
  int n_rows;          // 1 .. kInputsTogether
};
constexpr int kInputsTogether = 8;

// n_rows rows of n_cols weights; whole stripes if they are woven.
struct WeightRows {
  const std::byte* data;
  int64_t n_rows;
  int64_t n_cols;  // a multiple of the type's block
  quant::Layout layout = quant::Layout::rows;
};

// out[i * out_stride + r] = row r . input row i, counted through all of `in`
using MultiplyRows = void (*)(const WeightRows& rows, std::span<const QuantizedInputs> in,
                              float* out, int64_t out_stride);

struct Kernels {
  const char* name;
  MultiplyRows (*multiply_rows)(quant::Type type);  // quantised types only
};

// All that this CPU can run, the fastest last. The first is the scalar reference of quant/.
std::span<const Kernels> usable_kernels();
inline const Kernels& best_kernels() { return usable_kernels().back(); }

}  // namespace sluice::backend::cpu
