// The plain way to say what the stages mean: double precision, full sorts, no care for speed. And
// how far float weights may be from it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <vector>

#include "sampler/candidates.h"
#include "sampler/lanes.h"

namespace sluice::sampler::test {

// Best first; of equal ones the lower id.
inline std::vector<size_t> ranked(std::span<const float> logits) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  return order;
}

inline double largest(std::span<const float> logits) {
  return *std::max_element(logits.begin(), logits.end());
}

inline std::vector<double> softmax(std::span<const float> logits) {
  std::vector<double> p(logits.size());
  const double most = largest(logits);
  double sum = 0.0;
  for (size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(logits[i] - most);
  for (double& x : p) x /= sum;
  return p;
}

// sum_i p_i f(d_i) with d = l - max, over tokens that can be drawn.
template <typename F>
double expected_of(std::span<const float> logits, F&& f) {
  const std::vector<double> p = softmax(logits);
  const double most = largest(logits);
  double sum = 0.0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] > 0.0) sum += p[i] * f(logits[i] - most);
  }
  return sum;
}

inline double entropy(std::span<const float> logits) {
  double sum = 0.0;
  for (const double p : softmax(logits)) sum -= p > 0.0 ? p * std::log(p) : 0.0;
  return sum;
}

// How far the exponential of a float difference d may be off, in parts of itself: exp_of_negative
// is within 3 ulp (3 * 2^-23) and d is rounded (|d| 2^-24); below -87 all of it may be missing.
inline double weight_error(double d) {
  return d < -87.0 ? 1.0 : 3.0 * 0x1p-23 + std::abs(d) * 0x1p-24;
}

// How far a sum of probabilities may be off: its own weights, and the sum of all below the line.
inline double mass_error(std::span<const float> logits) {
  return 2.0 * expected_of(logits, weight_error) + 1e-12;
}

inline Candidates load(std::span<const float> logits) {
  Candidates candidates(logits.size());
  candidates.load(logits, nullptr);
  return candidates;
}

inline std::set<size_t> ids_of(const Candidates& candidates) {
  std::set<size_t> ids;
  for (size_t i = 0; i < candidates.size(); ++i) {
    ids.insert(static_cast<size_t>(candidates.id(i)));
  }
  return ids;
}

// The ids that the stage leaves.
template <typename Apply>
std::set<size_t> kept(std::span<const float> logits, Apply&& apply) {
  Candidates candidates = load(logits);
  apply(candidates);
  return ids_of(candidates);
}

// The first n of an order, as a set.
inline std::set<size_t> first(const std::vector<size_t>& order, size_t n) {
  return {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(std::min(n, order.size()))};
}

}  // namespace sluice::sampler::test
