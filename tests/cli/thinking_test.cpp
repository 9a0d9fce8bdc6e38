// sluice run with a model that thinks: only the answer is printed where nobody watches, JSON has
// both, and a prompt that opens the thinking or mentions its tags does not confuse it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/scripted_model.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

using nlohmann::json;

class Thinking : public testing::Test {
 protected:
  Outcome run(const Args& flags) const {
    return run_sluice(Args{"run", "-m", dir / "scripted.gguf"} + flags);
  }
  json answer(const Args& flags) const {
    const Outcome outcome = run(Args{"-p", "hi", "--json"} + flags);
    EXPECT_TRUE(succeeded(outcome));
    return json::parse(outcome.out);
  }
  // The model of the test, which says the pieces; `ending` stands at the end of its template.
  void make(const std::vector<std::string>& pieces, const std::string& ending = "") const {
    ScriptedModel scripted(base, pieces);
    scripted.set("tokenizer.chat_template",
                 "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
                 "{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}<|im_end|>\n"
                 "{% endfor %}<|im_start|>assistant{{ '\n' }}" +
                     ending);
    scripted.write(dir / "scripted.gguf");
  }

  TempDir dir;
  const std::string base = make_model(dir / "m.gguf");
};

TEST_F(Thinking, IsToldFromTheAnswer) {
  make({"<th", "ink>", "hm,\n", "well", "</thi", "nk>\n\n", "yes"});
  EXPECT_EQ(answer({}).at("text"), "yes");
  EXPECT_EQ(answer({}).at("thinking"), "hm,\nwell");
  const Outcome printed = run({"-p", "hi"});
  EXPECT_EQ(printed.out, "yes\n");
  EXPECT_EQ(run({"-p", "hi", "--hide-thinking"}).out, "yes\n");
}

TEST_F(Thinking, MayBeOpenedByTheTemplate) {
  make({"hm", "</think>", "yes"}, "<think>{{ '\n' }}");
  EXPECT_EQ(answer({}).at("thinking"), "hm");
  EXPECT_EQ(answer({}).at("text"), "yes");
  EXPECT_EQ(run({"-p", "hi"}).out, "yes\n");
}

TEST_F(Thinking, ThatNeverEndsLeavesNoAnswer) {
  make({"hm", " well"}, "<think>{{ '\n' }}");
  EXPECT_EQ(answer({}).at("thinking"), "hm well");
  EXPECT_EQ(answer({}).at("text"), "");
  EXPECT_EQ(run({"-p", "hi"}).out, "");
}

TEST_F(Thinking, IsNotConfusedByAPromptOrAnAnswerAboutIt) {
  make({"A ", "<think>", " opens", " it."});
  EXPECT_EQ(run({"-p", "what is <think>?"}).out, "A <think> opens it.\n");
  make({"<think>", "x"});
  EXPECT_EQ(run({"-p", "a\n", "--raw"}).out, "<think>x\n");  // raw is raw
}

TEST_F(Thinking, CanBeSwitchedOffInTheTemplate) {
  make({"yes"},
       "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n"
       "{% endif %}");
  const Outcome as_it_is = run({"-p", "hi", "--verbose-prompt"});
  EXPECT_EQ(as_it_is.err.find("<think>"), std::string::npos) << as_it_is.err;
  const Outcome off = run({"-p", "hi", "--verbose-prompt", "--no-thinking"});
  EXPECT_NE(off.err.find("assistant\n<think>\n\n</think>\n\n\n---"), std::string::npos) << off.err;
}

TEST_F(Thinking, IsSwitchedByACommandOfTheChatFromTheNextMessageOn) {
  make({"yes"},
       "{% if enable_thinking is defined %}({{ 'on' if enable_thinking else 'off' }})"
       "{% endif %}");
  const Outcome chat =
      run_sluice_on("one\n/think off\ntwo\n/think on\nthree\n/think auto\nfour\n",
                    {"run", "-m", dir / "scripted.gguf", "--verbose-prompt", "--lines"});
  EXPECT_TRUE(succeeded(chat));
  size_t at = 0;
  for (const char* end :
       {"assistant\n\n---", "assistant\n(off)\n---", "assistant\n(on)\n---", "assistant\n\n---"}) {
    at = chat.err.find(end, at);
    ASSERT_NE(at, std::string::npos) << end << "\n" << chat.err;
    ++at;
  }
}

TEST_F(Thinking, OfATemplateThatAlwaysOpensItIsClosedAtOnce) {
  make({"yes"}, "<think>{{ '\n' }}");
  for (const Args& flags : {Args{"--no-thinking"}, Args{"--grammar", "root ::= [a-z]+"}}) {
    const Outcome off = run(Args{"-p", "hi", "--verbose-prompt"} + flags);
    EXPECT_NE(off.err.find("assistant\n<think>\n\n</think>\n\n\n---"), std::string::npos) << off;
    EXPECT_EQ(off.out, "yes\n");
  }
}

TEST_F(Thinking, LeavesWhatAGrammarAsksForAlone) {
  make({"<think>", "x", "</think>"});
  const json got = answer({"--grammar", "root ::= \"<think>x</think>\""});
  EXPECT_EQ(got.at("text"), "<think>x</think>");
  EXPECT_EQ(got.at("thinking"), "");
}

TEST_F(Thinking, StaysInTheConversationForTheTemplateToUse) {
  make({"<think>", "hm", "</think>\n\n", "yes"});
  const Outcome chat =
      run_sluice_on("one\n/save " + dir / "saved.json" + "\ntwo\n",
                    {"run", "-m", dir / "scripted.gguf", "--verbose-prompt", "--lines"});
  EXPECT_TRUE(succeeded(chat));
  EXPECT_NE(chat.err.find("<|im_start|>assistant\nyes(hm)<|im_end|>\n<|im_start|>user\ntwo"),
            std::string::npos)
      << chat.err;
  EXPECT_EQ(json::parse(read_file(dir / "saved.json")),
            (json{{{"role", "user"}, {"content", "one"}},
                  {{"role", "assistant"}, {"content", "yes"}, {"reasoning_content", "hm"}}}));
}

}  // namespace
}  // namespace sluice::test
