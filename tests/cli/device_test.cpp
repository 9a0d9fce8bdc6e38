// The flags about where a model is computed: placement never changes a number, `plan` and the
// commands that compute mean the same by them, and what makes no sense is refused.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/models.h"
#include "sluice/device.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

using Json = nlohmann::json;

class Device : public testing::Test {
 protected:
  Outcome run(const std::string& command, const Args& flags) {
    return run_sluice(Args{command, "-m", path} + flags);
  }
  std::string logits(const Args& flags) {
    const Args shape = {"--tokens", prompt_of(40), "-c", "64", "--json", "--all"};
    return output_of(Args{"logits", "-m", path} + shape + flags);
  }
  Json placement(const Args& flags) {
    const Args small = {"--tokens", prompt_of(20), "-n", "4", "-t", "1", "--profile", "none"};
    const std::string stats = dir / "stats.json";
    output_of(Args{"run", "-m", path, "--expert-stats-json", stats} + small + flags);
    return Json::parse(read_file(stats)).at("placement");
  }

  TempDir dir;
  const std::string path =
      make_model(dir / "m.gguf", {{"--layers", "3"}, {"--experts", "8"}, {"--type", "Q4_K_M"}});
};

const Args kSim = {"--device", "sim", "--profile", "none"};

TEST_F(Device, GivesTheSameLogitsWhereverExpertsAre) {
  for (const char* chunk : {"1", "7", "512"}) {
    const Args chunks = {"--prefill-chunk", chunk};
    const std::string cpu = logits(chunks + Args{"--device", "cpu"});
    EXPECT_TRUE(cpu == logits(chunks)) << "the CPU is not the default";
    const std::vector<Args> places = {
        {},
        {"--vram", "7500KiB"},
        {"--moe", "cache", "--vram", "6500KiB"},
        {"--moe", "gpu", "--vram", "5900KiB"},
        {"--cache-slots", "5"},
        {"--moe", "cpu"},
        {"--moe", "gpu"},
        {"--moe", "cache", "--cache-slots", "7"},
        {"-ngl", "1"},
        {"-ngl", "0"},
        {"--n-cpu-moe", "1", "--moe", "cache"},
        {"--pin-layers", "1"},
        {"--pin-layers", "1,", "--moe", "cache"},
        {"--cache-slots", "6", "--segmented"},
        {"--cache-slots", "6", "--prefetch", "on"},
        {"--cache-slots", "6", "--miss-split", "0.5"},
        {"--cache-slots", "6", "--hold-link", "0.5GB/s"},
        {"--cache-slots", "6", "--cache-policy", "lru"},
        {"--cache-slots", "6", "--sim-pin", "1MiB"},
        {"--cache-slots", "6", "--sim-link", "0.5GB/s", "--sim-delay", "50us"}};
    for (const Args& place : places) {
      EXPECT_TRUE(logits(chunks + kSim + place) == cpu)
          << "other numbers in chunks of " << chunk << " with " << testing::PrintToString(place);
    }
    EXPECT_TRUE(logits(chunks + Args{"--profile", "none", "--cache-slots", "6", "--sim-machine",
                                     "rtx4070ti-12g+64g-ddr5"}) == cpu)
        << "other numbers in chunks of " << chunk << " on a described machine";
  }
}

// Else `plan` would be about another device than the one that computes.
TEST_F(Device, IsPlannedAsItIsUsed) {
  const std::vector<Args> cases = {
      {"--device", "sim", "--vram", "6500KiB", "--moe", "cache"},
      {"--device", "sim", "--cache-slots", "7"},
      {"--device", "sim", "--moe", "cpu", "-ngl", "2"},
      {"--sim-machine", "rtx3060-12g+32g-ddr4"},
      {"--sim-machine", "rtx3060+32g-ddr4,link=2", "-ngl", "2"},
      {"--sim-machine", "rtx3060+32g-ddr4", "--vram", "519MiB", "--moe", "cache"}};
  for (const Args& flags : cases) {
    const Args same = Args{"-c", "64", "--prefill-chunk", "32"} + flags;
    const Json used = placement(same);
    const Json planned = Json::parse(
        output_of(Args{"plan", "-m", path, "-t", "1", "--profile", "none", "--json"} + same));
    const std::string what = testing::PrintToString(flags);
    EXPECT_EQ(used.at("mode"), planned.at("mode")) << what;
    EXPECT_EQ(used.at("n_gpu_layers"), planned.at("n_gpu_layers")) << what;
    EXPECT_EQ(used.at("n_slots"), planned.at("experts").at("n_slots")) << what;
    EXPECT_EQ(used.at("n_experts"), 24) << what;
  }
}

