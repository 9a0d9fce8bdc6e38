// See answer_printer.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/run/answer_printer.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "cli/terminal/terminal_text.h"

namespace sluice::cli {

AnswerPrinter::AnswerPrinter(ShowThinking show)
    : is_terminal_(isatty(STDOUT_FILENO) == 1),
      shows_thinking_(is_terminal_ && show == ShowThinking::dimmed) {}

AnswerPrinter::~AnswerPrinter() {
  if (!at_line_start_) std::fputs("\n", stdout);
  if (dimmed_) begin_part(/*is_thinking=*/false);
  std::fflush(stdout);
}

// Thinking is only begun on a terminal.
void AnswerPrinter::begin_part(bool is_thinking) {
  std::fputs(is_thinking ? "\x1b[2m" : "\x1b[22m", stdout);
  dimmed_ = is_thinking;
}

void AnswerPrinter::print(bool is_thinking, std::string_view text) {
  if (is_thinking && !shows_thinking_) return;
  const std::string shown = is_terminal_ ? harmless(text) : std::string(text);
  if (shown.empty()) return;
  if (is_thinking != dimmed_) {
    if (!at_line_start_) std::fputs("\n", stdout);
    begin_part(is_thinking);
  }
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  std::fflush(stdout);
  at_line_start_ = shown.ends_with('\n');
}

}  // namespace sluice::cli
