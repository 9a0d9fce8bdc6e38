// See editing_signals.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/editing_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.h"

namespace sluice::cli {
namespace {

constexpr std::array kCaught = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH};

// A handler has no other way to find it than a global: made once, kept until the program ends.
struct Pipe {
  Pipe() { CHECK(::pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0); }
  int ends[2];
};

const Pipe& pipe_of_signals() {
  static const Pipe only;
  return only;
}

int write_end = -1;

// A full pipe holds more signals than anybody waits for.
void on_signal(int signal) {
  const int before = errno;
  const auto number = static_cast<unsigned char>(signal);
  [[maybe_unused]] const auto n = ::write(write_end, &number, 1);
  errno = before;
}

void set_handler(int signal, void (*handler)(int), struct sigaction* before) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, before);
}

}  // namespace

EditingSignals::EditingSignals() : before_(kCaught.size()) {
  write_end = pipe_of_signals().ends[1];
  for (size_t i = 0; i < kCaught.size(); ++i) {
    set_handler(kCaught[i], on_signal, &before_[i]);
    const bool was_ignored = before_[i].sa_handler == SIG_IGN;  // as by nohup
    if (was_ignored) ::sigaction(kCaught[i], &before_[i], nullptr);
  }
}

EditingSignals::~EditingSignals() {
  for (size_t i = 0; i < kCaught.size(); ++i) ::sigaction(kCaught[i], &before_[i], nullptr);
}

int EditingSignals::wait(int input) const {
  const int signals = pipe_of_signals().ends[0];
  for (;;) {
    unsigned char number = 0;
    if (::read(signals, &number, 1) == 1) return number;
    std::array<pollfd, 2> ready = {{{signals, POLLIN, 0}, {input, POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return 0;
    if (ready[0].revents == 0 && ready[1].revents != 0) return 0;
  }
}

void EditingSignals::let_through(int signal) const {
  const auto i = static_cast<size_t>(std::ranges::find(kCaught, signal) - kCaught.begin());
  CHECK(i < kCaught.size());
  ::sigaction(signal, &before_[i], nullptr);
  ::raise(signal);
  set_handler(signal, on_signal, nullptr);  // it was stopped, and goes on
}

}  // namespace sluice::cli
