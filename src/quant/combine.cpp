// See combine.h.
// SPDX-License-Identifier: Apache-2.0
#include "quant/combine.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sluice::quant {
namespace {

// Elements at a time: the sums of a stretch stay in L1 while the rows pass by.
constexpr size_t kStretch = 256;

void multiply_add(float weight, const float* row, size_t n, float* v) {
  for (size_t j = 0; j < n; ++j) v[j] = std::fma(weight, row[j], v[j]);
}

}  // namespace

void combine(std::span<const float> weights, const float* rows, int64_t row_stride,
             const float* shared_row, float shared_weight, std::span<float> x) {
  CHECK(!weights.empty());
  float v[kStretch];
  for (size_t start = 0; start < x.size(); start += kStretch) {
    const size_t n = std::min(kStretch, x.size() - start);
    const float* row = rows + start;
    for (size_t j = 0; j < n; ++j) v[j] = weights[0] * row[j];
    for (const float weight : weights.subspan(1)) {
      row += row_stride;
      multiply_add(weight, row, n, v);
    }
    if (shared_row != nullptr) multiply_add(shared_weight, shared_row + start, n, v);
    for (size_t j = 0; j < n; ++j) x[start + j] = x[start + j] + v[j];
  }
}

}  // namespace sluice::quant
