// The formulas of ops.h in float64, each number with a bound on what a float32 computation of it
// may lose. Bounds follow from the number of roundings a term passes; nothing here was measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unit/backend/expect.h"
#include "unit/backend/samples.h"

namespace sluice::backend::test {

constexpr double kUnit = 0x1p-24;  // one rounding of f32 is off by at most this share
constexpr double kSlack = 1.01;    // products of (1 + kUnit): thousands of roundings, second order

// Roundings that a term of a dot of n passes: the fmas of its chain of eight, and three additions.
inline double dot_roundings(int64_t n) { return static_cast<double>((n + 7) / 8 + 3); }

// y = x * w / sqrt(mean(x^2) + eps). All terms of the mean are positive, so its relative error is
// the number of roundings: the dot, / n, + eps. The root halves that. Then the root itself, 1/root,
// * x and * w.
inline BoundedRow norm_reference(std::span<const float> x, const NormView& norm) {
  const auto n = static_cast<int64_t>(x.size());
  double sum = 0;
  for (const float v : x) sum += double{v} * v;
  const double scale = 1 / std::sqrt(sum / static_cast<double>(n) + norm.eps);
  const double relative = kSlack * kUnit * ((dot_roundings(n) + 2) / 2 + 4);
  BoundedRow y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i].value = x[i] * scale * norm.weight[i];
    y[i].error = std::abs(y[i].value) * relative;
  }
  return y;
}

// Exact numbers.
inline BoundedRow exactly(std::span<const float> x) {
  BoundedRow out(x.size());
  for (size_t i = 0; i < x.size(); ++i) out[i].value = x[i];
  return out;
}

// What the contract's int8 form of x may be off by: q is within 1/2 of 127 x / amax, up to the
// roundings of 127 / amax and of the product (127 * 2 units), and d = amax / 127 has two more.
inline double activation_error(std::span<const Bounded> block) {
  double amax = 0;
  for (const Bounded& b : block) amax = std::max(amax, b.magnitude());
  return kSlack * amax / 127 * (0.5 + 127 * 4 * kUnit);
}

// W[row] . x, for a float type: the input's own error, and the roundings of the dot.
// For a quantised type: the error of the int8 form as well, and 12 + n/256 roundings of the sum of
// the parts' magnitudes (unit/quant/dot_test.cpp derives them).
inline Bounded dot_reference(const Weight& w, quant::Type type, int64_t row,
                             std::span<const Bounded> x) {
  const auto n = static_cast<int64_t>(x.size());
  const bool is_float = quant::is_float(type);
  const double roundings = is_float ? dot_roundings(n) : 12 + static_cast<double>((n + 255) / 256);
  Bounded out;
  double lost = 0;
  for (int64_t k = 0; k < n; ++k) {
    const size_t i = static_cast<size_t>(k);
    const StoredValue stored = w.at(row, k);
    const double own = is_float ? 0 : activation_error(x.subspan(i / 32 * 32, 32));
    out.value += stored.value() * x[i].value;
    out.error += std::abs(stored.value()) * (x[i].error + own);
    lost += stored.magnitude() * (x[i].magnitude() + own);
  }
  out.error = kSlack * (out.error + roundings * kUnit * lost);
  return out;
}

// One more addition.
inline Bounded sum_reference(const Bounded& a, const Bounded& b) {
  const double value = a.value + b.value;
  const double error = a.error + b.error;
  return {value, kSlack * (error + kUnit * (std::abs(value) + error))};
}

// cos and sin are rounded to f32 and multiplied by the magnitude; then a product and a difference.
inline void rope_reference(const RopeView& rope, int32_t position, std::span<Bounded> head) {
  const size_t n_pairs = rope.frequencies.size();
  for (size_t j = 0; j < n_pairs; ++j) {
    const bool adjacent = rope.pairing == RopePairing::adjacent;
    Bounded& x0 = head[adjacent ? 2 * j : j];
    Bounded& x1 = head[adjacent ? 2 * j + 1 : j + n_pairs];
    const double theta = position * static_cast<double>(rope.frequencies[j]);
    const double c = rope.magnitude * std::cos(theta), s = rope.magnitude * std::sin(theta);
    const auto turned = [](const Bounded& a, double ca, const Bounded& b, double cb) {
      const double lost = std::abs(ca) * a.magnitude() + std::abs(cb) * b.magnitude();
      return Bounded{ca * a.value + cb * b.value,
                     kSlack * (std::abs(ca) * a.error + std::abs(cb) * b.error + 4 * kUnit * lost)};
    };
    const Bounded y0 = turned(x0, c, x1, -s), y1 = turned(x0, s, x1, c);
    x0 = y0;
    x1 = y1;
  }
}

// p_t = exp(s_t) / sum exp(s). Each exponent is off by its score's error and by the rounding of
// s - max; the contract's exp by 1.1 ulp (2.2 units). Numerator and denominator both, and the
// denominator by n - 1 additions; then the division.
inline BoundedRow softmax_reference(std::span<const Bounded> scores) {
  double peak = scores[0].value, lowest = scores[0].value, error = 0, sum = 0;
  for (const Bounded& s : scores) {
    peak = std::max(peak, s.value);
    lowest = std::min(lowest, s.value);
    error = std::max(error, s.error);
  }
  for (const Bounded& s : scores) sum += std::exp(s.value - peak);
  const double exponent = error + kUnit * (peak - lowest + 2 * error) + 2.2 * kUnit;
  const double relative =
      std::expm1(2 * exponent + static_cast<double>(scores.size()) * kUnit) * kSlack;
  BoundedRow p(scores.size());
  for (size_t t = 0; t < p.size(); ++t) {
    p[t].value = std::exp(scores[t].value - peak) / sum;
    p[t].error = p[t].value * relative;
  }
  return p;
}

}  // namespace sluice::backend::test
