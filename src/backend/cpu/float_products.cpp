// See float_products.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/float_products.h"

#include <algorithm>

#include "backend/cpu/kernels/lanes.h"
#include "base/check.h"
#include "quant/float8.h"

namespace sluice::backend::cpu {
namespace {

using quant::Float8;
using quant::Type;

// What is computed together, in registers.
template <int rows, int inputs>
struct Block {
  static constexpr int kRows = rows;
  static constexpr int kInputs = inputs;
};

template <Type type>
struct FloatRows {
  const WeightView& weight;
  int64_t first, n_rows;
  std::span<const float* const> inputs;
  float* out;

  template <typename B>
  void block(int64_t r, size_t i) const {
    const int64_t n = weight.n_cols;
    const std::byte* rows[B::kRows];
    for (int k = 0; k < B::kRows; ++k) rows[k] = weight.row(first + r + k);
    Float8 chains[B::kRows][B::kInputs];
    int64_t at = 0;
    for (; at + 8 <= n; at += 8) {
      Float8 x[B::kInputs];
      unroll<B::kInputs>([&](auto t) SLUICE_INLINE { x[t] = input(i + t, at); });
      unroll<B::kRows>([&](auto k) SLUICE_INLINE {
        const Float8 w = quant::load_8_floats<type>(rows[k], at);
        unroll<B::kInputs>([&](auto t)
                               SLUICE_INLINE { chains[k][t] = fma(w, x[t], chains[k][t]); });
      });
    }
    for (int k = 0; k < B::kRows; ++k) {
      for (int t = 0; t < B::kInputs; ++t) {
        float chain[8];
        store(chains[k][t], chain);
        for (int64_t c = at; c < n; ++c) {
          chain[c - at] = std::fma(quant::load_float<type>(rows[k], c),
                                   inputs[i + static_cast<size_t>(t)][c], chain[c - at]);
        }
        out[static_cast<int64_t>(i + static_cast<size_t>(t)) * n_rows + r + k] =
            quant::sum_of_chains(chain);
      }
    }
  }

  Float8 input(size_t i, int64_t at) const {
    return quant::load_8_floats<Type::f32>(reinterpret_cast<const std::byte*>(inputs[i]), at);
  }

  // Rows in steps of B's, then one by one; returns the inputs that are done.
  template <typename B>
  size_t inputs_from(size_t i) const {
    for (; i + B::kInputs <= inputs.size(); i += B::kInputs) {
      int64_t r = 0;
      for (; r + B::kRows <= n_rows; r += B::kRows) block<B>(r, i);
      for (; r < n_rows; ++r) block<Block<1, B::kInputs>>(r, i);
    }
    return i;
  }

  void run() const { inputs_from<Block<8, 1>>(inputs_from<Block<2, 4>>(0)); }
};

}  // namespace

void multiply_float(const WeightView& weight, int64_t first, int64_t n_rows,
                    std::span<const float* const> inputs, float* out) {
  switch (weight.type) {
    case Type::f32:
      return FloatRows<Type::f32>{weight, first, n_rows, inputs, out}.run();
    case Type::f16:
      return FloatRows<Type::f16>{weight, first, n_rows, inputs, out}.run();
    case Type::bf16:
      return FloatRows<Type::bf16>{weight, first, n_rows, inputs, out}.run();
    default:
      check_failed("multiply_float: a float type", __FILE__, __LINE__);
  }
}

}  // namespace sluice::backend::cpu
