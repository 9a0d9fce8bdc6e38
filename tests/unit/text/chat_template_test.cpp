// The chat template as the engine sees it: which variables it gets, and how it refuses.
// SPDX-License-Identifier: Apache-2.0
#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/error.h"

namespace sluice::text {
namespace {

ChatInput conversation() {
  ChatInput input;
  input.messages = Json::parse(
      R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])");
  return input;
}

TEST(ChatTemplate, RendersAConversation) {
  const ChatTemplate chatml(
      "{% for m in messages %}\n<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\n"
      "{% if add_generation_prompt %}\n<|im_start|>assistant\n{% endif %}");
  ChatInput input = conversation();
  EXPECT_EQ(chatml.render(input),
            "<|im_start|>system\nBe "
            "brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  input.add_generation_prompt = false;
  EXPECT_EQ(chatml.render(input),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n");
}

TEST(ChatTemplate, DefinesWhatHuggingFaceDefines) {
  const ChatTemplate probe(
      "{{ tools is none }} {{ documents is none }} {{ enable_thinking is defined }} {{ bos_token "
      "}}{{ eos_token }} "
      "{{ strftime_now is defined }} {{ raise_exception is defined }} {{ messages | length }}");
  ChatInput input;
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  EXPECT_EQ(probe.render(input), "True True False <s></s> False True 0");
}

TEST(ChatTemplate, PassesThinkingToolsTimeAndOtherVariables) {
  const ChatTemplate probe(
      "{{ enable_thinking }} {{ tools[0].name }} {{ strftime_now('%d %b %Y') }} {{ extra.x }}");
  ChatInput input;
  input.enable_thinking = false;
  input.tools = Json::parse(R"([{"name": "f"}])");
  input.now = std::chrono::local_seconds(std::chrono::seconds(1741338304));
  input.variables = Json::parse(R"({"extra": {"x": 1}})");
  EXPECT_EQ(probe.render(input), "False f 07 Mar 2025 1");
  input.enable_thinking = true;
  input.variables["tools"] = Json::parse(R"([{"name": "mine"}])");
  EXPECT_EQ(probe.render(input), "True mine 07 Mar 2025 1") << "variables win";
}

TEST(ChatTemplate, TakesContentInPartsAndCallsOfTools) {
  const ChatTemplate probe(
      "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in "
      "m.content %}{{ p.text }}"
      "{% endfor %}{% endif %}{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson "
      "}}{% endfor %};{% endfor %}");
  ChatInput input;
  input.messages = Json::parse(R"([{"content": [{"text": "a"}, {"text": "b"}]}, {"content": null,
      "tool_calls": [{"function": {"arguments": {"x": 1, "a": "é"}}}]}])");
  input.messages[1].erase("content");
  EXPECT_EQ(probe.render(input), R"(ab;{"x": 1, "a": "é"};)");
}

TEST(ChatTemplate, SaysWhatTheTemplateRaises) {
  const ChatTemplate strict(
      "{% if messages[0].role != 'user' %}\n  {{ raise_exception('No system role here.') }}\n{% "
      "endif %}");
  try {
    strict.render(conversation());
    FAIL() << "the template raised nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_request);
    EXPECT_STREQ(error.what(),
                 "chat template, line 2, column 6: the template refuses: No system role here.");
  }
}

TEST(ChatTemplate, RefusesATemplateThatIsNone) {
  try {
    const ChatTemplate broken("{% for m in messages %}");
    FAIL() << "the template compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_file);
    EXPECT_STREQ(
        error.what(),
        "chat template, line 1, column 24: found the end of the template, expected '{% endfor %}'");
  }
}

TEST(ChatTemplate, RefusesMessagesAndVariablesOfAnotherKind) {
  const ChatTemplate any("x");
  ChatInput input;
  input.messages = "hello";
  EXPECT_THROW(any.render(input), Error);
  input = {};
  input.variables = Json::array();
  EXPECT_THROW(any.render(input), Error);
}

TEST(ChatTemplate, KnowsWhichVariablesItMentions) {
  const ChatTemplate probe(
      "{% set x = messages %}{{ tools }}{{ m.enable_thinking }}{{ 'documents' }}");
  EXPECT_TRUE(probe.mentions("messages"));
  EXPECT_TRUE(probe.mentions("tools"));
  EXPECT_FALSE(probe.mentions("enable_thinking")) << "an attribute is no variable";
  EXPECT_FALSE(probe.mentions("documents")) << "text is no variable";
}

TEST(ChatTemplate, RendersOnManyThreadsAtOnce) {
  const ChatTemplate shared(
      "{% set ns = namespace(n=0) %}{% for i in range(1000) %}{% set ns.n = ns.n + i %}{% endfor %}"
      "{{ ns.n }}{{ messages | map(attribute='content') | join('|') | upper }}");
  const ChatInput input = conversation();
  std::vector<std::string> results(8);
  std::vector<std::thread> threads;
  for (std::string& result : results) threads.emplace_back([&] { result = shared.render(input); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& result : results) EXPECT_EQ(result, "499500BE BRIEF.|HI");
}

}  // namespace
}  // namespace sluice::text
