// sluice run: how tokens are chosen. Seeds, temperature, bias, the advice of the model file, and
// answers that a grammar or a schema holds to its form.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "cli/scripted_model.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

using nlohmann::json;

class Sampling : public testing::Test {
 protected:
  Outcome run(const Args& flags) const {
    return run_sluice(Args{"run", "-m", model, "-p", "hi"} + flags);
  }
  json answer(const Args& flags) const { return answer_of(model, flags); }
  json answer_of(const std::string& path, const Args& flags) const {
    return json::parse(output_of(Args{"run", "-m", path, "-p", "hi", "--json"} + flags));
  }
  std::vector<int> tokens(const Args& flags) const {
    return answer(Args{"-n", "24", "--ignore-eos"} + flags).at("tokens");
  }
  std::string write(const std::string& name, const std::string& text) const {
    write_file(dir / name, text);
    return dir / name;
  }

  TempDir dir;
  const std::string model = make_model(dir / "m.gguf");
};

TEST_F(Sampling, IsRepeatedBySeedAndByNothingElse) {
  std::set<std::vector<int>> answers;
  for (const char* seed : {"1", "2", "3", "4294967294"}) {
    const std::vector<int> first = tokens({"--seed", seed});
    EXPECT_EQ(tokens({"--seed", seed, "--prefill-chunk", "3"}), first) << "seed " << seed;
    answers.insert(first);
  }
  EXPECT_EQ(answers.size(), 4u);
  // Without a seed, or with -1 for one, it is drawn.
  answers = {tokens({}), tokens({}), tokens({"--seed", "-1"}), tokens({"--seed", "-1"})};
  EXPECT_EQ(answers.size(), 4u);
}

TEST_F(Sampling, AtTemperatureZeroTakesTheBestToken) {
  const json prompt =
      json::parse(output_of({"tokenize", "-m", model, "--json", "-p",
                             "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"}));
  std::string ids;
  for (const int id : prompt.at("ids")) ids += cat(ids.empty() ? "" : ",", id);
  const json greedy = json::parse(
      output_of({"run", "-m", model, "--tokens", ids, "-n", "24", "--ignore-eos", "--json"}));
  // Ends of a turn are only forbidden to the sampler, so the two agree as long as none comes.
  EXPECT_EQ(tokens({"--temp", "0"}), greedy.at("tokens").get<std::vector<int>>());
  EXPECT_EQ(tokens({"--temp", "-1", "--seed", "7"}), tokens({"--temp", "0"}));
  EXPECT_EQ(tokens({"--top-k", "1"}), tokens({"--temp", "0"}));
}

TEST_F(Sampling, TakesTheModelFilesAdviceWhereNoFlagIsGiven) {
  EditableModel edited(model);
  edited.set("general.sampling.temp", 0.0f);
  edited.set("tokenizer.ggml.suppress_tokens", std::vector<int32_t>{tokens({"--temp", "0"}).at(0)});
  const std::string greedy = edited.write(dir / "edited.gguf");
  const json first = answer_of(greedy, {"-n", "8", "--seed", "1"});
  EXPECT_EQ(first.at("tokens"), answer_of(greedy, {"-n", "8", "--seed", "2"}).at("tokens"));
  EXPECT_NE(first.at("tokens").at(0), tokens({"--temp", "0"}).at(0));
  EXPECT_NE(first.at("tokens"),
            answer_of(greedy, {"-n", "8", "--seed", "2", "--temp", "1"}).at("tokens"));

  edited.set("general.sampling.top_p", 1.5f);
  EXPECT_TRUE(refused(run_sluice({"run", "-m", edited.write(dir / "wrong.gguf"), "-p", "hi"}),
                      {"wrong.gguf: key 'general.sampling.top_p' is 1.5; expected a number"}));
}

TEST_F(Sampling, NeverTakesATokenThatTheFileSuppresses) {
  // Ids without a token, which real files have, cannot be sampled: they are left out, not refused.
  const int best = tokens({"--temp", "0"}).at(0);
  EditableModel edited(model);
  edited.set("tokenizer.ggml.suppress_tokens", std::vector<int32_t>{-1, best, 1 << 20});
  const std::string path = edited.write(dir / "edited.gguf");
  EXPECT_NE(answer_of(path, {"-n", "1", "--temp", "0"}).at("tokens").at(0), best);
}

