// See answer_printer.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/answer_printer.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "cli/text_file.h"
#include "text/utf8.h"

namespace sluice::cli {
namespace {

// The text without characters that steer a terminal.
std::string harmless(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view c = text.substr(0, text::next_utf8(text).n_bytes);
    if (!is_control(c) || c == "\n" || c == "\t") out += c;
    text.remove_prefix(c.size());
  }
  return out;
}

}  // namespace

AnswerPrinter::AnswerPrinter(ShowThinking show)
    : is_terminal_(isatty(STDOUT_FILENO) == 1),
      shows_thinking_(is_terminal_ && show == ShowThinking::dimmed) {}

AnswerPrinter::~AnswerPrinter() {
  set_dimmed(false);
  std::fflush(stdout);
}

void AnswerPrinter::set_dimmed(bool dimmed) {
  if (!is_terminal_ || dimmed == dimmed_) return;
  std::fputs(dimmed ? "\x1b[2m" : "\x1b[22m", stdout);
  dimmed_ = dimmed;
}

void AnswerPrinter::print(bool is_thinking, std::string_view text) {
  if (is_thinking) {
    thought_ = true;
    if (!shows_thinking_) return;
  } else if (thought_) {
    // The empty lines between thinking and answer belong to neither.
    const size_t first = text.find_first_not_of('\n');
    if (first == std::string_view::npos) return;
    text.remove_prefix(first);
    thought_ = false;
    if (!at_line_start_) std::fputs("\n", stdout);
  }
  if (text.empty()) return;
  set_dimmed(is_thinking);
  const std::string shown = is_terminal_ ? harmless(text) : std::string(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  std::fflush(stdout);
  at_line_start_ = text.ends_with('\n');
}

void AnswerPrinter::finish() {
  set_dimmed(false);
  if (!at_line_start_) std::fputs("\n", stdout);
  at_line_start_ = true;
  std::fflush(stdout);
}

}  // namespace sluice::cli
