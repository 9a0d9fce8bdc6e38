// Lines typed by a person: editing and history on a terminal, plain lines from a pipe. The editor
// is libedit: Debian 12 keeps no other one up but readline, whose licence (GPL) would become ours.
// Pastes, searches that are given up and new sizes of the terminal are handled here, not there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sluice::cli {

class LineEditor {
 public:
  // The history is kept in `history_path`; empty: not kept.
  explicit LineEditor(std::string history_path);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  enum class Outcome { message, interrupted, end };
  struct Input {
    Outcome outcome = Outcome::end;
    std::string text;
    bool is_block = false;   // of several lines, so that a '/' at its beginning is no command
    bool was_empty = false;  // interrupted before anything was typed
  };

  // One message: a line; several, where a line ends in a backslash or where """ opens a block that
  // the next """ at the end of a line closes. Ctrl-C throws away what was typed, Ctrl-D at the
  // beginning ends.
  // What is pasted is one message, however many lines it has; they show as one with a mark at each
  // end. `begin`: text to edit, put there as if typed; on a terminal alone.
  Input read(const std::string& prompt, const std::string& begin = "");

  // Whether a person edits here.
  bool is_terminal() const { return terminal_ != nullptr; }

  // For Tab: what the line up to the cursor may become, as whole lines.
  using Completer = std::function<std::vector<std::string>(const std::string& line)>;
  void set_completer(Completer completer);

 private:
  struct Terminal;
  Input read_line(const std::string& prompt, const std::string& begin = "");
  Input read_block(std::string text);

  std::unique_ptr<Terminal> terminal_;  // null where input is not a terminal
};

// Where the program keeps its history: under $XDG_STATE_HOME or ~/.local/state; empty: nowhere.
std::string default_history_path();

}  // namespace sluice::cli