// Also where nobody says how long it is to be.
TEST_F(Device, IsPlannedForTheContextThatIsUsed) {
  for (const Args& flags : {Args{"--device", "sim"}, Args{"--device", "sim", "--moe", "cpu"},
                            Args{"--sim-machine", "rtx3060-12g+32g-ddr4"},
                            Args{"--device", "sim", "-c", "200", "-ctk", "q8_0"}}) {
    const Json ran = Json::parse(output_of(
        Args{"run", "-m", path, "--tokens", "1,2", "-n", "2", "--json", "--profile", "none"} +
        flags));
    const Json planned =
        Json::parse(output_of(Args{"plan", "-m", path, "--profile", "none", "--json"} + flags));
    EXPECT_EQ(planned.at("vram").at("kv_bytes").get<int64_t>() +
                  planned.at("host").at("kv_bytes").get<int64_t>(),
              ran.at("stats").at("kv_bytes"))
        << testing::PrintToString(flags);
  }
}

// One prompt, one answer: the first token comes when the session's device has read the prompt, and
// two runs take the same time to the last digit, which no real clock gives.
TEST_F(Device, ADescribedMachinesAnswerTakesItsTime) {
  const auto answer = [](const char* machine) {
    return Json::parse(output_of({"run", "-p", "7 plus 5", "-n", "6", "--json", "--profile", "none",
                                  "--sim-machine", machine}));
  };
  const Json first = answer("rtx3060+32g-ddr4");
  EXPECT_EQ(first.at("first_token_seconds"), first.at("stats").at("prefill_seconds"));
  EXPECT_EQ(answer("rtx3060+32g-ddr4").at("first_token_seconds"), first.at("first_token_seconds"));
  EXPECT_LT(first.at("first_token_seconds"),
            answer("rtx3060+32g-ddr4,gpu=1GB/s").at("first_token_seconds"));
}

TEST_F(Device, KeepsAProfileOfEveryModelUnlessToldNotTo) {
  ProcessOptions home;
  home.environment = {{"XDG_CACHE_HOME", dir / "cache"}};
  const auto run_with = [&](const Args& flags) {
    const Args all = {"run", "-m", path, "--tokens", "1,2,3", "-n", "4"};
    EXPECT_TRUE(succeeded(run_sluice(all + flags, home)));
  };
  const auto n_profiles = [&] {
    const std::filesystem::path folder = dir / "cache/sluice/profiles";
    if (!std::filesystem::exists(folder)) return std::ptrdiff_t{0};
    return std::distance(std::filesystem::directory_iterator(folder), {});
  };
  run_with({});
  const Args cached = {"--device", "sim", "--cache-slots", "6"};
  run_with(cached + Args{"--profile", "none"});
  run_with(cached + Args{"--profile", dir / "here.slrp"});
  EXPECT_EQ(n_profiles(), 0);
  EXPECT_TRUE(std::filesystem::exists(dir / "here.slrp"));
  run_with(cached);
  EXPECT_EQ(n_profiles(), 1);
}

// Where there is no GPU: cuda is refused by every command, and auto is the CPU.
TEST_F(Device, WithoutAGpuTheCpuComputesUnlessOneWasAskedFor) {
  if (!find_gpus().gpus.empty()) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(logits({"--device", "auto"}), logits({"--device", "cpu"}));
  EXPECT_EQ(logits({}), logits({"--device", "cpu"}));
  write_file(dir / "text", "some text");
  for (const char* command : {"run", "logits", "perplexity", "bench", "plan"}) {
    const Args needed = command == std::string("perplexity") ? Args{"-f", dir / "text"}
                        : command == std::string("logits")   ? Args{"--tokens", "1"}
                        : command == std::string("run")      ? Args{"--tokens", "1"}
                                                             : Args{};
    EXPECT_TRUE(refused(run(command, needed + Args{"--device", "cuda"}), {"GPU 0", "cannot"}))
        << command;
  }
}

