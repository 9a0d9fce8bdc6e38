// See scale_search.h.
// SPDX-License-Identifier: Apache-2.0
#include "quant/scale_search.h"

#include <algorithm>

#include "quant/float8.h"
#include "quant/round.h"

namespace sluice::quant {
namespace {

constexpr int kMaxGroup = 32;
constexpr float kOnes[kMaxGroup] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

float sum(const float* x, int n) { return sum_of_products(x, kOnes, n); }

// q = clamp(round(x*inverse + offset), low, high). The clamp comes first: the rounding trick needs
// small numbers, and for integer bounds the order does not matter.
void round_all(const float* x, int n, float inverse, float offset, float low, float high,
               float* q) {
  for (int i = 0; i < n; ++i) {
    const float v = x[i] * inverse + offset;
    const float above = v > low ? v : low;
    q[i] = rounded_half_even(above < high ? above : high);
  }
}

// The steps tried, as multiples of the step that just covers the range of x.
constexpr float kWidest = 1.06f;
constexpr float kNarrowest = 0.70f;
constexpr int kSteps = 19;

float step_factor(int k) {
  return kWidest - (kWidest - kNarrowest) * static_cast<float>(k) / (kSteps - 1);
}

}  // namespace

float quantize_affine(const float* x, int n, Affine fit, int q_max, float* q) {
  const float inverse = fit.scale != 0 ? 1.0f / fit.scale : 0.0f;
  round_all(x, n, inverse, fit.min * inverse, 0.0f, static_cast<float>(q_max), q);
  float error[kMaxGroup];
  for (int i = 0; i < n; ++i) error[i] = fit.scale * q[i] - fit.min - x[i];
  return sum_of_products(error, error, n);
}

float quantize_symmetric(const float* x, int n, float scale, int q_max, float* q) {
  const float inverse = scale != 0 ? 1.0f / scale : 0.0f;
  const auto high = static_cast<float>(q_max);
  round_all(x, n, inverse, 0.0f, -high - 1, high, q);
  float error[kMaxGroup];
  for (int i = 0; i < n; ++i) error[i] = scale * q[i] - x[i];
  return sum_of_products(error, error, n);
}

namespace {

struct AffineCandidate {
  Affine fit;
  float gain;  // by how much the fit lowers the squared error below sum x^2
};

// Least squares of x = scale*q - min for given q:
//   scale = (n sum_xq - sum_x sum_q) / (n sum_qq - sum_q^2),  min = (scale sum_q - sum_x) / n
//   or, where that minimum would be negative,  scale = sum_xq / sum_qq,  min = 0
// The error it leaves is sum_xx - (scale sum_xq - min sum_x).
AffineCandidate least_squares(const float* x, int n, float sum_x, const float* q) {
  const auto count = static_cast<float>(n);
  const float sum_q = sum(q, n);
  const float sum_qq = sum_of_products(q, q, n);
  const float sum_xq = sum_of_products(x, q, n);
  const float determinant = count * sum_qq - sum_q * sum_q;
  if (!(determinant > 0)) return {{0.0f, std::max(-sum_x / count, 0.0f)}, -1.0f};
  Affine fit;
  fit.scale = (count * sum_xq - sum_x * sum_q) / determinant;
  fit.min = (fit.scale * sum_q - sum_x) / count;
  if (fit.min < 0) fit = {sum_xq / sum_qq, 0.0f};
  return {fit, fit.scale * sum_xq - fit.min * sum_x};
}

}  // namespace

Affine refit_affine(const float* x, int n, const float* q) {
  return least_squares(x, n, sum(x, n), q).fit;
}

Affine fit_affine(const float* x, int n, int q_max) {
  const auto [least, greatest] = std::minmax_element(x, x + n);
  const float low = std::min(*least, 0.0f);
  const float range = *greatest - low;
  if (!(range > 0)) return {0.0f, -low};
  const auto levels = static_cast<float>(q_max);
  const float sum_x = sum(x, n);
  AffineCandidate best = {{range / levels, -low}, -1.0f};
  float q[kMaxGroup];
  for (int k = 0; k < kSteps; ++k) {
    const float inverse = levels / (range * step_factor(k));
    round_all(x, n, inverse, -low * inverse, 0.0f, levels, q);
    const AffineCandidate candidate = least_squares(x, n, sum_x, q);
    if (candidate.gain > best.gain) best = candidate;
  }
  return best.fit;
}

// Least squares of x = scale*q for given q: scale = sum_xq / sum_qq, and the error it leaves is
// sum_xx - sum_xq^2 / sum_qq. The value of largest magnitude goes to the side with one level more.
float fit_symmetric(const float* x, int n, int q_max) {
  const float extreme =
      *std::max_element(x, x + n, [](float a, float b) { return std::abs(a) < std::abs(b); });
  if (extreme == 0) return 0.0f;
  const auto high = static_cast<float>(q_max);
  float best = -extreme / (high + 1);
  float best_gain = -1.0f;
  float q[kMaxGroup];
  for (int k = 0; k < kSteps; ++k) {
    const float inverse = -(high + 1) / (extreme * step_factor(k));
    round_all(x, n, inverse, 0.0f, -high - 1, high, q);
    const float sum_qq = sum_of_products(q, q, n);
    const float sum_xq = sum_of_products(x, q, n);
    if (sum_xq * sum_xq > best_gain * sum_qq) {
      best_gain = sum_xq * sum_xq / sum_qq;
      best = sum_xq / sum_qq;
    }
  }
  return best;
}

}  // namespace sluice::quant
