// See thinking.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/thinking.h"

#include <algorithm>
#include <utility>

namespace sluice::text {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";

}  // namespace

size_t partial_match(std::string_view text, std::string_view word) {
  for (size_t n = std::min(text.size(), word.size() - 1); n > 0; --n) {
    if (text.ends_with(word.substr(0, n))) return n;
  }
  return 0;
}

void ThinkingSplitter::push(std::string_view text) {
  held_ += text;
  for (;;) {
    const std::string_view tag = inside_ ? kClose : kOpen;
    const size_t at = held_.find(tag);
    if (at == std::string::npos) {
      const size_t n = held_.size() - partial_match(held_, tag);
      if (n > 0) sink_(inside_, std::string_view(held_).substr(0, n));
      held_.erase(0, n);
      return;
    }
    if (at > 0) sink_(inside_, std::string_view(held_).substr(0, at));
    held_.erase(0, at + tag.size());
    inside_ = !inside_;
  }
}

void ThinkingSplitter::finish() {
  if (!held_.empty()) sink_(inside_, std::exchange(held_, {}));
}

bool ends_inside_thinking(std::string_view prompt) {
  const size_t open = prompt.rfind(kOpen);
  if (open == std::string_view::npos) return false;
  const size_t close = prompt.rfind(kClose);
  return close == std::string_view::npos || close < open;
}

}  // namespace sluice::text
