// Fields of requests for text, as structs; wrong ones are refused by name.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "server/api_error.h"
#include "server/requests/chat_fields.h"
#include "server/requests/generation_fields.h"
#include "server/requests/ollama_fields.h"

namespace sluice::server {
namespace {

GenerationFields generation(const char* body) {
  const Json json = parse_body(body);
  return read_openai_generation(Fields(json));
}

ChatFields chat(const std::string& body) {
  const Json json = parse_body(body);
  return read_chat(Fields(json));
}

template <typename Read>
std::string param_of(Read read, const char* body) {
  try {
    read(body);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.param();
  }
  return "(taken)";
}

TEST(GenerationFields, AllSamplingFieldsArrive) {
  const GenerationFields f = generation(
      R"({"temperature": 0.5, "top_p": 0.9, "top_k": 7, "min_p": 0.1, "seed": 42,
          "frequency_penalty": 0.25, "presence_penalty": -0.5, "repeat_penalty": 1.1,
          "dry_multiplier": 0.8, "dry_sequence_breakers": ["\n", "x"], "ignore_eos": true,
          "max_tokens": 9, "max_completion_tokens": 10, "stop": "end", "n": 3, "stream": true,
          "stream_options": {"include_usage": true}, "unknown": {"is": "ignored"}})");
  EXPECT_EQ(f.sampling.temp, 0.5f);
  EXPECT_EQ(f.sampling.top_p, 0.9f);
  EXPECT_EQ(f.sampling.top_k, 7);
  EXPECT_EQ(f.sampling.min_p, 0.1f);
  EXPECT_EQ(f.sampling.seed, 42U);
  EXPECT_EQ(f.sampling.frequency_penalty, 0.25f);
  EXPECT_EQ(f.sampling.presence_penalty, -0.5f);
  EXPECT_EQ(f.sampling.repeat_penalty, 1.1f);
  EXPECT_EQ(f.sampling.dry_multiplier, 0.8f);
  EXPECT_EQ(f.dry_breakers, (std::vector<std::string>{"\n", "x"}));
  EXPECT_TRUE(f.sampling.ignore_eos);
  EXPECT_EQ(f.n_tokens, 10);
  EXPECT_EQ(f.stops, std::vector<std::string>{"end"});
  EXPECT_EQ(f.n_choices, 3);
  EXPECT_TRUE(f.stream);
  EXPECT_TRUE(f.include_usage);
}

TEST(GenerationFields, LeavesOpenWhatWasNotSaid) {
  const GenerationFields f = generation("{}");
  EXPECT_FALSE(f.sampling.temp);
  EXPECT_FALSE(f.sampling.seed);
  EXPECT_EQ(f.n_tokens, -1);
  EXPECT_FALSE(f.n_top_logprobs);
  EXPECT_FALSE(f.constraint);
}

TEST(GenerationFields, LogitBiasInBothForms) {
  const auto object = generation(R"({"logit_bias": {"12": -100, "7": 1.5}})").sampling.logit_bias;
  ASSERT_EQ(object.size(), 2U);
  EXPECT_EQ(object[0].id, 12);
  EXPECT_EQ(object[0].bias, -100.0f);
  const auto pairs = generation(R"({"logit_bias": [[12, false]]})").sampling.logit_bias;
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].bias, -INFINITY);
}

TEST(GenerationFields, Logprobs) {
  EXPECT_EQ(generation(R"({"logprobs": true, "top_logprobs": 5})").n_top_logprobs, 5);
  EXPECT_EQ(generation(R"({"logprobs": true})").n_top_logprobs, 0);
  EXPECT_EQ(generation(R"({"logprobs": 3})").n_top_logprobs, 3);
  EXPECT_FALSE(generation(R"({"logprobs": false})").n_top_logprobs);
}

TEST(GenerationFields, ResponseFormats) {
  using Kind = Constraint::Kind;
  EXPECT_EQ(generation(R"({"response_format": {"type": "text"}})").constraint.kind, Kind::none);
  EXPECT_EQ(generation(R"({"response_format": {"type": "json_object"}})").constraint.kind,
            Kind::json_object);
  const Constraint schema = generation(R"({"response_format": {"type": "json_schema", "json_schema":
                     {"name": "x", "schema": {"type": "object"}}}})")
                                .constraint;
  EXPECT_EQ(schema.kind, Kind::json_schema);
  EXPECT_EQ(schema.text, R"({"type":"object"})");
  EXPECT_EQ(generation(R"({"grammar": "root ::= \"a\""})").constraint.kind, Kind::gbnf);
}

