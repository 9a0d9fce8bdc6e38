// Watches what crosses the link of a RAM device, and tells demand from what comes ahead: how often
// demand stood behind copies that nobody had asked for yet, and how long.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <mutex>

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

  // Demands that stood behind a copy ahead, and for how many seconds at most.
  int64_t n_delayed() const {
    const std::lock_guard lock(mutex_);
    return n_delayed_;
  }
  double longest_delay() const {
    const std::lock_guard lock(mutex_);
    return longest_;
  }

 private:
  void note(const backend::LinkUse& use) {
    const std::lock_guard lock(mutex_);
    if (use.to && begin_ <= use.to && use.to < end_) {
      ahead_.push_back(use);
      if (ahead_.size() > kKept) ahead_.pop_front();
      return;
    }
    double waited = 0.0;  // of the time from its request to its beginning
    for (const backend::LinkUse& a : ahead_) {
      waited +=
          std::max(0.0, std::min(a.ends_at, use.begins_at) - std::max(a.begins_at, use.asked_at));
    }
    n_delayed_ += waited > 0.0;
    longest_ = std::max(longest_, waited);
  }

  static constexpr size_t kKept = 64;  // more than can be waited for at a time
  const std::byte* begin_ = nullptr;
  const std::byte* end_ = nullptr;
  mutable std::mutex mutex_;
  std::deque<backend::LinkUse> ahead_;  // the newest
  int64_t n_delayed_ = 0;
  double longest_ = 0.0;
};

}  // namespace sluice::test
