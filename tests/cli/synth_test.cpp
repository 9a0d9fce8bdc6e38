// sluice synth: models of every architecture and type come out sound, and the same flags give the
// same bytes.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/models.h"
#include "quant/type.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

TEST(Synth, GivesTheSameBytesForTheSameSeed) {
  const TempDir dir;
  make_model(dir / "a.gguf", {{"--type", "Q4_K_M"}, {"--seed", "7"}});
  make_model(dir / "b.gguf", {{"--type", "Q4_K_M"}, {"--seed", "7"}});
  EXPECT_TRUE(read_file(dir / "a.gguf") == read_file(dir / "b.gguf"));
}

TEST(Synth, GivesTheSameBytesOnAnyNumberOfThreads) {
  const TempDir dir;
  make_model(dir / "a.gguf", {{"--type", "Q6_K"}, {"-t", "1"}});
  make_model(dir / "b.gguf", {{"--type", "Q6_K"}, {"-t", "3"}});
  EXPECT_TRUE(read_file(dir / "a.gguf") == read_file(dir / "b.gguf"));
}

TEST(Synth, GivesOtherWeightsForAnotherSeed) {
  const TempDir dir;
  make_model(dir / "a.gguf", {{"--seed", "7"}});
  make_model(dir / "b.gguf", {{"--seed", "8"}});
  const auto a = all_logprobs(dir / "a.gguf", "1,2,3");
  const auto b = all_logprobs(dir / "b.gguf", "1,2,3");
  EXPECT_GT(mean_divergence(a, b), 0.1);
}

TEST(Synth, SaysInJsonWhatItWrote) {
  const TempDir dir;
  const std::string path = dir / "m.gguf";
  const auto report = nlohmann::json::parse(output_of({"synth", path, "--layers", "1", "--json"}));
  EXPECT_EQ(report.at("path"), path);
  EXPECT_EQ(report.at("bytes"), std::filesystem::file_size(path));
}

TEST(Synth, WritesJsonForAPathThatIsNotUtf8) {
  const TempDir dir;
  const std::string path = dir / "\xff.gguf";
  const auto report = nlohmann::json::parse(output_of({"synth", path, "--layers", "1", "--json"}));
  EXPECT_EQ(report.at("bytes"), std::filesystem::file_size(path));
}

TEST(Synth, ReplacesAnOlderFile) {
  const TempDir dir;
  write_file(dir / "m.gguf", "old");
  make_model(dir / "m.gguf");
  EXPECT_EQ(read_file(dir / "m.gguf").substr(0, 4), "GGUF");
  EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"m.gguf"}));
}

TEST(Synth, RefusesShapesThatMakeNoModelAndLeavesNothingBehind) {
  const TempDir dir;
  const std::string path = dir / "m.gguf";
  const auto with = [&](const Args& flags) { return run_sluice(Args{"synth", path} + flags); };
  EXPECT_TRUE(refused(with({"--arch", "gpt5"}), {"'gpt5'", "qwen3moe qwen2moe olmoe llama"}));
  EXPECT_TRUE(refused(with({"--type", "Q9_K"}), {"'Q9_K'", "Q4_K_M"}));
  EXPECT_TRUE(refused(with({"--vocab", "100"}), {"100 tokens", "at least"}));
  EXPECT_TRUE(refused(with({"--std", "0"}), {"standard deviation of 0", "more than 0"}));
  EXPECT_TRUE(refused(with({"--std", "nan"}), {"standard deviation of nan", "more than 0"}));
  EXPECT_TRUE(refused(with({"--layers", "5000"}), {path, "5000", "at most 4096"}));
  EXPECT_TRUE(refused(with({"--d-model", "2000000"}), {path, "2000000", "1048576"}));
  EXPECT_TRUE(refused(with({"--heads", "5", "--kv-heads", "2"}), {path, "5 heads over 2"}));
  EXPECT_TRUE(refused(with({"--heads", "300"}), {path, "key_length", "is 0"}));
  EXPECT_TRUE(refused(with({"--head-dim", "33"}), {path, "rope", "33", "even"}));
  EXPECT_TRUE(refused(with({"--experts", "4", "--experts-used", "5"}), {path, "5 of 4 experts"}));
  EXPECT_TRUE(refused(with({"--experts", "2000"}), {path, "2000", "1024"}));
  EXPECT_TRUE(refused(with({"--rope-base", "0"}), {path, "rope base 0", "above 1"}));
  EXPECT_TRUE(refused(with({"--eps", "-1"}), {path, "epsilon is -1"}));
  EXPECT_TRUE(refused(with({"--arch", "olmoe", "--kv-heads", "2"}), {path, "2 key-value heads"}));
  EXPECT_EQ(names_in(dir.path()), std::vector<std::string>());
}

class SynthOfEvery : public testing::TestWithParam<std::tuple<const char*, std::string>> {};

// The shape is awkward enough to be no accident: neither one layer nor one head, and of hybrids a
// layer of each kind.
TEST_P(SynthOfEvery, KindIsSoundAndRuns) {
  const auto& [architecture, type] = GetParam();
  const TempDir dir;
  const std::string path = dir / "m.gguf";
  make_model(
      path,
      {{"--arch", architecture}, {"--type", type}, {"--layers", "2"}, {"--attention-every", "2"}});

  const auto info =
      nlohmann::json::parse(output_of({"inspect", path, "--json", "--check-tensors", "--tensors"}));
  EXPECT_EQ(info.at("architecture"), architecture);
  EXPECT_EQ(info.at("runs"), true) << info.dump(1);
  const std::string most = type.substr(0, type.find("_M"));  // of a mix: its base
  bool attends = false;
  for (const auto& tensor : info.at("tensors")) {
    attends |= tensor.at("name") == "blk.1.attn_q.weight";
    if (tensor.at("name") == "blk.0.ffn_gate_exps.weight") {
      EXPECT_EQ(tensor.at("type"), most);
    }
  }
  EXPECT_TRUE(attends) << "hybrids in one of the two layers";

  const LogProbs logprobs = all_logprobs(path, "1,2,300");
  ASSERT_EQ(logprobs.size(), 3u);
  for (size_t pos = 0; pos < logprobs.size(); ++pos) {
    ASSERT_EQ(logprobs[pos].size(), size_t{kVocab});
    double sum = 0.0;
    for (const double logprob : logprobs[pos]) sum += std::exp(logprob);
    EXPECT_NEAR(sum, 1.0, 1e-5) << "at position " << pos;
    const auto [least, most_likely] = std::ranges::minmax(logprobs[pos]);
    EXPECT_GT(most_likely - least, 1.0) << "hardly a distribution at position " << pos;
  }
}

std::vector<std::string> type_names() {
  std::vector<std::string> names = {"Q4_K_M", "Q5_K_M"};
  for (const quant::Type type : quant::supported_types()) names.emplace_back(type_name(type));
  return names;
}

INSTANTIATE_TEST_SUITE_P(Kinds, SynthOfEvery,
                         testing::Combine(testing::Values("qwen3moe", "qwen2moe", "olmoe", "llama",
                                                          "qwen35moe", "qwen3next"),
                                          testing::ValuesIn(type_names())),
                         [](const auto& test) {
                           return std::get<0>(test.param) + std::string("_") +
                                  std::get<1>(test.param);
                         });

}  // namespace
}  // namespace sluice::test
