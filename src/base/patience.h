// How a thread waits for a word that another one writes: it looks again and again for some
// milliseconds, since what it waits for mostly comes at once, and then sleeps in between. On a
// machine with more to do than cores, one who only yields gets its turn late; one who slept, soon.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <thread>

namespace sluice {

class Patience {
 public:
  void wait() {
    if (std::chrono::steady_clock::now() - since_ < kAwake) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
  // What was waited for has come; from here on for the next one.
  void renew() { since_ = std::chrono::steady_clock::now(); }

 private:
  static constexpr std::chrono::milliseconds kAwake{2};
  static constexpr std::chrono::microseconds kNap{50};

  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace sluice
