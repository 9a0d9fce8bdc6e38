// Signals while a line is edited. Their handlers do nothing but write into a pipe, and the editor
// waits for that pipe together with its input: a signal that comes between two reads is not lost,
// and nothing is drawn inside of a handler.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <vector>

namespace sluice::cli {

// Catches the signals of a terminal as long as it lives. One at a time.
class EditingSignals {
 public:
  EditingSignals();
  ~EditingSignals();  // all as before
  EditingSignals(const EditingSignals&) = delete;
  EditingSignals& operator=(const EditingSignals&) = delete;

  // Until there is something to read: 0; or until a signal came, perhaps before the call: which
  // one.
  int wait(int input) const;

  // Lets the signal do what it does while no line is edited: end the program, or stop it.
  void let_through(int signal) const;

 private:
  std::vector<struct sigaction> before_;
};

}  // namespace sluice::cli
