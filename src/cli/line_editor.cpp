// See line_editor.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/line_editor.h"

#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace sluice::cli {
namespace {

constexpr int kHistorySize = 1000;
constexpr std::string_view kBlock = "\"\"\"";

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
    el_set(
        editor, EL_PROMPT, +[](EditLine* e) { return of(e).prompt.data(); });
    el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  }

  ~Terminal() {
    HistEvent event;
    if (!history_path.empty()) {
      std::error_code ignored;
      std::filesystem::create_directories(std::filesystem::path(history_path).parent_path(),
                                          ignored);
      history(past, &event, H_SAVE, history_path.c_str());
    }
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

  void remember(const std::string& line) const {
    HistEvent event;
    if (!line.empty()) history(past, &event, H_ENTER, line.c_str());
  }

  EditLine* editor;
  History* past;
  std::string prompt;
  std::string history_path;
};

LineEditor::LineEditor(std::string history_path) {
  if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
    terminal_ = std::make_unique<Terminal>(std::move(history_path));
  }
}

LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::read_line(const std::string& prompt, bool& interrupted) {
  interrupted = false;
  std::string line;
  if (!terminal_) {
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  }
  terminal_->prompt = prompt;
  int n = 0;
  errno = 0;
  const char* typed = el_gets(terminal_->editor, &n);
  if (!typed || n <= 0) {
    interrupted = errno == EINTR;  // Ctrl-C, caught by somebody
    std::cout << std::endl;
    return std::nullopt;
  }
  line.assign(typed, static_cast<size_t>(n));
  if (line.ends_with('\n')) line.pop_back();
  terminal_->remember(line);
  return line;
}

LineEditor::Input LineEditor::read(const std::string& prompt) {
  std::string text;
  bool in_block = false;
  bool more = false;
  do {
    bool interrupted = false;
    const auto line = read_line(text.empty() && !in_block ? prompt : "... ", interrupted);
    if (interrupted) return {Outcome::interrupted, ""};
    if (!line) return text.empty() ? Input{} : Input{Outcome::message, text};
    std::string part = *line;
    more = false;
    if (!in_block && text.empty() && part.starts_with(kBlock)) {
      in_block = true;
      part.erase(0, kBlock.size());
      if (part.empty()) continue;
    }
    if (in_block && part.ends_with(kBlock)) {
      in_block = false;
      part.resize(part.size() - kBlock.size());
    } else if (!in_block && part.ends_with('\\')) {
      part.pop_back();
      more = true;
    }
    text += part;
    if (in_block || more) text += '\n';
  } while (in_block || more);
  return {Outcome::message, text};
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
