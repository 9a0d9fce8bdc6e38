// See line_editor.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/line_editor.h"

#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <iostream>
#include <optional>

#include "cli/terminal/editing_signals.h"

namespace sluice::cli {
namespace {

constexpr int kHistorySize = 1000;
constexpr std::string_view kBlock = "\"\"\"";
constexpr const char* kMorePrompt = "... ";

}  // namespace

struct LineEditor::Terminal {
  explicit Terminal(std::string path) : history_path(std::move(path)) {
    // The editor counts characters as the locale has them, and our text is UTF-8 in any case.
    std::setlocale(LC_CTYPE, "");
    if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
    editor = el_init("sluice", stdin, stdout, stderr);
    past = history_init();
    HistEvent event;
    history(past, &event, H_SETSIZE, kHistorySize);
    history(past, &event, H_SETUNIQUE, 1);
    if (!history_path.empty()) history(past, &event, H_LOAD, history_path.c_str());
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_HIST, ::history, past);
    el_set(editor, EL_CLIENTDATA, this);
    el_set(editor, EL_GETCFN, &read_character);
    el_set(
        editor, EL_PROMPT, +[](EditLine* e) { return of(e).prompt.data(); });
    el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  }

  ~Terminal() {
    history_end(past);
    el_end(editor);  // gives the terminal back as it was
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  static Terminal& of(EditLine* editor) {
    void* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return *static_cast<Terminal*>(self);
  }

  // The terminal is given back where a signal ends or stops the program.
  void heed(int signal) const {
    switch (signal) {
      case SIGWINCH:
        el_resize(editor);
        return;
      case SIGCONT:
        el_set(editor, EL_PREP_TERM, 1);
        el_set(editor, EL_REFRESH);
        return;
      default:
        el_set(editor, EL_PREP_TERM, 0);
        signals->let_through(signal);
    }
  }

  // One character of the input, as the locale has it: 1; 0 at its end, -1 where Ctrl-C or an error
  // ends the line. The editor's own function does not see a signal that comes just before it reads.
  static int read_character(EditLine* editor, wchar_t* character) {
    const Terminal& self = of(editor);
    std::mbstate_t state{};
    for (;;) {
      if (const int signal = self.signals->wait(STDIN_FILENO); signal == SIGINT) {
        errno = EINTR;
        return -1;
      } else if (signal != 0) {
        self.heed(signal);
        continue;
      }
      char byte = 0;
      const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return static_cast<int>(n);
      const size_t n_used = std::mbrtowc(character, &byte, 1, &state);
      if (n_used <= 1) return 1;
      if (n_used == static_cast<size_t>(-1)) state = {};  // no UTF-8: dropped
    }
  }

  // Kept at once, since a chat may end in any way.
  void remember(const std::string& line) const {
    HistEvent event;
    if (line.empty() || history(past, &event, H_ENTER, line.c_str()) < 0) return;
    if (history_path.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(history_path).parent_path(), ignored);
    history(past, &event, H_SAVE, history_path.c_str());
  }

  EditLine* editor;
  History* past;
  std::optional<EditingSignals> signals;  // while a line is read
  std::string prompt;
  std::string history_path;
};

LineEditor::LineEditor(std::string history_path) {
  if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
    terminal_ = std::make_unique<Terminal>(std::move(history_path));
  }
}

LineEditor::~LineEditor() = default;

LineEditor::Input LineEditor::read_line(const std::string& prompt) {
  std::string line;
  if (!terminal_) {
    if (!std::getline(std::cin, line)) return {};
    return {Outcome::message, line};
  }
  terminal_->prompt = prompt;
  int n = 0;
  terminal_->signals.emplace();
  const char* typed = el_gets(terminal_->editor, &n);
  const bool interrupted = n < 0 && errno == EINTR;  // Ctrl-C
  terminal_->signals.reset();
  if (!typed || n <= 0) {
    std::cout << std::endl;
    return {interrupted ? Outcome::interrupted : Outcome::end, ""};
  }
  line.assign(typed, static_cast<size_t>(n));
  if (line.ends_with('\n')) line.pop_back();
  terminal_->remember(line);
  return {Outcome::message, line};
}

// `text`: what follows the opening """. Where they stand alone, they take the line's end with them.
LineEditor::Input LineEditor::read_block(std::string text) {
  bool is_first = text.empty();
  while (!text.ends_with(kBlock)) {
    const Input line = read_line(kMorePrompt);
    if (line.outcome == Outcome::interrupted) return line;
    if (line.outcome == Outcome::end) return {Outcome::message, text, true};
    if (!is_first) text += '\n';
    is_first = false;
    text += line.text;
  }
  text.resize(text.size() - kBlock.size());
  if (text.ends_with('\n')) text.pop_back();
  return {Outcome::message, text, true};
}

LineEditor::Input LineEditor::read(const std::string& prompt) {
  Input input = read_line(prompt);
  if (input.text.starts_with(kBlock)) return read_block(input.text.substr(kBlock.size()));
  while (input.text.ends_with('\\')) {
    input.text.back() = '\n';
    const Input more = read_line(kMorePrompt);
    if (more.outcome == Outcome::interrupted) return more;
    input.text += more.text;
  }
  return input;
}

std::string default_history_path() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state) {
    return std::string(state) + "/sluice/history";
  }
  if (const char* home = std::getenv("HOME"); home && *home) {
    return std::string(home) + "/.local/state/sluice/history";
  }
  return "";
}

}  // namespace sluice::cli
