// Calls of tools in an answer, however it is cut up.
// SPDX-License-Identifier: Apache-2.0
#include "text/tool_calls.h"

#include <gtest/gtest.h>

namespace sluice::text {
namespace {

// Text and calls in one string: "Hi|f{"x":1}|".
std::string split_calls(std::string_view answer, size_t piece,
                        ToolCallSplitter::State start = ToolCallSplitter::State::text) {
  std::string seen;
  ToolCallSplitter splitter(
      start, [&](std::string_view text) { seen += text; },
      [&](const ToolCall& call) { seen += "|" + call.name + call.arguments + "|"; });
  for (size_t i = 0; i < answer.size(); i += piece) splitter.push(answer.substr(i, piece));
  splitter.finish();
  return seen;
}

TEST(ToolCalls, AreTakenOutOfTheText) {
  const std::pair<const char*, const char*> cases[] = {
      {"no call < at all\n", "no call < at all\n"},
      {"Hi\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>",
       "Hi|f{\"x\":1}|"},
      {"<tool_call>{\"name\": \"f\"}</tool_call>\n<tool_call>{\"name\": \"g\"}</tool_call>",
       "|f{}||g{}|"},
      {"<tool_call>{\"name\": \"f\", \"parameters\": {}}", "|f{}|"},
      {"<tool_call>nonsense</tool_call> b", "<tool_call>nonsense</tool_call> b"},
      {"<tool_call>{\"name\": ", "<tool_call>{\"name\": "},
      {"a <tool_cal", "a <tool_cal"},
      {"<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n<parameter=y>\nab "
       "c\n</parameter>\n</function>\n</tool_call>",
       "|f{\"x\":1,\"y\":\"ab c\"}|"},
  };
  for (const auto& [answer, expected] : cases) {
    for (const size_t piece : {1, 2, 3, 7, 1000}) {
      EXPECT_EQ(split_calls(answer, piece), expected) << piece;
    }
  }
}

TEST(ToolCalls, PromptMayHaveOpenedOne) {
  EXPECT_EQ(split_calls(R"({"name": "f", "arguments": {}})", 3, ToolCallSplitter::State::call),
            "|f{}|");
}

TEST(ToolCalls, ClosingTagInAStringClosesNothing) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"name": "f", "arguments": {"x": "</tool_call>1\"</tool_call>"}}</tool_call>b)",
       R"(|f{"x":"</tool_call>1\"</tool_call>"}|b)"},
      {R"({"name": "f", "arguments": {"x": "</tool_call>"}})", R"(|f{"x":"</tool_call>"}|)"},
      // A string that never ends: there the tags count, and the next call is found.
      {R"({"x": "1}</tool_call>b<tool_call>{"name": "g"}</tool_call>)",
       R"(<tool_call>{"x": "1}</tool_call>b|g{}|)"},
      {R"(<function=f><parameter=x>"</parameter></function></tool_call>)", R"(|f{"x":"\""}|)"},
  };
  for (const auto& [answer, expected] : cases) {
    for (const size_t piece : {1, 2, 3, 7, 1000}) {
      EXPECT_EQ(split_calls(answer, piece, ToolCallSplitter::State::call), expected) << piece;
    }
  }
}

TEST(ToolCalls, DeepArgumentsAreText) {
  const std::string deep = "{\"name\": \"f\", \"arguments\": " + std::string(100'000, '[');
  EXPECT_FALSE(parse_tool_call(deep + std::string(100'000, ']') + "}"));
}

}  // namespace
}  // namespace sluice::text
