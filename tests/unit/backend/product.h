// What tests of the trunk's matrix products share: a product as quant/ defines it, and how sharp a
// bound on it must be.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quant/dot.h"
#include "unit/backend/reference.h"

namespace sluice::backend::test {

constexpr float kProductEps = 1e-6f;

// How small a bound must be beside the largest result. For float types it is made of roundings; for
// quantised ones of half an int8 step for every value, all of one sign: a few percent of a result
// with random signs, more for short rows. Those are held to the bit as well.
inline double sharpness(quant::Type type) { return quant::is_float(type) ? 1e-4 : 0.25; }

// One dot as quant/ defines it.
inline float literal_dot(const Weight& w, quant::Type type, int64_t row, std::span<const float> x) {
  const int64_t n = std::ssize(x);
  const WeightView view = w.view();
  if (quant::is_float(type)) return quant::dot_float(type, view.row(row), x.data(), n);
  std::vector<int8_t> q(x.size());
  std::vector<float> d(x.size() / 32), y(x.size() / 32);
  quant::quantize_activation(x, q.data(), d.data(), y.data());
  return quant::dot(type, view.row(row), n, {q.data(), d.data(), y.data()});
}

}  // namespace sluice::backend::test
