// Ctrl-C while the program works: the first press asks the work to stop, and while nothing has
// taken notice the second ends the program as usual.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sluice::cli {

// Catches SIGINT as long as it lives. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Whether Ctrl-C was pressed since the last call.
  bool take();
};

}  // namespace sluice::cli
