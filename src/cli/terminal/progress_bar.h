// A bar on standard error for work that takes a while; nothing where that is not a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace sluice::cli {

class ProgressBar {
 public:
  // What is counted: bytes, unless there is a name for it.
  explicit ProgressBar(std::string label, std::string unit = "");
  ~ProgressBar();  // wipes the bar
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  bool visible() const { return visible_; }
  // Draws at most a few times a second.
  void update(uint64_t done, uint64_t total);
  std::function<void(uint64_t, uint64_t)> updater() {
    return [this](uint64_t done, uint64_t total) { update(done, total); };
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string amount(uint64_t n) const;

  std::string label_;
  std::string unit_;
  bool visible_;
  bool drawn_ = false;
  Clock::time_point start_;
  Clock::time_point last_;
};

}  // namespace sluice::cli
