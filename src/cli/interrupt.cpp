// See interrupt.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <csignal>

namespace sluice::cli {
namespace {

// A signal handler has no other way to say something than a global.
volatile std::sig_atomic_t n_presses = 0;

void on_interrupt(int signal) {
  n_presses = n_presses + 1;
  if (n_presses < 2) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  n_presses = 0;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: a waiting read returns
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

InterruptGuard::~InterruptGuard() { std::signal(SIGINT, SIG_DFL); }

bool InterruptGuard::take() {
  const bool pressed = n_presses > 0;
  n_presses = 0;
  return pressed;
}

}  // namespace sluice::cli
