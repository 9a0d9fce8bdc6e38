// How often each expert was used in earlier runs, so that a second start knows what to load first.
// Counts only: nothing in it tells what was said.
//
// Format, little-endian: "SLRP", u32 version = 1, u32 n_layers, u32 n_experts, f64 n_steps,
// f32 uses[n_layers, n_experts], u64 checksum of all before it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "policy/trace/routing.h"

namespace sluice::policy {

class RoutingProfile {
 public:
  RoutingProfile(int n_layers, int n_experts);

  int n_layers() const { return n_layers_; }
  int n_experts() const { return n_experts_; }
  double n_steps() const { return n_steps_; }  // that it stands for, decayed as the uses are

  // Takes a run's uses in ([n_layers * n_experts], of n_steps steps). What was there before fades:
  // it weighs as much as kMemorySteps steps at most.
  void add_run(std::span<const uint32_t> uses, uint64_t n_steps);

  // Uses per step, [n_layers * n_experts].
  std::vector<float> rates() const;

  std::vector<std::byte> encode() const;

  // Throws Errc::bad_file for anything that encode() did not write.
  static RoutingProfile decode(std::span<const std::byte> bytes);

  friend bool operator==(const RoutingProfile&, const RoutingProfile&) = default;

 private:
  static constexpr double kMemorySteps = 20000.0;

  int n_layers_;
  int n_experts_;
  double n_steps_ = 0.0;
  std::vector<float> uses_;
};

}  // namespace sluice::policy
