// What the program tells of experts: statistics that add up, traces that simulate reads, and
// benchmarks with a routing that is not the model's own.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

using Json = nlohmann::json;

constexpr int kLayers = 3;
constexpr int kUsed = 2;

class ExpertStats : public testing::Test {
 protected:
  // 8 prompt tokens and 20 new ones.
  Args run_args(const Args& flags) {
    return Args{"run", "-m", path,           "--tokens", prompt_of(8),
                "-n",  "20", "--ignore-eos", "-c",       "64"} +
           flags;
  }
  Args bench_args(const Args& flags) {
    return Args{"bench", "-m", path, "-p", "0", "-n", "24", "-d", "0", "-r", "1", "-t", "1"} +
           flags;
  }
  Json json_file(const std::string& file) {
    std::ifstream in(file);
    return Json::parse(in, nullptr, false);
  }
  std::string bytes_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  Json simulated(const std::string& trace, const std::string& budget) {
    return Json::parse(output_of(
        {"simulate", "--trace", trace, "--policy", "lru", "--budget", budget, "--json"}))[0];
  }

  TempDir dir;
  const std::string path =
      make_model(dir / "m.gguf", {{"--layers", "3"}, {"--experts", "8"}, {"--type", "Q4_K_M"}});
};

const Args kSixSlots = {"--device", "sim", "--profile", "none", "--cache-slots", "6"};

// The numbers of calls: layers, and by where their experts were.
void expect_sums(const Json& stats, int n_tokens) {
  EXPECT_EQ(stats.at("n_tokens"), n_tokens);
  ASSERT_EQ(stats.at("layers").size(), size_t{kLayers});
  std::map<std::string, int64_t> sums;
  for (const Json& layer : stats.at("layers")) {
    int64_t n_found = 0;
    for (const char* place : {"n_hits", "n_staged", "n_link", "n_cpu"}) {
      n_found += layer.at(place).get<int64_t>();
      sums[place] += layer.at(place).get<int64_t>();
    }
    EXPECT_EQ(n_found, layer.at("n_calls"));
    EXPECT_EQ(layer.at("n_calls"), n_tokens * kUsed);
    EXPECT_GT(layer.at("seconds"), 0.0);
  }
  for (const auto& [place, sum] : sums) EXPECT_EQ(stats.at("total").at(place), sum) << place;
  EXPECT_EQ(stats.at("total").at("n_calls"), n_tokens * kUsed * kLayers);
}

TEST_F(ExpertStats, AddUpToTheCallsOfEveryToken) {
  const Args whole = {"--device", "sim", "--profile", "none", "-ngl", "3"};
  const std::vector<Args> places = {kSixSlots,
                                    kSixSlots + Args{"--miss-split", "1"},
                                    kSixSlots + Args{"--prefetch", "on"},
                                    kSixSlots + Args{"--segmented"},
                                    whole + Args{"--moe", "gpu"},
                                    whole + Args{"--moe", "cpu"},
                                    {"--sim-machine", "rtx3060+32g-ddr4", "--profile", "none"}};
  for (const Args& place : places) {
    SCOPED_TRACE(testing::PrintToString(place));
    const std::string file = dir / "stats.json";
    const Args to_file = {"--expert-stats-json", file};
    EXPECT_EQ(output_of(run_args(place + to_file)), output_of(run_args({})));
    expect_sums(json_file(file), 20);
  }
}

TEST_F(ExpertStats, SayWhereExpertsWere) {
  const auto total = [&](const Args& place) {
    const Args flags = {"--device", "sim", "--profile", "none", "--expert-stats-json", "-"};
    const std::string out = output_of(run_args(flags + place));
    const Json sums = Json::parse(out.substr(out.find('{'))).at("total");
    EXPECT_EQ(sums.at("n_calls"), 20 * kUsed * kLayers);
    return sums;
  };
  const Json resident = total({"--moe", "gpu"});
  EXPECT_EQ(resident.at("n_hits"), resident.at("n_calls"));
  EXPECT_EQ(resident.at("link_bytes"), 0);
  const Json host = total({"--moe", "cpu", "-ngl", "3"});
  EXPECT_EQ(host.at("n_cpu"), host.at("n_calls"));
  const Json split = total({"--cache-slots", "6", "--miss-split", "1"});
  EXPECT_GT(split.at("n_link"), 0);
  EXPECT_EQ(split.at("n_cpu"), 0);
  EXPECT_GT(split.at("link_bytes"), 0);
}

