// Tells a model's thinking from its answer in a stream of text: what stands between <think> and
// </think> is thinking. The tags themselves belong to neither.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace sluice::text {

class ThinkingSplitter {
 public:
  using Sink = std::function<void(bool is_thinking, std::string_view text)>;

  // starts_inside: the prompt has opened the thinking already.
  ThinkingSplitter(bool starts_inside, Sink sink)
      : inside_(starts_inside), sink_(std::move(sink)) {}

  void push(std::string_view text);
  void finish();  // hands over what was held back as a possible tag

 private:
  bool inside_;
  Sink sink_;
  std::string held_;
};

// Whether a rendered prompt ends within a thinking block.
bool ends_inside_thinking(std::string_view prompt);

// The longest end of `text` that is a beginning of `word`, but not all of it.
size_t partial_match(std::string_view text, std::string_view word);

}  // namespace sluice::text
