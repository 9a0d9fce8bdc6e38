// Signals. Those that end the program do so without leaving half-written files behind. Ctrl-C while
// an answer is made: the first press asks it to stop, and a second one ends the program, which may
// stand still at a terminal that takes no output.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace sluice::cli {

// From now on a signal that ends the program (SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM) first
// removes the files that are being written (base/output_file.h). One that whoever started us chose
// to ignore stays ignored, as nohup does with SIGHUP.
void remove_partial_files_on_signals();

// Catches SIGINT as long as it lives. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Whether Ctrl-C was pressed since forget().
  bool was_pressed() const;
  void forget();

 private:
  struct sigaction before_;
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

// Ends the program as a Ctrl-C outside an InterruptGuard does, so that a script that runs it stops
// too.
void end_by_interrupt();

}  // namespace sluice::cli
