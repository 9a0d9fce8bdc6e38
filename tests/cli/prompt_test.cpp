// sluice run with one prompt: where the text may come from, what the model is given, when the
// answer ends, and what is printed where.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/scripted_model.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

using nlohmann::json;

// "--- prompt, N tokens\n<text>\n---\n" in front of the line about speed.
std::string prompt_in(const Outcome& outcome) {
  const size_t begin = outcome.err.find(" tokens\n");
  const size_t end = outcome.err.find("\n---\n");
  if (begin == std::string::npos || end == std::string::npos) return "no prompt: " + outcome.err;
  return outcome.err.substr(begin + 8, end - begin - 8);
}

std::string chat_ml(const std::string& user) {
  return "<|im_start|>user\n" + user + "<|im_end|>\n<|im_start|>assistant\n";
}

class Prompt : public testing::Test {
 protected:
  Outcome run(const Args& flags) const { return run_sluice(Args{"run", "-m", model} + flags); }
  std::string answer(const Args& flags) const {
    return output_of(Args{"run", "-m", model} + flags);
  }
  json answer_json(const Args& flags) const { return json::parse(answer(flags + Args{"--json"})); }
  // What a model says that follows the script.
  std::string scripted(const std::vector<std::string>& pieces) const {
    return ScriptedModel(model, pieces).write(dir / "scripted.gguf");
  }

  TempDir dir;
  const std::string model = make_model(dir / "m.gguf");
};

TEST_F(Prompt, MayComeFromAFlagAFileOrStandardInput) {
  const Args flags = {"--seed", "1", "-n", "20", "--verbose-prompt"};
  const Outcome expected = run(flags + Args{"-p", "hällo\nthere"});
  ASSERT_TRUE(succeeded(expected));
  EXPECT_EQ(prompt_in(expected), chat_ml("hällo\nthere"));
  write_file(dir / "text", "hällo\nthere\n");  // the last line's end is no part of it
  const Args run_model = Args{"run", "-m", model} + flags;
  for (const Outcome& outcome :
       {run(flags + Args{"hällo\nthere"}), run(flags + Args{"-f", dir / "text"}),
        run_sluice_on("hällo\nthere\n", run_model + Args{"-"}),
        run_sluice_on("hällo\nthere", run_model + Args{"-p", "-"}),
        run_sluice_on("hällo\nthere\n", run_model + Args{"-f", "-"})}) {
    EXPECT_TRUE(succeeded(outcome));
    EXPECT_EQ(prompt_in(outcome), prompt_in(expected)) << outcome;
    EXPECT_EQ(outcome.out, expected.out) << outcome;
  }
}

TEST_F(Prompt, GoesThroughTheChatTemplateUnlessItIsRaw) {
  EXPECT_EQ(prompt_in(run({"-p", "hi", "-n", "0", "--verbose-prompt"})), chat_ml("hi"));
  EXPECT_EQ(prompt_in(run({"-p", "hi", "-n", "0", "--verbose-prompt", "--raw"})), "hi");
  EXPECT_EQ(prompt_in(run({"-p", "hi", "-n", "0", "--verbose-prompt", "--system", "be brief"})),
            "<|im_start|>system\nbe brief<|im_end|>\n" + chat_ml("hi"));
  // The control tokens of the template are single tokens: 3 of them and 18 bytes.
  EXPECT_EQ(answer_json({"-p", "hi", "-n", "0"}).at("stats").at("n_prefill_tokens"), 21);
  EXPECT_EQ(answer_json({"-p", "hi", "-n", "0", "--raw"}).at("stats").at("n_prefill_tokens"), 2);
}

