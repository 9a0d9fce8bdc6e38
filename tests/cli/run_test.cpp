// sluice run: the tokens it prints are the greedy ones, and it stops for the right reason.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/edit.h"
#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

using nlohmann::json;

std::string joined(const std::vector<int>& tokens) {
  std::string text;
  for (const int token : tokens) text += cat(text.empty() ? "" : ",", token);
  return text;
}

class Run : public testing::Test {
 protected:
  json continue_with(const Args& flags, const std::string& tokens = prompt_of(5)) {
    return json::parse(output_of(Args{"run", "-m", path, "--tokens", tokens, "--json"} + flags));
  }

  TempDir dir;
  std::string path = make_model(dir / "m.gguf", {{"--layers", "2"}, {"--type", "Q4_K_M"}});
};

TEST_F(Run, TakesTheMostProbableTokenAtEveryStep) {
  const json result = continue_with({"-n", "12", "--ignore-eos"});
  const std::vector<int> tokens = result.at("tokens");
  ASSERT_EQ(tokens.size(), 12u);
  const auto positions = logits_of(path, prompt_of(5) + "," + joined(tokens), {"--top", "1"});
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(tokens[i], positions.at(4 + i).top.at(0).first) << "new token " << i;
  }
}

TEST_F(Run, SaysInJsonWhyItStoppedAndWhatItDid) {
  const json result = continue_with({"-n", "3", "--ignore-eos"});
  EXPECT_EQ(result.at("stop_reason"), "length");
  const json& stats = result.at("stats");
  EXPECT_EQ(stats.at("n_prefill_tokens"), 5);
  EXPECT_EQ(stats.at("n_decode_tokens"), 3);
  EXPECT_GT(stats.at("prefill_seconds").get<double>(), 0.0);
  EXPECT_GT(stats.at("decode_seconds").get<double>(), 0.0);
  // 2 layers, keys and values, 2 heads of 64, 2 bytes, 4096 positions.
  EXPECT_EQ(stats.at("kv_bytes"), 2 * 2 * 2 * 64 * 2 * 4096);
}

TEST_F(Run, PrintsTheTokensOnStdoutAndTheStatisticsOnStderr) {
  const Outcome outcome =
      run_sluice({"run", "-m", path, "--tokens", prompt_of(5), "-n", "6", "--ignore-eos"});
  ASSERT_TRUE(succeeded(outcome));
  std::istringstream text(outcome.out);
  std::vector<int> tokens;
  for (int token = 0; text >> token;) tokens.push_back(token);
  EXPECT_EQ(tokens,
            continue_with({"-n", "6", "--ignore-eos"}).at("tokens").get<std::vector<int>>());
  EXPECT_TRUE(outcome.err.starts_with("stopped by length; prompt 5 tokens at ")) << outcome.err;
}

TEST_F(Run, GivesTheSameTokensEveryTimeAndHoweverThePromptIsCut) {
  const Args args = {"run", "-m", path, "--tokens", prompt_of(70), "-n", "20", "--ignore-eos"};
  const std::string text = output_of(args);
  EXPECT_GT(text.size(), 20u);
  EXPECT_EQ(output_of(args), text);
  for (const Args& flags : {Args{"--prefill-chunk", "1"}, Args{"--prefill-chunk", "7"},
                            Args{"--prefill-chunk", "64"}, Args{"-t", "1"}, Args{"-t", "2"}}) {
    EXPECT_EQ(output_of(args + flags), text) << testing::PrintToString(flags);
  }
}

TEST_F(Run, GeneratesNothingWhenAskedForNothing) {
  const json result = continue_with({"-n", "0"});
  EXPECT_EQ(result.at("tokens"), json::array());
  EXPECT_EQ(result.at("stop_reason"), "length");
  EXPECT_EQ(output_of({"run", "-m", path, "--tokens", "1", "-n", "0"}), "\n");
}

TEST_F(Run, StopsAtTheEndOfTextUnlessToldToGoOn) {
  const std::vector<int> tokens = continue_with({"-n", "8", "--ignore-eos"}).at("tokens");
  // The first token that did not come before becomes the end of text.
  size_t end = 1;
  while (end < tokens.size() &&
         std::ranges::count(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(end),
                            tokens[end]) > 0) {
    ++end;
  }
  ASSERT_LT(end, tokens.size()) << "the test's model repeats itself: " << joined(tokens);
  EditableModel model(path);
  model.set("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(tokens[end]));
  model.write(path);

  const json stopped = continue_with({"-n", "8"});
  EXPECT_EQ(stopped.at("stop_reason"), "end_of_text");
  const std::vector<int> shortened(tokens.begin(),
                                   tokens.begin() + static_cast<std::ptrdiff_t>(end));
  EXPECT_EQ(stopped.at("tokens").get<std::vector<int>>(), shortened);
  EXPECT_EQ(continue_with({"-n", "8", "--ignore-eos"}).at("tokens").get<std::vector<int>>(),
            tokens);
}

// The last token needs no place: nothing is computed after it.
TEST_F(Run, StopsInOrderWhenTheContextIsFull) {
  const std::vector<int> tokens = continue_with({"-n", "9", "--ignore-eos"}).at("tokens");
  const json result = continue_with({"-n", "100", "-c", "8", "--ignore-eos"});
  EXPECT_EQ(result.at("stop_reason"), "context_full");
  const std::vector<int> expected(tokens.begin(), tokens.begin() + 4);
  EXPECT_EQ(result.at("tokens").get<std::vector<int>>(), expected);

  const json full = continue_with({"-n", "100", "-c", "5", "--ignore-eos"});
  EXPECT_EQ(full.at("stop_reason"), "context_full");
  EXPECT_EQ(full.at("tokens").get<std::vector<int>>(), std::vector<int>{tokens[0]});
}

TEST_F(Run, WorksWithEveryTypeOfKvCache) {
  for (const char* type : {"f32", "f16", "bf16", "q8_0", "q4_0", "Q4_0"}) {
    const json result = continue_with({"-n", "4", "--ignore-eos", "-ctk", type, "-ctv", type});
    EXPECT_EQ(result.at("tokens").size(), 4u) << type;
  }
}

TEST(Program, TellsItsVersion) {
  const std::string text = output_of({"--version"});
  EXPECT_TRUE(text.starts_with("sluice ") && text.find('.') != std::string::npos) << text;
}

TEST(Program, HelpsWithEachCommand) {
  const std::string all = output_of({"--help"});
  for (const char* command : {"run", "inspect", "logits", "synth", "quantize"}) {
    EXPECT_NE(all.find(std::string("  ") + command + " "), std::string::npos) << all;
    const std::string text = output_of({command, "--help"});
    EXPECT_NE(text.find(std::string("sluice ") + command), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace sluice::test
