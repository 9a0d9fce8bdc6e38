// Watches what crosses the link of a RAM device, and tells demand from what comes ahead: how much
// of each, and how long demand stood behind copies that nobody had asked for yet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>

#include "backend/ram/ram_device.h"

namespace sluice::test {

class LinkWatch {
 public:
  // Copies into this range of the device's memory come ahead of their use; set before the first.
  void set_ahead(const std::byte* begin, const std::byte* end) { begin_ = begin, end_ = end; }

  // For RamDeviceOptions::on_link_use; the watch outlives the device.
  auto watcher() {
    return [this](const backend::LinkUse& use) { note(use); };
  }

  int64_t n_delayed() const { return n_delayed_; }   // demands that stood behind a copy ahead,
  double delay() const { return delay_; }            // for how many seconds in all,
  double longest_delay() const { return longest_; }  // and at most

 private:
  void note(const backend::LinkUse& use) {
    const bool is_ahead = begin_ <= use.to && use.to < end_ && use.to;
    // What ended before this was asked for delays no later demand of the same stream; others ask a
    // little earlier at most.
    while (ahead_.size() > kKept) ahead_.pop_front();
    if (is_ahead) {
      ahead_.push_back(use);
      return;
    }
    double waited = 0.0;
    for (const backend::LinkUse& a : ahead_) {
      waited +=
          std::max(0.0, std::min(a.ends_at, use.begins_at) - std::max(a.begins_at, use.asked_at));
    }
    if (waited <= 0.0) return;
    ++n_delayed_;
    delay_ += waited;
    longest_ = std::max(longest_, waited);
  }

  static constexpr size_t kKept = 64;
  const std::byte* begin_ = nullptr;
  const std::byte* end_ = nullptr;
  std::deque<backend::LinkUse> ahead_;
  int64_t n_delayed_ = 0;
  double delay_ = 0.0, longest_ = 0.0;
};

}  // namespace sluice::test