TEST_F(Device, IsNeededByTheFlagsAboutIt) {
  const std::vector<Args> flags = {{"--vram", "1GiB"},        {"--pin-layers", "1"},
                                   {"--cache-slots", "1"},    {"--prefetch", "on"},
                                   {"--miss-split", "0.5"},   {"--segmented"},
                                   {"--profile", "p"},        {"--sim-link", "1GB/s"},
                                   {"--cache-policy", "lru"}, {"--hold-link", "1GB/s"}};
  for (const Args& flag : flags) {
    EXPECT_TRUE(
        misused(run("logits", Args{"--tokens", "1"} + flag), {flag[0], "add --device sim"}));
  }
  // What is given by habit asks for more of a GPU than there is, which is no mistake.
  for (const Args& flag : {Args{"--moe", "gpu"}, Args{"-ngl", "99"}, Args{"-ncmoe", "1"}}) {
    const Outcome outcome = run("logits", Args{"--tokens", "1"} + flag);
    EXPECT_TRUE(succeeded(outcome));
    EXPECT_NE(outcome.err.find("changes nothing: no GPU is used"), std::string::npos) << outcome;
  }
  for (const char* command : {"run", "logits", "perplexity", "bench", "plan"}) {
    const Args needed = command == std::string("logits")       ? Args{"--tokens", "1"}
                        : command == std::string("perplexity") ? Args{"-f", "x"}
                                                               : Args{};
    for (const char* sim : {"--sim-link", "--sim-delay", "--sim-pin"}) {
      EXPECT_TRUE(misused(run(command, needed + Args{sim, "1"}), {sim, "add --device sim"}))
          << command;
    }
  }
}

TEST_F(Device, RefusesWhatItDoesNotUnderstand) {
  const auto logits_with = [&](const Args& flags) {
    return run("logits", Args{"--tokens", "1"} + flags);
  };
  EXPECT_TRUE(misused(logits_with({"--device", "gpu"}), {"'gpu'", "auto, cpu, cuda or sim"}));
  EXPECT_TRUE(misused(logits_with(kSim + Args{"--prefetch", "yes"}), {"'yes'", "auto, on or off"}));
  EXPECT_TRUE(misused(logits_with(kSim + Args{"--miss-split", "1.5"}), {"--miss-split"}));
  EXPECT_TRUE(misused(logits_with({"--device", "cpu", "--sim-machine", "rtx3060+32g-ddr4"}),
                      {"--device cpu", "--sim-machine"}));
  EXPECT_TRUE(misused(logits_with({"--device", "cuda", "--sim-machine", "rtx3060+32g-ddr4"}),
                      {"--device cuda", "--sim-machine"}));
  EXPECT_TRUE(misused(logits_with({"--device", "cpu", "--gpu", "1"}), {"--gpu", "--device cuda"}));
  EXPECT_TRUE(misused(logits_with(kSim + Args{"--gpu", "1"}), {"--gpu", "--device cuda"}));
  EXPECT_TRUE(misused(logits_with({"--device", "cuda", "--gpu", "-1"}), {"--gpu"}));
  EXPECT_TRUE(
      misused(run("plan", {"--hw", "rtx3060+32g-ddr4", "--device", "sim"}), {"--hw", "--device"}));
  EXPECT_TRUE(
      refused(logits_with(kSim + Args{"--cache-policy", "best"}), {"'best'", "lru-global"}));
  EXPECT_TRUE(refused(logits_with(kSim + Args{"--sim-link", "fast"}), {"--sim-link is 'fast'"}));
  EXPECT_TRUE(refused(logits_with(kSim + Args{"--sim-delay", "1h"}), {"--sim-delay is '1h'"}));
  EXPECT_TRUE(refused(logits_with(kSim + Args{"--hold-link", "slow"}), {"--hold-link is 'slow'"}));
  EXPECT_TRUE(misused(logits_with(kSim + Args{"--hold-link", "1GB/s", "--miss-split", "0"}),
                      {"--hold-link", "--miss-split"}));
  EXPECT_TRUE(misused(logits_with({"--sim-machine", "rtx3060+32g-ddr4", "--hold-link", "1GB/s"}),
                      {"--hold-link", "--sim-machine"}));
  EXPECT_TRUE(refused(logits_with(kSim + Args{"--sim-pin", "4"}), {"--sim-pin is '4'"}));
  EXPECT_TRUE(refused(logits_with(kSim + Args{"--vram", "0B"}), {"--vram 0", "12GiB"}));
  EXPECT_TRUE(refused(logits_with({"--sim-machine", "cpu+32g-ddr4"}), {"has no GPU", "rtx"}));
  EXPECT_TRUE(refused(logits_with({"--sim-machine", "rtx3061"}), {"'rtx3061'", "rtx3060"}));
  EXPECT_TRUE(refused(logits_with(kSim + Args{"--pin-layers", "a"}), {"--pin-layers", "3-7"}));
  EXPECT_TRUE(refused(logits_with(kSim + Args{"--cache-slots", "25"}), {"25", "24"}));
}

}  // namespace
}  // namespace sluice::test
