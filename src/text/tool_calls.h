// Tells calls of tools from text in an answer, as most templates have models write them:
//   <tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>
// or, between the same tags, as Qwen's coders do:
//   <function=weather><parameter=city>Oslo</parameter></function>
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::text {

struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object, as text
};

inline constexpr std::string_view kToolCallOpen = "<tool_call>";
inline constexpr std::string_view kToolCallClose = "</tool_call>";

// What stands between the tags; nothing where that is no call.
std::optional<ToolCall> parse_tool_call(std::string_view text);

// What all calls hand over, put together, is the same however the text was cut up. White space
// between a text and a call belongs to neither; what is no call stays text, tags and all. A closing
// tag within a string of a call's JSON belongs to that string.
class ToolCallSplitter {
 public:
  using OnText = std::function<void(std::string_view)>;
  using OnCall = std::function<void(ToolCall)>;

  enum class State { text, call };  // where the answer begins: the prompt may have opened a call

  ToolCallSplitter(State start, OnText on_text, OnCall on_call)
      : in_call_(start == State::call),
        on_text_(std::move(on_text)),
        on_call_(std::move(on_call)) {}

  void push(std::string_view text);
  void finish();  // a call that was not closed counts, if it is complete

 private:
  bool take_text();
  bool take_call();
  void end_call(size_t close);

  bool in_call_;
  OnText on_text_;
  OnCall on_call_;
  std::string held_;
  size_t n_searched_ = 0;  // bytes of held_, within a call: its closing tag does not begin there
};

}  // namespace sluice::text
