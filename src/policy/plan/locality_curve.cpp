// See locality_curve.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/locality_curve.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "base/check.h"

namespace sluice::policy {

using Distinct = LocalityCurve::Distinct;

LocalityCurve LocalityCurve::typical() {
  return LocalityCurve({{0.0625, 0.43, 0.03},
                        {0.125, 0.63, 0.07},
                        {0.188, 0.75, 0.15},
                        {0.25, 0.83, 0.25},
                        {0.375, 0.92, 0.5},
                        {0.5, 0.957, 0.65},
                        {0.63, 0.98, 0.75},
                        {0.8, 0.993, 0.8}});
}

LocalityCurve LocalityCurve::of(const RoutingProfile& profile) {
  constexpr int kPoints = 16;
  const auto n_experts = static_cast<size_t>(profile.n_experts());
  std::vector<float> rates = profile.rates();
  std::vector<double> hits(kPoints, 0.0);  // sums over layers, by share
  int n_layers = 0;
  for (size_t first = 0; first < rates.size(); first += n_experts) {
    const std::span<float> layer(rates.data() + first, n_experts);
    std::ranges::sort(layer, std::greater());
    const double all = std::accumulate(layer.begin(), layer.end(), 0.0);
    if (all <= 0.0) continue;
    ++n_layers;
    for (int p = 1; p < kPoints; ++p) {
      const double n = static_cast<double>(p) / kPoints * static_cast<double>(n_experts);
      const auto whole = static_cast<size_t>(n);
      double held =
          std::accumulate(layer.begin(), layer.begin() + static_cast<int64_t>(whole), 0.0);
      if (whole < n_experts) held += (n - std::floor(n)) * layer[whole];
      hits[static_cast<size_t>(p)] += held / all;
    }
  }
  CHECK(n_layers > 0);
  std::vector<Point> points;
  for (int p = 1; p < kPoints; ++p) {
    const double share = static_cast<double>(p) / kPoints;
    points.push_back(
        {share, std::min(hits[static_cast<size_t>(p)] / n_layers, 1.0), typical().copies(share)});
  }
  LocalityCurve curve(points);
  curve.is_popularity_ = true;
  return curve;
}

LocalityCurve::LocalityCurve(std::vector<Point> points) : points_(std::move(points)) {
  points_.insert(points_.begin(), {0.0, 0.0});
  points_.push_back({1.0, 1.0, points_.back().copies});
  for (size_t i = 1; i < points_.size(); ++i) {
    CHECK(points_[i].resident > points_[i - 1].resident && points_[i].hits >= points_[i - 1].hits);
  }
}

double LocalityCurve::at(double resident, double Point::*figure) const {
  const auto next =
      std::ranges::upper_bound(points_, std::max(resident, 0.0), {}, &Point::resident);
  const auto before = std::prev(next);
  if (next == points_.end()) return (*before).*figure;
  const double way = (resident - before->resident) / (next->resident - before->resident);
  return (*before).*figure + way * ((*next).*figure - (*before).*figure);
}

double LocalityCurve::hits(double resident) const { return at(resident, &Point::hits); }
double LocalityCurve::copies(double resident) const { return at(resident, &Point::copies); }

// Each of n experts that are chosen with the same probability p is met by one of the rows at least
// with 1 - (1 - p)^rows.
Distinct LocalityCurve::distinct(double resident, const DecodeRows& rows, Choice choice) const {
  const double n_experts = choice.n_experts;
  const auto met = [&](double n, double calls) {
    return n > 0.0 ? n * (1.0 - std::pow(1.0 - std::min(calls / n, 1.0), rows.n_rows)) : 0.0;
  };
  if (!is_popularity_) {
    const double share = resident / rows.n_sequences;
    const double own = hits(share);
    const double by_chance = share < 1.0 ? (resident - share) / (1.0 - share) : 0.0;
    const double missed = choice.n_used * (1.0 - own) * (1.0 - by_chance);
    const double all = met(n_experts, choice.n_used);
    const double misses = std::min(met((1.0 - resident) * n_experts, missed), all);
    return {all - misses, misses};
  }
  Distinct sum{0.0, 0.0};
  for (size_t i = 1; i < points_.size(); ++i) {
    const Point& from = points_[i - 1];
    const Point& to = points_[i];
    const double middle = std::clamp(resident, from.resident, to.resident);
    const double calls = choice.n_used * (to.hits - from.hits) / (to.resident - from.resident);
    const auto part = [&](double begin, double end) {
      return met((end - begin) * n_experts, (end - begin) * calls);
    };
    sum.hits += part(from.resident, middle);
    sum.misses += part(middle, to.resident);
  }
  return sum;
}

}  // namespace sluice::policy
