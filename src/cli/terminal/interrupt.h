// Signals. Ctrl-C while the program works: the first press asks the work to stop, and while nothing
// has taken notice the second ends the program as usual.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

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

// Threads that begin while this lives leave the signals of a terminal's changes to the main thread.
// The line editor redraws in its handlers, and two threads at once would tear it apart.
class MainThreadSignals {
 public:
  MainThreadSignals();
  ~MainThreadSignals();
  MainThreadSignals(const MainThreadSignals&) = delete;
  MainThreadSignals& operator=(const MainThreadSignals&) = delete;

 private:
  sigset_t before_;
};

// Ends the program as a Ctrl-C that nobody caught does, so that a script that runs it stops too.
void end_by_interrupt();

}  // namespace sluice::cli
