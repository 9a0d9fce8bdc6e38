// See line_editor.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/line_editor.h"

#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>

#include "base/error.h"
#include "cli/terminal/editing_signals.h"
#include "cli/terminal/reflow.h"
#include "cli/terminal/style.h"
#include "cli/terminal/terminal_text.h"

namespace sluice::cli {
namespace {

constexpr int kHistorySize = 1000;
constexpr std::string_view kBlock = "\"\"\"";
constexpr const char* kMorePrompt = "... ";
// A line's end inside the one line that is edited.
constexpr std::string_view kLineMark = "\u2424";
constexpr char kHiddenMark = '\1';  // around what a prompt holds that takes no room

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// "> " with its sign in colour. The reset comes before the space: the editor loses one at the end.
std::string styled_prompt(const std::string& prompt) {
  if (!has_style(STDOUT_FILENO)) return prompt;
  const size_t sign = std::min(prompt.find(' '), prompt.size());
  return cat(kHiddenMark, "\x1b[1;36m", kHiddenMark, prompt.substr(0, sign), kHiddenMark, "\x1b[0m",
             kHiddenMark, prompt.substr(sign));
}

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
        editor, EL_PROMPT_ESC, +[](EditLine* e) { return of(e).prompt.data(); }, kHiddenMark);
    el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    // By wide strings, which libedit takes as they are: of others it makes copies that nobody
    // frees.
    el_wset(editor, EL_ADDFN, L"sluice-paste", L"take pasted text", &take_paste);
    el_set(editor, EL_BIND, "\033[200~", "sluice-paste", nullptr);
    el_wset(editor, EL_ADDFN, L"sluice-complete", L"complete a command", &complete);
    el_set(editor, EL_BIND, "^I", "sluice-complete", nullptr);
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

  // The terminal then marks where a paste begins and ends.
  static void mark_pastes(bool on) {
    if (!is_smart_terminal()) return;
    std::fputs(on ? "\x1b[?2004h" : "\x1b[?2004l", stdout);
    std::fflush(stdout);
  }

  // What the terminal sends between the two marks is text, whatever keys it would stand for.
  static unsigned char take_paste(EditLine* editor, int) {
    constexpr std::wstring_view kEnd = L"\033[201~";
    std::wstring text;
    wchar_t c = 0;
    while (!text.ends_with(kEnd)) {
      if (read_character(editor, &c) != 1) return CC_EOF;
      text += c;
    }
    text.resize(text.size() - kEnd.size());
    std::wstring shown;
    for (const wchar_t next : text) {
      if (next == L'\n' || next == L'\r') {
        if (next == L'\n' && shown.ends_with(L"\r")) shown.pop_back();
        shown += next;
      } else if (next >= 0x20 && next != 0x7f) {
        shown += next;
      } else if (next == L'\t') {
        shown += L"    ";
      }
    }
    while (shown.ends_with(L'\n') || shown.ends_with(L'\r')) shown.pop_back();
    for (wchar_t& next : shown) {
      if (next == L'\n' || next == L'\r') next = L'\u2424';
    }
    if (!shown.empty()) el_winsertstr(editor, shown.c_str());
    return CC_REFRESH;
  }

