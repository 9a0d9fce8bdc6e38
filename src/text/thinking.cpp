// See thinking.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/thinking.h"

#include <algorithm>
#include <utility>

namespace sluice::text {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";
constexpr std::string_view kWhiteSpace = " \t\r\n";

void drop_leading_newlines(std::string& text) {
  text.erase(0, std::min(text.find_first_not_of('\n'), text.size()));
}

}  // namespace

size_t partial_match(std::string_view text, std::string_view word) {
  for (size_t n = std::min(text.size(), word.size() - 1); n > 0; --n) {
    if (text.ends_with(word.substr(0, n))) return n;
  }
  return 0;
}

void ThinkingSplitter::push(std::string_view text) {
  held_ += text;
  bool changed = true;  // the state, so that the rest may be read differently
  while (changed && state_ != State::answer) {
    changed = state_ == State::undecided ? decide() : think();
  }
  if (state_ == State::answer) give_answer();
}

// Both return whether the state changed.
bool ThinkingSplitter::decide() {
  const size_t first = held_.find_first_not_of(kWhiteSpace);
  if (first == std::string::npos) return false;
  const std::string_view rest = std::string_view(held_).substr(first);
  if (rest.starts_with(kOpen)) {
    held_.erase(0, first + kOpen.size());
    at_start_ = true;
    state_ = State::thinking;
    return true;
  }
  if (kOpen.starts_with(rest)) return false;
  if (thought_) drop_leading_newlines(held_);
  state_ = State::answer;
  return true;
}

bool ThinkingSplitter::think() {
  thought_ = true;
  const size_t end = held_.find(kClose);
  if (end == std::string::npos) {
    give_thinking(held_.size() - partial_match(held_, kClose));
    return false;
  }
  give_thinking(end);
  held_.erase(0, held_.find(kClose) + kClose.size());
  state_ = State::undecided;
  return true;
}

// The first n bytes of what is held, but for line ends at the outside: those before the block are
// dropped, those behind wait for what follows.
void ThinkingSplitter::give_thinking(size_t n_bytes) {
  if (at_start_) {
    const size_t before = held_.size();
    drop_leading_newlines(held_);
    n_bytes -= std::min(n_bytes, before - held_.size());
  }
  const size_t n = held_.substr(0, n_bytes).find_last_not_of('\n') + 1;
  if (n == 0) return;
  at_start_ = false;
  sink_(/*is_thinking=*/true, std::string_view(held_).substr(0, n));
  held_.erase(0, n);
}

void ThinkingSplitter::give_answer() {
  if (!held_.empty()) sink_(/*is_thinking=*/false, std::exchange(held_, {}));
}

void ThinkingSplitter::finish() {
  if (state_ == State::thinking) {
    give_thinking(held_.size());
    held_.clear();
    return;
  }
  if (thought_) drop_leading_newlines(held_);
  give_answer();
}

bool begins_with_thinking_tag(std::string_view text) {
  return text.starts_with(kOpen) || text.starts_with(kClose);
}

bool ends_inside_thinking(std::string_view prompt) {
  prompt = prompt.substr(0, prompt.find_last_not_of(kWhiteSpace) + 1);
  return prompt.ends_with(kOpen);
}

}  // namespace sluice::text
