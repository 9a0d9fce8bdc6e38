// Copies as slow as over a slower link, to see on a fast one what a slower machine would do: behind
// each of them its stream stands until the slow link would have brought it. Only copies: reads by
// the device's own work cannot be held, so whoever holds a link makes none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "backend/device.h"

namespace sluice::engine {

class LinkPace {
 public:
  struct Clock {
    std::function<double()> now;                     // seconds
    std::function<void(double seconds)> wait_until;  // then
  };
  // The wall's.
  static Clock wall();

  explicit LinkPace(double gbps, Clock clock = wall());

  // Around a copy of so many bytes, in the streams' threads; one copy at a time.
  void begin();
  void end(uint64_t n_bytes);

 private:
  double bytes_per_second_;
  Clock clock_;
  double begun_ = 0.0;
  double free_at_ = 0.0;  // when the link has brought all before
};

}  // namespace sluice::engine
