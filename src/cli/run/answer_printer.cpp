// See answer_printer.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/run/answer_printer.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "cli/terminal/style.h"
#include "cli/terminal/terminal_text.h"

namespace sluice::cli {

AnswerPrinter::AnswerPrinter(ShowThinking show, Wrap wrap)
    : is_terminal_(isatty(STDOUT_FILENO) == 1),
      has_style_(has_style(STDOUT_FILENO)),
      wraps_(is_terminal_ && is_smart_terminal() && wrap == Wrap::words),
      shows_thinking_(is_terminal_ && show == ShowThinking::dimmed) {}

AnswerPrinter::~AnswerPrinter() {
  if (!at_line_start_) std::fputs("\n", stdout);
  if (dimmed_) begin_part(/*is_thinking=*/false);
  std::fflush(stdout);
}

// Thinking is only begun on a terminal.
void AnswerPrinter::begin_part(bool is_thinking) {
  if (has_style_) std::fputs(is_thinking ? "\x1b[2m" : "\x1b[22m", stdout);
  dimmed_ = is_thinking;
}

void AnswerPrinter::print(bool is_thinking, std::string_view text) {
  if (is_thinking && !shows_thinking_) return;
  std::string shown = is_terminal_ ? harmless(text) : std::string(text);
  if (shown.empty()) return;
  if (is_thinking != dimmed_) {
    if (!at_line_start_) std::fputs("\n", stdout);
    wrap_.end_line();
    begin_part(is_thinking);
  }
  if (wraps_) shown = wrap_.add(shown, terminal_columns(STDOUT_FILENO));
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  std::fflush(stdout);
  at_line_start_ = shown.ends_with('\n');
}

}  // namespace sluice::cli
