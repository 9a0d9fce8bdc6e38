// Dense models as a user meets them: a layer's network is placed as an expert would be, and nothing
// that is said about it speaks of experts and routing.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

using Json = nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string make_dense(const std::string& path, const Args& flags) {
  const Args args = {"synth", path, "--layers", "4", "--d-ff", "512", "--std", "0.05"};
  EXPECT_TRUE(succeeded(run_sluice(args + flags)));
  return path;
}

class Dense : public testing::TestWithParam<Args> {
 protected:
  Args run_args(const Args& flags) {
    return Args{"run", "-m", path,           "--tokens", prompt_of(8),
                "-n",  "20", "--ignore-eos", "-c",       "64"} +
           flags;
  }

  TempDir dir;
  const std::string path = make_dense(dir / "m.gguf", GetParam());
};

INSTANTIATE_TEST_SUITE_P(Models, Dense,
                         testing::Values(Args{"--arch", "qwen3"}, Args{"--arch", "qwen35"},
                                         Args{"--arch", "llama", "--dense"}),
                         [](const auto& test) { return test.param[1]; });

TEST_P(Dense, IsCalledDenseByInspect) {
  const std::string text = output_of({"inspect", path});
  EXPECT_TRUE(contains(text, "network       dense, width 512")) << text;
  EXPECT_TRUE(contains(text, "sluice can run it")) << text;
  EXPECT_FALSE(contains(text, "experts")) << text;
  const Json shape = Json::parse(output_of({"inspect", path, "--json"})).at("shape");
  EXPECT_EQ(shape.at("is_dense"), true);
  EXPECT_EQ(shape.at("d_ff"), 512);
}

TEST_P(Dense, IsPlannedByItsNetworks) {
  const Args hw = {"--hw", "vram=24GiB,ram=32GiB"};
  const std::string text = output_of(Args{"plan", "-m", path} + hw);
  EXPECT_TRUE(contains(text, "dense: the network of each layer")) << text;
  EXPECT_TRUE(contains(text, "4 slots, 100 % of 4 networks")) << text;
  EXPECT_FALSE(contains(text, "locality")) << text;
  const Json plan = Json::parse(output_of(Args{"plan", "-m", path, "--json"} + hw));
  EXPECT_EQ(plan.at("model").at("is_dense"), true);
  EXPECT_EQ(plan.at("mode"), "all_resident");
}

// Half of the networks on the device: the same two, at every token.
TEST_P(Dense, KeepsTheSameNetworksOnTheDevice) {
  const std::string expected = output_of(run_args({}));
  const Args half = {"--device", "sim", "--profile", "none", "--cache-slots", "2"};
  for (const Args& more : {Args{}, Args{"--miss-split", "1"}, Args{"--prefetch", "on"}}) {
    const Outcome run = run_sluice(run_args(half + more + Args{"--expert-stats"}));
    ASSERT_TRUE(succeeded(run));
    EXPECT_EQ(run.out, expected);
    EXPECT_TRUE(contains(run.err, "networks: expert cache on ")) << run.err;
    EXPECT_TRUE(contains(run.err, "2 of 4 networks")) << run.err;
    EXPECT_FALSE(contains(run.err, "locality")) << run.err;
  }
  const std::string out =
      output_of(run_args(half + Args{"--prefetch", "off", "--expert-stats-json", "-"}));
  const Json stats = Json::parse(out.substr(out.find('{')));
  EXPECT_EQ(stats.at("placement").at("is_dense"), true);
  EXPECT_EQ(stats.at("n_copies"), 2);  // before the first token
  for (const int i : {0, 1, 2, 3}) {
    const Json& layer = stats.at("layers").at(static_cast<size_t>(i));
    EXPECT_EQ(layer.at("n_calls"), 20);
    EXPECT_EQ(layer.at("n_hits"), i < 2 ? 20 : 0) << "layer " << i;
  }
}

TEST_P(Dense, TellsThatTheCpuComputedItsNetworks) {
  const Outcome run = run_sluice(run_args({"--device", "cpu", "--expert-stats"}));
  ASSERT_TRUE(succeeded(run));
  EXPECT_TRUE(contains(run.err, "networks: all networks computed by the CPU")) << run.err;
}

TEST(DenseSynth, RefusesFlagsThatDoNotFit) {
  const TempDir dir;
  const std::string path = dir / "m.gguf";
  EXPECT_TRUE(refused(run_sluice({"synth", path, "--arch", "olmoe", "--dense"}),
                      {"olmoe has no dense models", "--dense"}));
  EXPECT_TRUE(refused(run_sluice({"synth", path, "--arch", "qwen3", "--experts", "4"}),
                      {"a dense qwen3 has no experts", "--experts"}));
}

}  // namespace
}  // namespace sluice::test