TEST_F(Prompt, HoldsAControlTokenAsTextUnlessItIsToBeParsed) {
  const auto n_prompt_tokens = [&](const Args& flags) {
    const Outcome outcome = run(Args{"-n", "1", "--verbose-prompt", "-p", "<|im_end|>"} + flags);
    EXPECT_TRUE(succeeded(outcome));
    const std::string before = "--- prompt, ";
    return std::stoi(outcome.err.substr(outcome.err.find(before) + before.size()));
  };
  // Each character is a token of this model.
  EXPECT_EQ(n_prompt_tokens({}), n_prompt_tokens({"--parse-special"}) + 9);
  EXPECT_EQ(n_prompt_tokens({"--raw"}), 1);
  EXPECT_EQ(prompt_in(run({"-n", "1", "--verbose-prompt", "-p", "<|im_end|>"})),
            chat_ml("<|im_end|>"));
}

TEST_F(Prompt, OfALlamaModelBeginsWithOneBos) {
  EditableModel edited(model);
  edited.set("tokenizer.ggml.add_bos_token", true);
  edited.set("tokenizer.ggml.bos_token_id", uint32_t{256});
  edited.set("tokenizer.ggml.add_eos_token", true);  // but never before an answer
  edited.set("tokenizer.chat_template",
             std::string("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}:"));
  edited.write(dir / "edited.gguf");
  const auto n_tokens = [&](const Args& flags) {
    const Args args = Args{"run", "-m", dir / "edited.gguf", "-n", "0", "--json"} + flags;
    return json::parse(output_of(args)).at("stats").at("n_prefill_tokens").get<int>();
  };
  EXPECT_EQ(n_tokens({"-p", "hi", "--raw"}), 3);
  EXPECT_EQ(n_tokens({"-p", "<|endoftext|>hi", "--raw"}), 3);
  EXPECT_EQ(n_tokens({"-p", "hi"}), 5);  // bos h i eos :
}

TEST_F(Prompt, IsAnsweredOnStdoutWithTheSpeedOnStderr) {
  const std::string said = scripted({"H", "i", " you\n\nand ", "m", "\x1b[31m", "\xff", "e"});
  const Outcome outcome = run_sluice({"run", "-m", said, "-p", "hi"});
  ASSERT_TRUE(succeeded(outcome));
  // No terminal: nothing is left out, and a line's end is added.
  EXPECT_EQ(outcome.out,
            "Hi you\n\nand m\x1b[31m\xef\xbf\xbd"
            "e\n");
  EXPECT_TRUE(outcome.err.starts_with("[21 prompt tokens, ")) << outcome.err;
  EXPECT_NE(outcome.err.find(" s to the first token, 7 tokens at "), std::string::npos);
  EXPECT_TRUE(outcome.err.ends_with(" tokens/s (end_of_text)]\n")) << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1);
}

TEST_F(Prompt, IsAnsweredInOneJsonObjectOnDemand) {
  const std::string said = scripted({"H", "i", " you"});
  const Outcome outcome = run_sluice({"run", "-m", said, "-p", "hi", "--json"});
  ASSERT_TRUE(succeeded(outcome));
  EXPECT_EQ(outcome.err, "");
  const auto object = nlohmann::ordered_json::parse(outcome.out);
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"text", "thinking", "tokens", "stop_reason", "seed",
                                            "first_token_seconds", "stats"}));
  EXPECT_EQ(object.at("text"), "Hi you");
  EXPECT_EQ(object.at("thinking"), "");
  EXPECT_EQ(object.at("tokens"), (json{'H', 'i', 261}));
  EXPECT_EQ(object.at("stop_reason"), "end_of_text");
  EXPECT_GT(object.at("first_token_seconds").get<double>(), 0.0);
  EXPECT_GT(object.at("stats").at("prefill_tokens_per_second").get<double>(), 0.0);
  EXPECT_GT(object.at("stats").at("decode_tokens_per_second").get<double>(), 0.0);
  const Args seeded = {"run", "-m", said, "-p", "hi", "--json", "--seed", "5"};
  EXPECT_EQ(json::parse(output_of(seeded)).at("seed"), 5);
  EXPECT_EQ(object.at("stats").at("n_prefill_tokens"), 21);
}

