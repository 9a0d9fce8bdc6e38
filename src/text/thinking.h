// Tells a model's thinking from its answer in a stream of text: what stands between <think> and
// </think> is thinking, if nothing but white space comes before. Later in an answer the tags are
// text like any other. The tags themselves, and the line ends around them, belong to neither.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace sluice::text {

// What all calls hand over, put together, is the same however the text was cut up.
class ThinkingSplitter {
 public:
  using Sink = std::function<void(bool is_thinking, std::string_view text)>;

  enum class State {
    undecided,  // white space so far, or nothing
    thinking,   // the prompt may have opened it already
    answer,     // to the end
  };

  ThinkingSplitter(State start, Sink sink) : state_(start), sink_(std::move(sink)) {}

  void push(std::string_view text);
  void finish();  // hands over what was held back as a possible tag

 private:
  bool decide();
  bool think();
  void give_thinking(size_t n_bytes);
  void give_answer();

  State state_;
  Sink sink_;
  std::string held_;
  bool at_start_ = true;  // of a thinking block: nothing of it has been handed over
  bool thought_ = false;  // there was such a block
};

// Whether the text begins with <think> or </think>.
bool begins_with_thinking_tag(std::string_view text);

// Whether a rendered prompt ends with an open thinking block, and what closes it again, empty.
bool ends_inside_thinking(std::string_view prompt);
inline constexpr std::string_view kNoThoughts = "\n</think>\n\n";

// The longest end of `text` that is a beginning of `word`, but not all of it.
size_t partial_match(std::string_view text, std::string_view word);

}  // namespace sluice::text
