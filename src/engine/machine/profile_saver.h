// Saves a run's routing profile now and then while it lasts, and at its end. Steps never wait for
// the disk: between them, the file is written by a thread of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policy/trace/routing_profile.h"

namespace sluice::engine {

class ProfileSaver {
 public:
  // at_start: the profile that was loaded, or a fresh one. An empty path: nothing is kept.
  ProfileSaver(std::string path, policy::RoutingProfile at_start, double interval_seconds = 60.0);

  // Counts are those of this run since its start: uses [n_layers * n_experts], in n_steps steps.
  // Each save holds the profile at the start plus these, so saving often counts nothing twice.

  // Begins a save where the interval has passed since the last one was begun, successful or not, or
  // since the first call; and where none is under way. Says whether it did.
  bool after_step(std::span<const uint32_t> uses, uint64_t n_steps, double now_seconds);

  // Saves a last time, and waits for it. A run without steps leaves the file as it is.
  void finish(std::span<const uint32_t> uses, uint64_t n_steps);

  void wait();  // for the save under way; finish() and the destructor do so too

  // Why the last save that ended has failed, in one line; empty where it has not.
  const std::string& warning();

 private:
  using Uses = std::vector<uint32_t>;

  bool is_saving();
  std::string save(std::span<const uint32_t> uses, uint64_t n_steps) const;  // gives the warning
  static std::string warning_of(const std::exception& error);

  std::string path_;
  policy::RoutingProfile at_start_;
  double interval_seconds_;
  std::optional<double> last_seconds_;  // when the interval began
  std::string warning_;
  std::future<std::string> saving_;  // gives the warning; last: its thread uses the above
};

}  // namespace sluice::engine