  // Completes as far as all candidates agree; where that is nothing, lists them.
  static unsigned char complete(EditLine* editor, int) {
    const Terminal& self = of(editor);
    const LineInfo* info = el_line(editor);
    const std::string line(info->buffer, info->cursor);
    std::vector<std::string> found;
    if (self.completer) found = self.completer(line);
    if (found.empty()) return CC_ERROR;
    std::string common = found.front();
    for (const std::string& other : found) {
      common.resize(static_cast<size_t>(std::ranges::mismatch(common, other).in1 - common.begin()));
    }
    if (common.size() > line.size()) {
      const std::string rest = common.substr(line.size());
      return el_insertstr(editor, rest.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
    }
    if (found.size() == 1) return CC_NORM;
    std::fputs("\n", stdout);
    for (const std::string& one : found) std::printf("%s  ", harmless(one).c_str());
    std::fputs("\n", stdout);
    return CC_REDISPLAY;
  }

  // Where the terminal has moved the line's rows together or apart, the editor's picture of them is
  // wrong: they go, and it draws them anew.
  void draw_anew() {
    const LineInfoW* line = el_wline(editor);
    const std::wstring_view before(line->buffer, static_cast<size_t>(line->cursor - line->buffer));
    const std::wstring shown =
        std::wstring(plain_prompt.begin(), plain_prompt.end()).append(before);
    const int n_columns = terminal_columns(STDOUT_FILENO);
    const int n_up = rows_above(shown, std::exchange(drawn_columns, n_columns), n_columns);
    std::fputs("\r", stdout);
    if (n_up > 0) std::printf("\x1b[%dA", n_up);
    std::fputs("\x1b[J", stdout);
    std::fflush(stdout);
    el_resize(editor);
    el_set(editor, EL_REFRESH);
  }

  // The terminal is given back where a signal ends or stops the program.
  void heed(int signal) {
    switch (signal) {
      case SIGWINCH:
        if (is_smart_terminal()) {
          draw_anew();
        } else {
          el_resize(editor);
        }
        return;
      case SIGCONT:
        el_set(editor, EL_PREP_TERM, 1);
        mark_pastes(true);
        el_set(editor, EL_REFRESH);
        return;
      default:
        mark_pastes(false);
        el_set(editor, EL_PREP_TERM, 0);
        signals->let_through(signal);
    }
  }

  // One character of the input, as the locale has it: 1; 0 at its end, -1 where Ctrl-C or an error
  // ends the line. The editor's own function does not see a signal that comes just before it reads.
  static int read_character(EditLine* editor, wchar_t* character) {
    Terminal& self = of(editor);
    std::mbstate_t state{};
    for (;;) {
      if (const int signal = self.signals->wait(STDIN_FILENO); signal == SIGINT) {
        const LineInfo* line = el_line(editor);
        self.was_empty = line->buffer == line->lastchar;
        self.was_interrupted = true;  // a search that is on ends the line without saying so
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
  std::string plain_prompt;  // without colours; ASCII
  int drawn_columns = 0;     // of the terminal when the line was drawn
  std::string history_path;
  Completer completer;
  bool was_interrupted = false;
  bool was_empty = false;
};

LineEditor::LineEditor(std::string history_path) {
  if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
    terminal_ = std::make_unique<Terminal>(std::move(history_path));
  }
}

LineEditor::~LineEditor() = default;

void LineEditor::set_completer(Completer completer) {
  if (terminal_) terminal_->completer = std::move(completer);
}

LineEditor::Input LineEditor::read_line(const std::string& prompt, const std::string& begin) {
  std::string line;
  if (!terminal_) {
    if (!std::getline(std::cin, line)) return {};
    return {Outcome::message, line};
  }
  terminal_->plain_prompt = prompt;
  terminal_->prompt = styled_prompt(prompt);
  el_resize(terminal_->editor);  // as it may have become since the last line
  terminal_->drawn_columns = terminal_columns(STDOUT_FILENO);
  terminal_->was_interrupted = false;
  int n = 0;
  terminal_->signals.emplace();
  Terminal::mark_pastes(true);
  if (!begin.empty()) el_push(terminal_->editor, replaced(begin, "\n", kLineMark).c_str());
  const char* typed = el_gets(terminal_->editor, &n);
  const bool interrupted = terminal_->was_interrupted;  // Ctrl-C
  Terminal::mark_pastes(false);
  terminal_->signals.reset();
  if (!typed || n <= 0 || interrupted) {
    std::cout << std::endl;
    return {interrupted ? Outcome::interrupted : Outcome::end, "", false, terminal_->was_empty};
  }
  line.assign(typed, static_cast<size_t>(n));
  if (line.ends_with('\n')) line.pop_back();
  terminal_->remember(line);
  const bool is_block = line.find(kLineMark) != std::string::npos;
  return {Outcome::message, replaced(line, kLineMark, "\n"), is_block};
}

// `text`: what follows the opening """. Where they stand alone, they take the line's end with them.
LineEditor::Input LineEditor::read_block(std::string text) {
  bool is_first = text.empty();
  while (!text.ends_with(kBlock)) {
    Input line = read_line(kMorePrompt);
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

LineEditor::Input LineEditor::read(const std::string& prompt, const std::string& begin) {
  Input input = read_line(prompt, begin);
  if (input.text.starts_with(kBlock)) return read_block(input.text.substr(kBlock.size()));
  while (input.text.ends_with('\\')) {
    input.text.back() = '\n';
    Input more = read_line(kMorePrompt);
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