TEST_F(Prompt, IsAnsweredUntilOneOfTheStopStrings) {
  const std::string said = scripted({"a", "b", "one END", "c", " t", "w", "o", "ENDE", "!"});
  const auto until = [&](const Args& stops) {
    return json::parse(output_of(Args{"run", "-m", said, "-p", "x", "--json"} + stops));
  };
  EXPECT_EQ(until({}).at("text"), "abone ENDc twoENDE!");
  EXPECT_EQ(until({"--stop", "END"}).at("text"), "abone ");
  EXPECT_EQ(until({"--stop", "END"}).at("stop_reason"), "stop");
  EXPECT_EQ(until({"--stop", "two", "--stop", "ENDc"}).at("text"), "abone ");
  EXPECT_EQ(until({"--stop", "E!", "--stop", "nowhere"}).at("text"), "abone ENDc twoEND");
  EXPECT_EQ(until({"--stop", "abo"}).at("text"), "");
  EXPECT_EQ(until({"--stop", ""}).at("stop_reason"), "end_of_text");
  EXPECT_EQ(until({"--stop", "ENDX"}).at("text"), "abone ENDc twoENDE!");
}

TEST_F(Prompt, IsAnsweredWithAsManyTokensAsAskedFor) {
  const json none = answer_json({"-p", "hi", "-n", "0"});
  EXPECT_EQ(none.at("tokens"), json::array());
  EXPECT_EQ(none.at("stop_reason"), "length");
  EXPECT_EQ(answer({"-p", "hi", "-n", "0"}), "");
  EXPECT_EQ(answer_json({"-p", "hi", "-n", "7", "--ignore-eos"}).at("tokens").size(), 7u);
  // 21 of 40 places are the prompt's, and the last token needs none.
  const json all = answer_json({"-p", "hi", "-n", "-1", "-c", "40", "--ignore-eos"});
  EXPECT_EQ(all.at("tokens").size(), 20u);
  EXPECT_EQ(all.at("stop_reason"), "context_full");
  EXPECT_EQ(answer_json({"-p", "hi", "-c", "40", "--ignore-eos"}).at("tokens").size(), 20u);
}

TEST_F(Prompt, FromAFileMayHoldAnyCharacter) {
  write_file(dir / "text", std::string("a\0b\x1b[31m", 8));
  EXPECT_EQ(prompt_in(run({"-f", dir / "text", "--raw", "-n", "0", "--verbose-prompt"})),
            std::string("a\0b\x1b[31m", 8));
}

TEST_F(Prompt, ThatIsEmptyIsRefused) {
  write_file(dir / "empty", "");
  write_file(dir / "newline", "\n");
  for (const Args& flags :
       {Args{"-p", ""}, Args{""}, Args{"-f", dir / "empty"}, Args{"-f", dir / "newline"}, Args{"-"},
        Args{"-p", "", "--raw"}, Args{"-p", "", "--json"}}) {
    EXPECT_TRUE(refused(run(flags), {"the prompt is empty; expected some text"}));
  }
}

TEST_F(Prompt, ThatIsNotUtf8IsRefusedWithThePlace) {
  write_file(dir / "latin", "h\xe4llo");
  EXPECT_TRUE(refused(run({"-p", "h\xe4llo"}),
                      {"the prompt is not valid UTF-8 from byte 1 on; expected text in UTF-8"}));
  EXPECT_TRUE(refused(run({"-f", dir / "latin", "--raw"}), {"the prompt is not valid UTF-8"}));
  EXPECT_TRUE(refused(run({"-p", "a", "--system", "\xff"}),
                      {"the system message is not valid UTF-8 from byte 0 on"}));
  EXPECT_TRUE(
      refused(run({"-p", "a", "--stop", "\xff"}), {"the text of --stop is not valid UTF-8"}));
}