TEST(GenerationFields, WrongOnesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"temperature": "warm"})", "temperature"},
      {R"({"top_p": 1.5})", "top_p"},
      {R"({"top_k": 1.5})", "top_k"},
      {R"({"top_k": 1e20})", "top_k"},
      {R"({"seed": 1.5})", "seed"},
      {R"({"n": 0})", "n"},
      {R"({"n": 1000})", "n"},
      {R"({"max_tokens": -2})", "max_tokens"},
      {R"({"logprobs": true, "top_logprobs": 21})", "top_logprobs"},
      {R"({"top_logprobs": 2})", "top_logprobs"},
      {R"({"stop": 1})", "stop"},
      {R"({"stream": "yes"})", "stream"},
      {R"({"logit_bias": {"x": 1}})", "logit_bias"},
      {R"({"logit_bias": 1})", "logit_bias"},
      {R"({"response_format": {"type": "xml"}})", "response_format.type"},
      {R"({"response_format": {"type": "json_schema"}})", "response_format.json_schema"},
      {R"({"response_format": {"type": "json_object"}, "grammar": "root ::= \"a\""})", "grammar"},
      {R"({"timeout": 0})", "timeout"},
  };
  for (const auto& [body, param] : cases) EXPECT_EQ(param_of(generation, body), param) << body;
}

TEST(ChatFields, MessagesBecomeWhatTemplatesWant) {
  const ChatFields c = chat(
      R"({"messages": [{"role": "developer", "content": "Be brief."},
          {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
          {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
            "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
          {"role": "tool", "tool_call_id": "c1", "content": "2"}]})");
  EXPECT_EQ(c.messages[0]["role"], "system");
  EXPECT_EQ(c.messages[1]["content"], "ab");
  EXPECT_EQ(c.messages[2]["content"], "");
  EXPECT_EQ(c.messages[2]["tool_calls"][0]["function"]["arguments"]["x"], 1);
  EXPECT_EQ(c.messages[3]["tool_call_id"], "c1");
}

TEST(ChatFields, ToolChoices) {
  using Kind = ToolChoice::Kind;
  const auto choice = [](const std::string& text) {
    return chat(R"({"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function",
                    "function": {"name": "f"}}], "tool_choice": )" +
                text + "}")
        .tool_choice;
  };
  EXPECT_EQ(choice("\"auto\"").kind, Kind::automatic);
  EXPECT_EQ(choice("\"none\"").kind, Kind::none);
  EXPECT_EQ(choice("\"required\"").kind, Kind::required);
  EXPECT_EQ(choice(R"({"type": "function", "function": {"name": "f"}})").name, "f");
  EXPECT_THROW(choice(R"({"type": "function", "function": {"name": "g"}})"), ApiError);
}

TEST(ChatFields, ThinkingByTemplateOrEffort) {
  const std::string begin = R"({"messages": [{"role": "user", "content": "a"}], )";
  EXPECT_EQ(chat(begin + R"("chat_template_kwargs": {"enable_thinking": true}})").enable_thinking,
            true);
  EXPECT_EQ(chat(begin + R"("reasoning_effort": "none"})").enable_thinking, false);
  EXPECT_EQ(chat(begin + R"("reasoning_effort": "low"})").enable_thinking, true);
}

TEST(ChatFields, WrongOnesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "messages"},
      {R"({"messages": []})", "messages"},
      {R"({"messages": "hi"})", "messages"},
      {R"({"messages": ["hi"]})", "messages[0]"},
      {R"({"messages": [{"content": "a"}]})", "messages[0].role"},
      {R"({"messages": [{"role": "king", "content": "a"}]})", "messages[0].role"},
      {R"({"messages": [{"role": "user"}]})", "messages[0].content"},
      {R"({"messages": [{"role": "user", "content": 1}]})", "messages[0].content"},
      {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
       "messages[0].content[0].type"},
      {R"({"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f",
          "arguments": "[1]"}}]}]})",
       "messages[0].tool_calls[0].function.arguments"},
      {R"({"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function"}]})",
       "tools[0].function"},
      {R"({"messages": [{"role": "user", "content": "a"}], "tool_choice": "required"})",
       "tool_choice"},
  };
  for (const auto& [body, param] : cases) EXPECT_EQ(param_of(chat, body), param) << body;
}

TEST(OllamaFields, KeepAliveIsATime) {
  const auto seconds = [](const char* body) {
    const Json json = parse_body(body);
    return read_keep_alive(Fields(json));
  };
  EXPECT_EQ(seconds("{}"), std::nullopt);
  EXPECT_EQ(seconds(R"({"keep_alive": 30})"), 30.0);
  EXPECT_EQ(seconds(R"({"keep_alive": -1})"), -1.0);
  EXPECT_EQ(seconds(R"({"keep_alive": "0"})"), 0.0);
  EXPECT_EQ(seconds(R"({"keep_alive": "10s"})"), 10.0);
  EXPECT_EQ(seconds(R"({"keep_alive": "5m"})"), 300.0);
  EXPECT_EQ(seconds(R"({"keep_alive": "24h"})"), 86400.0);
  for (const char* wrong : {R"({"keep_alive": ""})", R"({"keep_alive": "m"})",
                            R"({"keep_alive": "5 days"})", R"({"keep_alive": true})"}) {
    EXPECT_THROW(seconds(wrong), ApiError) << wrong;
  }
}

}  // namespace
}  // namespace sluice::server