TEST_F(ExpertStats, AreATableOnStderr) {
  const Outcome outcome = run_sluice(run_args(kSixSlots + Args{"--expert-stats"}));
  ASSERT_TRUE(succeeded(outcome));
  EXPECT_EQ(outcome.out, output_of(run_args({})));
  for (const char* part : {"expert cache on ", "6 of 24 experts", "tokens in ", "hits %",
                           "by the locality of routing, assumed", "link MB/tok", "\n      2 ",
                           "\n    all ", "cache: "}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " is not in\n" << outcome.err;
  }
  const Outcome cpu = run_sluice(run_args({"--expert-stats"}));
  EXPECT_NE(cpu.err.find("all experts computed by the CPU"), std::string::npos) << cpu;
}

TEST_F(ExpertStats, StandInABenchmarkBesideWhatWasPredicted) {
  const Json report = Json::parse(output_of(bench_args(kSixSlots + Args{"--json"})));
  const Json& run = report.at("runs").at(0);
  // A test to warm up, and one that counts; the first of each one's 24 tokens is its prompt.
  expect_sums(run.at("experts"), 46);
  const Json& placement = run.at("experts").at("placement");
  EXPECT_EQ(placement.at("mode"), "expert_cache");
  EXPECT_GT(placement.at("predicted_decode"), 0.0);
  EXPECT_EQ(run.at("tests").at(0).at("predicted_tokens_per_second"),
            placement.at("predicted_decode"));
  EXPECT_FALSE(report.contains("route_trace"));
  const std::string table = output_of(bench_args(kSixSlots));
  for (const std::string part :
       {"predicted by the locality of routing, assumed", "expert cache on "}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << " is not in\n" << table;
  }
  EXPECT_FALSE(Json::parse(output_of(bench_args({"--json"})))["runs"][0].contains("experts"));
  EXPECT_TRUE(refused(run_sluice(bench_args(kSixSlots + Args{"-t", "2", "--expert-stats"})),
                      {"one number of threads"}));
}

// By the clock of the machine that is described, whatever ours does meanwhile.
TEST_F(ExpertStats, AreInTheTimeOfADescribedMachine) {
  const auto rate = [&](const std::string& link) {
    const Json report = Json::parse(
        output_of(bench_args({"--json", "--sim-machine", "rtx3060+32g-ddr4,link=" + link,
                              "--miss-split", "1", "--cache-slots", "3"})));
    return report["runs"][0]["tests"][0]["tokens_per_second"]["median"].get<double>();
  };
  EXPECT_DOUBLE_EQ(rate("20"), rate("20"));
  EXPECT_GT(rate("20"), 2.0 * rate("0.2"));
}

TEST_F(ExpertStats, GoWithATraceThatSimulateReads) {
  const std::string trace = dir / "t.slrt";
  const std::string again = dir / "again.slrt";
  EXPECT_EQ(output_of(run_args({"--trace-out", trace})), output_of(run_args({})));
  const Json row = simulated(trace, "50");
  EXPECT_EQ(row.at("n_tokens"), 20);
  EXPECT_GT(row.at("hit_rate"), 0.0);
  output_of(run_args(kSixSlots + Args{"--trace-out", again}));
  EXPECT_TRUE(bytes_of(trace) == bytes_of(again)) << "a device routes otherwise";

  EXPECT_TRUE(refused(run_sluice(run_args({"--trace-out", dir / "none/t"})), {"none/t"}));
  // As CSV it is the same routing.
  output_of(run_args({"--trace-out", dir / "t.csv"}));
  EXPECT_TRUE(read_file(dir / "t.csv").starts_with("# model=")) << read_file(dir / "t.csv");
  const auto replayed = [&](const std::string& path) {
    return output_of({"simulate", "--trace", path, "--budget", "30", "--json"});
  };
  EXPECT_EQ(replayed(dir / "t.csv"), replayed(trace));
  EXPECT_FALSE(std::filesystem::exists(dir / "t.slrt.partial"));
}

