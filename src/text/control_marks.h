// Keeps what people write from being read as control tokens. A chat template puts messages between
// control tokens of its own, and the tokenizer sees only the mixture. So before the template runs,
// a mark is put into the messages wherever they might begin or complete a control token: the
// tokenizer then finds only those that the template wrote, and takes the marks out again
// (EncodeOptions::mark). See docs/decisions/0012-user-text-and-control-tokens.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::text {

class ControlMarks {
 public:
  explicit ControlMarks(const Tokenizer& tokenizer);

  // U+FDD0, which Unicode keeps for the inside of programs. Where it comes from outside it becomes
  // U+FFFD.
  static constexpr std::string_view kMark = "\xEF\xB7\x90";

  // Marks all texts in the messages and tools of a chat.
  void mark(ChatInput& input) const;

  static std::string without_marks(std::string_view text);

 private:
  // An assistant's own thinking tags stay as they are, for templates look for them.
  enum class Tags { marked, kept };

  void mark(Json& json, Tags tags, int depth) const;
  void mark_keys(Json& object) const;
  std::string marked(std::string_view text, Tags tags) const;
  bool may_continue(std::string_view text) const;

  SpecialTokens tokens_;
  std::vector<std::string> texts_;  // of the same
};

}  // namespace sluice::text
