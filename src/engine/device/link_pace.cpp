// See link_pace.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/link_pace.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/wall_clock.h"

namespace sluice::engine {
namespace {

// How late a copy may begin that follows another one without a rest: a sleep lasts longer than it
// was asked to, and a call to the host takes a while. Else every copy would be so much slower.
constexpr double kLateSeconds = 200e-6;

}  // namespace

LinkPace::Clock LinkPace::wall() {
  return {wall_seconds, [](double then) {
            const double left = then - wall_seconds();
            if (left > 0.0) std::this_thread::sleep_for(std::chrono::duration<double>(left));
          }};
}

LinkPace::LinkPace(double gbps, Clock clock)
    : bytes_per_second_(gbps * 1e9), clock_(std::move(clock)) {}

void LinkPace::begin() { begun_ = clock_.now(); }

void LinkPace::end(uint64_t n_bytes) {
  const bool follows = begun_ - free_at_ < kLateSeconds;
  free_at_ = (follows ? free_at_ : begun_) + static_cast<double>(n_bytes) / bytes_per_second_;
  clock_.wait_until(free_at_);
}

}  // namespace sluice::engine
