// See interrupt.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/interrupt.h"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

#include "base/output_file.h"

namespace sluice::cli {
namespace {

// A signal handler has no other way to say something than a global.
volatile std::sig_atomic_t n_presses = 0;

// Returns where the signal is blocked, as in its own handler: it then ends the program after that.
void end_by(int signal) {
  remove_partial_files();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// Thinking may be half printed, dimmed. Not where the terminal takes no output (Ctrl-S): the write
// would wait, and the program with it.
void reset_colour() {
  constexpr char kUsualColour[] = "\x1b[0m";
  pollfd out = {STDOUT_FILENO, POLLOUT, 0};
  if (isatty(STDOUT_FILENO) != 1 || poll(&out, 1, 0) != 1) return;
  [[maybe_unused]] const auto n = write(STDOUT_FILENO, kUsualColour, sizeof(kUsualColour) - 1);
}

void on_interrupt(int) {
  n_presses = n_presses + 1;
  if (n_presses < 2) return;
  reset_colour();
  end_by_interrupt();  // when this handler returns
}

}  // namespace

void remove_partial_files_on_signals() {
  for (const int signal : {SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = end_by;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

InterruptGuard::InterruptGuard() {
  n_presses = 0;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;  // or a press during a write would look like a broken output
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }

bool InterruptGuard::was_pressed() const { return n_presses > 0; }

void InterruptGuard::forget() { n_presses = 0; }

MainThreadSignals::MainThreadSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTSTP, SIGCONT, SIGWINCH}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

MainThreadSignals::~MainThreadSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void end_by_interrupt() { end_by(SIGINT); }

}  // namespace sluice::cli