class RouteTrace : public ExpertStats {
 protected:
  // A benchmark that routes as `trace` says and records what was used.
  Outcome rerouted(const std::string& trace, const Args& flags = {}) {
    return run_sluice(bench_args(Args{"--route-trace", trace} + flags));
  }
  // In so many steps: `first` and those behind it in every layer, one further each time, and from
  // the beginning after five.
  std::string csv(int n_layers, int n_used, int first, int n_steps = 1) {
    std::string text = cat("# model=x n_layer=", n_layers, " n_expert=16 n_expert_used=", n_used,
                           "\nturn,phase,step,layer,slot,expert,weight\n");
    for (int s = 0; s < n_steps; ++s) {
      for (int l = 0; l < n_layers; ++l) {
        for (int u = 0; u < n_used; ++u) {
          text += cat("0,1,", s, ",", l, ",", u, ",", first + s % 5 + u, ",0.5\n");
        }
      }
    }
    const std::string file = dir / "r.csv";
    write_file(file, text);
    return file;
  }
};

TEST_F(RouteTrace, IsUsedInThePlaceOfTheModelsRoutingAndSaidSo) {
  for (const Args& place : {Args{}, kSixSlots, kSixSlots + Args{"--segmented"}}) {
    SCOPED_TRACE(testing::PrintToString(place));
    const std::string recorded = dir / "recorded.slrt";
    const std::string trace = csv(kLayers + 1, kUsed + 1, 3);
    const Outcome outcome = rerouted(trace, place + Args{"--json", "--trace-out", recorded});
    ASSERT_TRUE(succeeded(outcome));
    const Json report = Json::parse(outcome.out);
    EXPECT_EQ(report.at("route_trace").at("path"), trace);
    EXPECT_EQ(report.at("route_trace").at("n_steps"), 1);
    // Two of eight experts, always the same: a quarter of the slots finds them all.
    EXPECT_EQ(simulated(recorded, "25").at("hit_rate"), 1.0);
    const std::string table = rerouted(trace, place).out;
    EXPECT_NE(table.find(cat("routing from ", trace, " (1 steps), not the model's own")),
              std::string::npos)
        << table;
  }
}

TEST_F(RouteTrace, BeginsAgainAfterItsEnd) {
  const auto recorded_with = [&](const Args& flags) {
    const std::string recorded = dir / "recorded.slrt";
    output_of(bench_args(Args{"--trace-out", recorded} + flags));
    return bytes_of(recorded);
  };
  const std::string own = recorded_with({});
  const std::string round = recorded_with({"--route-trace", csv(kLayers, kUsed, 0, 5)});
  EXPECT_TRUE(round != own) << "the model's own routing";
  EXPECT_TRUE(recorded_with({"--route-trace", csv(kLayers, kUsed, 0, 24)}) == round);
  EXPECT_TRUE(recorded_with({"--route-trace", csv(kLayers, kUsed, 1, 24)}) != round);
}

TEST_F(RouteTrace, TakesWhatSimulateGenerates) {
  const std::string trace = dir / "g.slrt";
  output_of({"simulate", "--generate", "30", "-m", path, "--write-trace", trace});
  const Outcome outcome = rerouted(trace, {"--json"});
  ASSERT_TRUE(succeeded(outcome));
  EXPECT_EQ(Json::parse(outcome.out).at("route_trace").at("n_steps"), 24);
}

TEST_F(RouteTrace, IsRefusedWhereItDoesNotFitTheModel) {
  EXPECT_TRUE(refused(rerouted(csv(kLayers - 1, kUsed, 0)), {"2 layers", "at least 2 in 3"}));
  EXPECT_TRUE(refused(rerouted(csv(kLayers, kUsed - 1, 0)), {"routes 1 experts", "at least 2"}));
  EXPECT_TRUE(refused(rerouted(csv(kLayers, kUsed, 7)), {"expert 8 in layer 0", "0 to 7"}));
  EXPECT_TRUE(refused(rerouted(path), {path}));
  EXPECT_TRUE(refused(rerouted(dir / "none.csv"), {"none.csv"}));
}

}  // namespace
}  // namespace sluice::test
