// libFuzzer entry for the Jinja interpreter: any bytes compile and render, or throw an Error of one
// line; within the limits, and twice with the same result.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "text/chat_template.h"

namespace sluice::text {
namespace {

constexpr size_t kLongestMessage = 4096;

jinja::Limits small_limits() {
  jinja::Limits limits;
  limits.steps = 50'000;
  limits.depth = 300;
  limits.output_bytes = 64 << 10;
  limits.value_bytes = 1 << 20;
  return limits;
}

// A conversation with something for every construct to work on.
ChatInput make_input() {
  ChatInput input;
  input.messages = Json::parse(R"([
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Grüße 你好"},
    {"role": "assistant", "content": null, "reasoning_content": "a\nb",
     "tool_calls": [{"id": "abcdef123", "type": "function",
                     "function": {"name": "f", "arguments": {"x": [1, 2.5, true, null]}}}]},
    {"role": "tool", "content": "<ok>", "tool_call_id": "abcdef123"},
    {"role": "assistant", "content": "<think>c</think>\n\nd"},
    {"role": "user", "content": [{"type": "text", "text": "e"}]}])");
  input.tools = Json::parse(R"([{"type": "function", "function": {"name": "f",
    "parameters": {"type": "object", "properties": {"x": {"type": "array"}}}}}])");
  input.enable_thinking = false;
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  input.variables = Json::parse(R"({"n": 3, "s": "a b,c", "d": {"k": "v"}, "l": [3, 1, 2]})");
  input.now = std::chrono::local_seconds(std::chrono::seconds(1'700'000'000));
  return input;
}

void expect_good_error(const Error& error, Errc code) {
  const std::string_view text = error.what();
  CHECK(error.code() == code);
  CHECK(text.find('\n') == std::string_view::npos);
  CHECK(text.size() < kLongestMessage);
}

std::string render(const ChatTemplate& compiled, const ChatInput& input) {
  try {
    return compiled.render(input);
  } catch (const Error& error) {
    expect_good_error(error, Errc::bad_request);
    return error.what();
  }
}

}  // namespace
}  // namespace sluice::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice::text;
  static const ChatInput input = make_input();
  try {
    const ChatTemplate compiled({reinterpret_cast<const char*>(data), size}, small_limits());
    const std::string text = render(compiled, input);
    CHECK(text.size() <= small_limits().output_bytes + kLongestMessage);
    CHECK(render(compiled, input) == text);
  } catch (const sluice::Error& error) {
    expect_good_error(error, sluice::Errc::bad_file);
  }
  return 0;
}
