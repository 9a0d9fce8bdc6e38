// Replacement policies: each gives every expert a value, and the expert of the lowest value leaves
// first. What they share (slots, floors, protection, limits on copies) is the expert cache's.
// Experts are numbered layer * n_experts + expert.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::policy {

enum class PolicyKind {
  mixture,     // "default": routing_mixture.h
  lru,         // equal shares per layer, nothing pooled
  lru_global,  // one list for all layers
  slru,        // 25 % on probation, 75 % protected
  lfu,         // all uses since the start count the same
  dlfu,        // decayed counts with hysteresis
};

std::string_view policy_name(PolicyKind kind);

// Throws Errc::bad_request, with the names there are.
PolicyKind parse_policy(std::string_view name);

// One expert that a step used; no step names an expert twice.
struct Use {
  int id = 0;
  float rank = 0.0f;   // in the layer's top-k, from 0 (best) to below 1
  float share = 1.0f;  // of the step's rows, in prefill; 1 in decode
};

class Replacement {
 public:
  virtual ~Replacement() = default;

  // A step went by. `uses` are in ascending order of layers. is_token: it was one token, whose
  // successor can be learnt from.
  virtual void observe(std::span<const Use> uses, bool is_token) = 0;

  // Of the experts in `set` (bit by bit, by id) lists those whose value is below `ceiling`: ids in
  // ascending order, and values beside them. Returns how many there are. One call for many.
  virtual size_t list_below(double ceiling, std::span<const uint64_t> set, std::span<int> ids,
                            std::span<double> values) const = 0;

  // True: a value is the probability of a use in the next step, so that uses can be foretold.
  virtual bool is_probability() const { return false; }

  // Whether an expert of the value `newcomer` should take the place of one with `victim`. Never
  // where the victim's value is as high; and where it holds, so it does for every lower victim.
  virtual bool displaces(double newcomer, double victim) const { return newcomer > victim; }

  virtual void admitted(int /*id*/) {}
  virtual void evicted(int /*id*/) {}

  // What is known before the first step: uses per step of every expert, in earlier runs.
  virtual void seed(std::span<const float> /*rates*/) {}
};

// Policies that keep a table of values.
class StoredValues : public Replacement {
 public:
  explicit StoredValues(size_t n_total) : values_(n_total, 0.0) {}

  size_t list_below(double ceiling, std::span<const uint64_t> set, std::span<int> ids,
                    std::span<double> values) const override;

 protected:
  std::vector<double> values_;  // by id
};

struct ReplacementShape {
  int n_layers = 0;
  int n_experts = 0;
  std::vector<int> pool_of;     // by layer
  std::vector<int> pool_slots;  // by pool
  int horizon = 1;              // steps for which the default policy's values should hold

  size_t n_total() const { return static_cast<size_t>(n_layers) * static_cast<size_t>(n_experts); }
};

std::unique_ptr<Replacement> make_replacement(PolicyKind kind, const ReplacementShape& shape);

}  // namespace sluice::policy