TEST_F(Sampling, ObeysALogitBias) {
  EXPECT_EQ(answer({"-n", "3", "--logit-bias", "97+100"}).at("text"), "aaa");
  EXPECT_EQ(answer({"-n", "3", "--logit-bias", "97+1e3", "--logit-bias", "97-inf", "--logit-bias",
                    "98+100"})
                .at("text"),
            "bbb");
  for (const int token : tokens({"--logit-bias", cat(tokens({"--temp", "0"}).at(0), "-inf")})) {
    EXPECT_NE(token, tokens({"--temp", "0"}).at(0));
  }
  EXPECT_TRUE(refused(run({"--logit-bias", "320+1"}), {"token 320; expected an id from 0 to 319"}));
  for (const char* wrong : {"97", "97*2", "a+1", "97+inf", "97+nan", "97+", "97+1x", "+1", ""}) {
    EXPECT_TRUE(refused(run({"--logit-bias", wrong}),
                        {cat("logit bias '", wrong, "'; expected a token id and an amount")}));
  }
}

TEST_F(Sampling, IgnoringTheEndGoesOn) {
  const std::string scripted = ScriptedModel(model, {"a", "b"}).write(dir / "scripted.gguf");
  EXPECT_EQ(answer_of(scripted, {"-n", "9"}).at("stop_reason"), "end_of_text");
  const json on = answer_of(scripted, {"-n", "9", "--ignore-eos"});
  EXPECT_EQ(on.at("stop_reason"), "length");
  EXPECT_EQ(on.at("tokens").size(), 9u);
  for (const int token : on.at("tokens")) EXPECT_NE(token, kEndOfTurn);
}

TEST_F(Sampling, WithANumberOutOfRangeIsRefused) {
  for (const auto& [flag, value, name] : std::vector<std::array<std::string, 3>>{
           {"--temp", "nan", "temp is nan; expected a finite number"},
           {"--top-p", "1.1", "top_p is 1.1; expected a number from 0 to 1"},
           {"--min-p", "-0.1", "min_p is -0.1; expected a number from 0"},
           {"--typical-p", "2", "typical_p is 2"},
           {"--xtc-probability", "7", "xtc_probability is 7"},
           {"--repeat-penalty", "0", "repeat_penalty is 0; expected a number above 0"},
           {"--repeat-last-n", "-2", "repeat_last_n is -2"},
           {"--dry-base", "0.5", "dry_base is 0.5; expected 1 or more"},
           {"--mirostat", "3", "mirostat is 3; expected 0 (off), 1 or 2"},
           {"--samplers", "top_k;best", "best"}}) {
    EXPECT_TRUE(refused(run({flag, value}), {name})) << flag;
  }
  EXPECT_TRUE(misused(run({"--top-k", "1.5"}), {"--top-k", "1.5"}));
  EXPECT_TRUE(misused(run({"--temp", "warm"}), {"--temp", "warm"}));
  EXPECT_TRUE(misused(run({"--seed", "-2"}), {"--seed", "-2", "-1 or more"}));
  EXPECT_TRUE(misused(run({"--seed", "x"}), {"--seed", "x"}));
}

TEST_F(Sampling, WithEveryStageAndMirostatWorks) {
  const Args all = {"--dynatemp-range", "0.3", "--typical-p",       "0.9",
                    "--top-n-sigma",    "2",   "--xtc-probability", "0.5",
                    "--repeat-penalty", "1.2", "--dry-multiplier",  "1",
                    "--dry-breaker",    "\n",  "--samplers",        "dry;top_k;xtc;temperature"};
  EXPECT_EQ(tokens(all + Args{"--seed", "5"}), tokens(all + Args{"--seed", "5"}));
  EXPECT_EQ(tokens({"--mirostat", "2", "--seed", "5"}), tokens({"--mirostat", "2", "--seed", "5"}));
  EXPECT_NE(tokens({"--seed", "5"}), tokens({"--seed", "5", "--repeat-penalty", "3"}));
}

