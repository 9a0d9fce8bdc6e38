// Weighs the ways of running a model for one workload: where everything would be, what that costs,
// how fast it would be, and whether memory and wishes allow it. Part of the planner.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "policy/plan/planner.h"
#include "policy/plan/planner_slots.h"

namespace sluice::policy {

struct Candidate {
  Forecast forecast;
  Placement place;
  Price price;
};

// Borrows all it is given.
class Scales {
 public:
  // Throws Errc::bad_request for wishes that contradict the model or each other.
  Scales(const ModelShape& model, const Hardware& hardware, const Wishes& wishes,
         const LocalityCurve& locality);

  // One for every mode, in the order of Mode.
  std::vector<Candidate> weigh(const Workload& work) const;

  uint64_t vram_budget() const { return vram_budget_; }
  int n_gpu_layers() const { return n_gpu_layers_; }                 // wanted
  const std::vector<bool>& pinned() const { return rules_.pinned; }  // by layer
  const std::vector<bool>& allowed() const { return rules_.allowed; }
  const std::vector<int>& most_slots() const { return most_slots_; }  // that wishes allow

 private:
  Candidate weigh(Mode mode, const Workload& work) const;
  Placement with_slots(const Workload& work, double link_share) const;
  Candidate with_cache(const Workload& work) const;
  Placement with_best_split(const Workload& work, Placement place) const;
  Candidate with_cpu_layers(const Workload& work) const;
  std::vector<int> no_slots() const { return std::vector<int>(model_.layers.size()); }
  Placement placement(int n_gpu_layers, std::vector<int> n_slots, double link_share = 0.0) const;
  Candidate candidate(Mode mode, const Workload& work, Placement place) const;
  // The wish that rules a mode out; empty where none does.
  std::string excluded(Mode mode) const;
  std::string excluded_by_place(Mode mode) const;

  const ModelShape& model_;
  const Hardware& hardware_;
  const Wishes& wishes_;
  const LocalityCurve& locality_;
  uint64_t vram_budget_ = 0;
  int n_gpu_layers_ = 0;
  SlotRules rules_;  // for as many
  std::vector<int> most_slots_;
  std::vector<int> pinned_slots_;
};

}  // namespace sluice::policy
