// See interrupt.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace sluice::cli {
namespace {

// A signal handler has no other way to say something than a global.
volatile std::sig_atomic_t n_presses = 0;

void on_interrupt(int) {
  n_presses = n_presses + 1;
  if (n_presses < 2) return;
  constexpr char kUsualColour[] = "\x1b[0m";  // thinking may be on its way, dimmed
  if (isatty(STDOUT_FILENO) == 1) {
    [[maybe_unused]] const auto n = write(STDOUT_FILENO, kUsualColour, sizeof(kUsualColour) - 1);
  }
  end_by_interrupt();  // when this handler returns
}

}  // namespace

InterruptGuard::InterruptGuard() {
  n_presses = 0;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;  // or a press during a write would look like a broken output
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

InterruptGuard::~InterruptGuard() { std::signal(SIGINT, SIG_DFL); }

bool InterruptGuard::take() {
  const bool pressed = n_presses > 0;
  n_presses = 0;
  return pressed;
}

MainThreadSignals::MainThreadSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTSTP, SIGCONT, SIGWINCH}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

MainThreadSignals::~MainThreadSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void end_by_interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
}

}  // namespace sluice::cli