TEST_F(Prompt, ThatDoesNotFitIntoTheContextIsRefused) {
  const std::string text(100, 'x');
  EXPECT_TRUE(refused(run({"-p", text, "-c", "64"}),
                      {"the prompt has 119 tokens and the context holds 64", "-c"}));
  EXPECT_TRUE(refused(run({"-p", text, "-c", "99", "--raw"}), {"100 tokens", "holds 99"}));
  const json full = answer_json({"-p", text, "-c", "100", "--raw", "--ignore-eos"});
  EXPECT_EQ(full.at("tokens").size(), 1u);
}

TEST_F(Prompt, FromAFileThatIsNotThereIsRefused) {
  EXPECT_TRUE(refused(run({"-f", dir / "none"}), {"none cannot be opened (No such file"}));
  EXPECT_TRUE(refused(run({"-f", dir.path()}), {"cannot be read (Is a directory)"}));
}

TEST_F(Prompt, FlagsThatContradictEachOtherAreNamed) {
  EXPECT_TRUE(misused(run({"-p", "a", "-f", "b"}), {"--prompt", "--file"}));
  EXPECT_TRUE(misused(run({"-p", "a", "--tokens", "1"}), {"--prompt", "--tokens"}));
  EXPECT_TRUE(misused(run({"-p", "a", "--raw", "--system", "b"}), {"--raw", "--system"}));
  EXPECT_TRUE(misused(run({"-p", "a", "-n", "-2"}), {"--predict", "-2", "expected -1 or more"}));
  EXPECT_TRUE(
      refused(run({"--raw", "--lines"}), {"--raw and --json are for one prompt; give it with -p"}));
  EXPECT_TRUE(refused(run({"--json", "--lines"}), {"--raw and --json are for one prompt"}));
}

// The template of a model file, and what may be wrong with it.
class Template : public Prompt {
 protected:
  std::string with_template(const std::string& text) {
    EditableModel edited(model);
    edited.set("tokenizer.chat_template", text);
    return edited.write(dir / "edited.gguf");
  }
  Outcome ask(const std::string& path, const Args& flags = {}) {
    return run_sluice(Args{"run", "-m", path, "-p", "hi", "-n", "0"} + flags);
  }
};

TEST_F(Template, ThatRefusesTheConversationSaysWhy) {
  const std::string path = with_template("{{ raise_exception('no \x1b[31m system\\nhere') }}");
  EXPECT_TRUE(refused(ask(path), {"chat template, line 1", "the template refuses: no ", "system"}));
  EXPECT_TRUE(succeeded(ask(path, {"--raw"})));
}

TEST_F(Template, ThatIsBrokenSaysWhere) {
  const std::string path = with_template("one\n{% if x %}never closed");
  EXPECT_TRUE(refused(ask(path), {"edited.gguf: chat template, line 2", "--raw"}));
  EXPECT_TRUE(succeeded(ask(path, {"--raw"})));
}

TEST_F(Template, ThatMakesNothingIsNoPrompt) {
  EXPECT_TRUE(refused(ask(with_template("")), {"the prompt has no tokens; expected some text"}));
}

TEST_F(Template, ThatIsMissingLeavesPlainText) {
  EditableModel edited(model);
  edited.remove_key("tokenizer.chat_template");
  const std::string path = edited.write(dir / "edited.gguf");
  EXPECT_TRUE(refused(ask(path), {"edited.gguf has no chat template", "--raw"}));
  EXPECT_TRUE(
      refused(run_sluice({"run", "-m", path, "--lines"}), {"edited.gguf has no chat template"}));
  EXPECT_TRUE(succeeded(ask(path, {"--raw"})));
}

TEST_F(Template, OfAnUnknownPreTokenizerIsNotReached) {
  EditableModel edited(model);
  edited.set("tokenizer.ggml.pre", std::string("new-one"));
  const std::string path = edited.write(dir / "edited.gguf");
  EXPECT_TRUE(refused(ask(path), {"edited.gguf: pre-tokenizer 'new-one' is not known"}));
  EXPECT_TRUE(refused(ask(path, {"--raw"}), {"pre-tokenizer 'new-one' is not known"}));
}

}  // namespace
}  // namespace sluice::test
