// Prints an answer as it comes. On a terminal the thinking is dimmed and what would steer the
// terminal is left out; elsewhere the answer alone is printed, byte for byte.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace sluice::cli {

enum class ShowThinking { dimmed, hidden };

class AnswerPrinter {
 public:
  explicit AnswerPrinter(ShowThinking show);
  ~AnswerPrinter();  // leaves the terminal in its usual colour
  AnswerPrinter(const AnswerPrinter&) = delete;
  AnswerPrinter& operator=(const AnswerPrinter&) = delete;

  void print(bool is_thinking, std::string_view text);
  void finish();  // ends the line

 private:
  void set_dimmed(bool dimmed);

  bool is_terminal_;
  bool shows_thinking_;
  bool dimmed_ = false;
  bool at_line_start_ = true;
  bool thought_ = false;  // and the answer has not begun
};

}  // namespace sluice::cli