TEST_F(Sampling, FollowsAGrammar) {
  const std::string grammar = "root ::= (\"yes\" | \"no\") \", \" [0-9]{3}";
  const std::string file = write("grammar.gbnf", grammar + "\n");
  for (const Args& flags : {Args{"--grammar", grammar}, Args{"--grammar-file", file}}) {
    const json got = answer(flags + Args{"--seed", "3"});
    const std::string text = got.at("text");
    EXPECT_TRUE(text.starts_with("yes, ") || text.starts_with("no, ")) << text;
    EXPECT_EQ(text.find_first_not_of("0123456789", text.find(' ') + 1), std::string::npos) << text;
    EXPECT_EQ(text.size(), text.find(' ') + 4) << text;
    EXPECT_EQ(got.at("stop_reason"), "end_of_text");
  }
  // Letters beyond ASCII are several tokens each.
  EXPECT_EQ(answer({"--grammar", "root ::= \"ä你😀\""}).at("text"), "ä你😀");
}

TEST_F(Sampling, FollowsAJsonSchema) {
  const std::string schema =
      R"({"type":"object","properties":{"ok":{"type":"boolean"},"n":{"enum":[1,2,3]}},)"
      R"("required":["ok","n"],"additionalProperties":false})";
  const std::string file = "@" + write("schema.json", schema);
  for (const std::string& flag : {schema, file}) {
    for (const char* seed : {"1", "2", "3"}) {
      const json got = answer({"--json-schema", flag, "--seed", seed});
      const json value = json::parse(got.at("text").get<std::string>());
      EXPECT_TRUE(value.at("ok").is_boolean()) << value;
      EXPECT_TRUE(value.at("n") >= 1 && value.at("n") <= 3) << value;
      EXPECT_EQ(value.size(), 2u) << value;
    }
  }
}

TEST_F(Sampling, WithAWrongGrammarOrSchemaIsRefused) {
  EXPECT_TRUE(refused(run({"--grammar", "root ::= \"a"}), {"grammar, line 1, column"}));
  EXPECT_TRUE(refused(run({"--grammar", "root ::= nowhere"}), {"grammar", "nowhere"}));
  EXPECT_TRUE(refused(run({"--grammar", ""}), {"grammar"}));
  EXPECT_TRUE(refused(run({"--grammar-file", dir / "none"}), {"none cannot be opened"}));
  EXPECT_TRUE(refused(run({"--grammar-file", write("bad", "x")}), {"grammar, line 1"}));
  EXPECT_TRUE(refused(run({"-j", "{\"type\":"}), {"the JSON schema is not valid JSON"}));
  EXPECT_TRUE(refused(run({"-j", R"({"type":"what"})"}), {"JSON schema, #", "\"what\""}));
  EXPECT_TRUE(refused(run({"-j", ""}), {"JSON schema"}));
  EXPECT_TRUE(refused(run({"-j", "@" + dir / "none"}), {"none cannot be opened"}));
  // The end of the turn is how a grammar ends.
  EXPECT_TRUE(refused(run({"--grammar", "root ::= \"a\"", "--logit-bias", cat(kEndOfTurn, "-inf"),
                           "--logit-bias", "256-inf", "--json"}),
                      {"no token may follow: the grammar, logit bias"}));
}

TEST_F(Sampling, FlagsThatContradictEachOtherAreNamed) {
  EXPECT_TRUE(misused(run({"--grammar", "x", "--ignore-eos"}), {"--grammar", "--ignore-eos"}));
  EXPECT_TRUE(misused(run({"-j", "{}", "--ignore-eos"}), {"--json-schema", "--ignore-eos"}));
  EXPECT_TRUE(misused(run({"-j", "{}", "--grammar", "x"}), {"--json-schema", "--grammar"}));
  EXPECT_TRUE(misused(run({"--grammar-file", "f", "--grammar", "x"}), {"--grammar-file"}));
  // --tokens is greedy and prints ids: what is about choosing and text has no place there.
  for (const Args& flags : {Args{"--temp", "1"}, Args{"-j", "{}"}, Args{"--stop", "x"},
                            Args{"--system", "x"}, Args{"--raw"}, Args{"--seed", "1"}}) {
    const Args all = Args{"run", "-m", model, "--tokens", "1"} + flags;
    EXPECT_TRUE(misused(run_sluice(all), {"--tokens", "excludes"}));
  }
}

}  // namespace
}  // namespace sluice::test
