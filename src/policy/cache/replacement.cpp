// The baselines: LRU, LFU, decayed LFU; and the table of all policies.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/replacement.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "policy/cache/routing_mixture.h"
#include "policy/cache/segmented_lru.h"

namespace sluice::policy {

namespace {

struct NamedPolicy {
  PolicyKind kind;
  std::string_view name;
};
constexpr std::array<NamedPolicy, 6> kPolicies = {{{PolicyKind::mixture, "default"},
                                                   {PolicyKind::lru, "lru"},
                                                   {PolicyKind::lru_global, "lru-global"},
                                                   {PolicyKind::slru, "slru"},
                                                   {PolicyKind::lfu, "lfu"},
                                                   {PolicyKind::dlfu, "dlfu"}}};

// The time of the last use. Within a step, the better rank counts as later.
class Lru : public StoredValues {
 public:
  using StoredValues::StoredValues;

  void observe(std::span<const Use> uses, bool) override {
    ++step_;
    for (const Use& use : uses) values_[static_cast<size_t>(use.id)] = step_ + 0.5 - use.rank / 2;
  }

 private:
  double step_ = 0.0;
};

// The number of uses; of equal ones the later.
class Lfu : public StoredValues {
 public:
  using StoredValues::StoredValues;

  void observe(std::span<const Use> uses, bool) override {
    ++step_;
    for (const Use& use : uses) {
      double& n = values_[static_cast<size_t>(use.id)];
      n = std::floor(n) + 1.0 + step_ * 0x1p-40;
    }
  }
  void seed(std::span<const float> rates) override {
    constexpr double kSteps = 64.0;  // earlier runs weigh as much as so many steps
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = std::floor(rates[i] * kSteps);
  }

 private:
  double step_ = 0.0;
};

// log2 of the count of uses, each worth half after kHalfLife steps, as seen from step 0: that view
// does not change with time, so the order of experts does not either.
class DecayedLfu : public StoredValues {
 public:
  explicit DecayedLfu(size_t n) : StoredValues(n) { values_.assign(n, kNever); }

  void observe(std::span<const Use> uses, bool) override {
    ++step_;
    const double now = step_ / kHalfLife;
    for (const Use& use : uses) {
      double& log_count = values_[static_cast<size_t>(use.id)];
      log_count = now + std::log2(1.0 + std::exp2(log_count - now));
    }
  }
  bool displaces(double newcomer, double victim) const override {
    return newcomer > victim + kHysteresis;
  }
  void seed(std::span<const float> rates) override {
    const double steady = kHalfLife / std::log(2.0);  // the count that a use in every step keeps up
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = rates[i] > 0.0f ? std::log2(rates[i] * steady) : kNever;
    }
  }

 private:
  static constexpr double kHalfLife = 16.0;
  static constexpr double kHysteresis = 0.07;  // a newcomer's count must be 5 % higher
  static constexpr double kNever = -1e9;

  double step_ = 0.0;
};

}  // namespace

size_t StoredValues::list_below(double ceiling, std::span<const uint64_t> set, std::span<int> ids,
                                std::span<double> values) const {
  size_t n = 0;
  for (size_t w = 0; w < set.size(); ++w) {
    for (uint64_t bits = set[w]; bits != 0; bits &= bits - 1) {
      const size_t i = w * 64 + static_cast<size_t>(std::countr_zero(bits));
      if (!(values_[i] < ceiling)) continue;
      ids[n] = static_cast<int>(i);
      values[n++] = values_[i];
    }
  }
  return n;
}

std::string_view policy_name(PolicyKind kind) {
  return std::find_if(kPolicies.begin(), kPolicies.end(),
                      [kind](const NamedPolicy& p) { return p.kind == kind; })
      ->name;
}

PolicyKind parse_policy(std::string_view name) {
  std::string names;
  for (const NamedPolicy& policy : kPolicies) {
    if (policy.name == name) return policy.kind;
    names += cat(names.empty() ? "" : ", ", policy.name);
  }
  throw Error(Errc::bad_request, cat("cache policy '", name, "'; expected one of ", names));
}

std::unique_ptr<Replacement> make_replacement(PolicyKind kind, const ReplacementShape& shape) {
  const size_t n = shape.n_total();
  switch (kind) {
    case PolicyKind::mixture:
      return std::make_unique<RoutingMixture>(n, shape.horizon);
    case PolicyKind::lru:
    case PolicyKind::lru_global:
      return std::make_unique<Lru>(n);
    case PolicyKind::slru:
      return std::make_unique<SegmentedLru>(shape);
    case PolicyKind::lfu:
      return std::make_unique<Lfu>(n);
    case PolicyKind::dlfu:
      return std::make_unique<DecayedLfu>(n);
  }
  throw Error(Errc::bad_request, "no such cache policy");
}

}  // namespace sluice::policy
