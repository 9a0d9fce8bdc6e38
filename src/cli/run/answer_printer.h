// Prints an answer as it comes. On a terminal the thinking is dimmed, lines are wrapped at words
// and what would steer the terminal is left out; elsewhere the answer alone is printed, byte for
// byte.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "cli/terminal/word_wrap.h"

namespace sluice::cli {

enum class ShowThinking { dimmed, hidden };
enum class Wrap { words, none };

class AnswerPrinter {
 public:
  explicit AnswerPrinter(ShowThinking show, Wrap wrap = Wrap::words);
  ~AnswerPrinter();  // ends the line, and leaves the terminal in its usual colour
  AnswerPrinter(const AnswerPrinter&) = delete;
  AnswerPrinter& operator=(const AnswerPrinter&) = delete;

  void print(bool is_thinking, std::string_view text);

 private:
  void begin_part(bool is_thinking);

  bool is_terminal_;
  bool has_style_;
  bool wraps_;
  WordWrap wrap_;
  bool shows_thinking_;
  bool dimmed_ = false;
  bool at_line_start_ = true;
};

}  // namespace sluice::cli
