// sluice bench: its figures belong together and to the file, its forms hold them all, and what
// cannot be measured is refused. How fast anything is, is not tested here.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

using Json = nlohmann::json;

Json bench(const Args& flags) {
  return Json::parse(output_of(Args{"bench", "--json"} + flags), nullptr, false);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Layers 0 and 1 of the demo model hold v and the experts' down in Q4_K, layers 2 and 3 in Q6_K:
// 144 or 210 bytes for 256 values.
TEST(Bench, CountsTheBytesAndMultiplyAddsOfTheDemoModel) {
  const Json report = bench({"-p", "8,24", "-n", "16", "-d", "0,100", "-r", "2", "-t", "1"});
  const Json& model = report.at("model");
  constexpr int kNormsAndRouter = 4 * (256 + 256 + 64 + 64 + 256 * 32);
  constexpr int kTrunk = kNormsAndRouter + 144 * (256 + 128 + 256);  // q, k, output
  constexpr int kExperts = 4 * 144 * (256 + 256);                    // gate, up
  constexpr int kExpertBytes = 4 * kExperts + 2 * 4 * (144 + 210) * 256;
  constexpr int kWeightBytes = 4 * kTrunk + 2 * (144 + 210) * 128 + kExpertBytes  //
                               + 4 * 256 + 210 * 2048  // output norm and output
                               + 144;                  // a row of the embedding
  EXPECT_EQ(model.at("expert_bytes_per_token"), kExpertBytes);
  EXPECT_EQ(model.at("weight_bytes_per_token"), kWeightBytes);
  EXPECT_EQ(kWeightBytes, 2936464);
  EXPECT_EQ(model.at("kv_bytes_per_position"), 4 * 2 * 64 * 2 * 2);  // layers, heads, k and v, f16
  EXPECT_EQ(model.at("layer_multiply_adds"), 4 * (196608 + 640 + 8192 + 4 * 3 * 65536));
  EXPECT_EQ(model.at("output_multiply_adds"), 2048 * 256 + 256);

  const Json& run = report.at("runs").at(0);
  ASSERT_EQ(run.at("tests").size(), 6u);
  const auto test = [&](size_t i) { return run.at("tests").at(i); };
  EXPECT_EQ(test(0).at("multiply_adds_per_token"), 3967488 + 524544 / 8.0);
  EXPECT_EQ(test(1).at("multiply_adds_per_token"), 3967488 + 524544 / 24.0);
  EXPECT_EQ(test(2).at("bytes_per_token"), kWeightBytes + 2048 * 8.5);  // 1 to 16 positions
  EXPECT_EQ(test(5).at("bytes_per_token"), kWeightBytes + 2048 * 108.5);
}

void expect_consistent(const Json& test, const Json& run, size_t n_repeats) {
  const Json& rate = test.at("tokens_per_second");
  ASSERT_EQ(test.at("seconds").size(), n_repeats);
  for (const double seconds : test.at("seconds")) {
    EXPECT_GT(seconds, 0.0);
    EXPECT_GE(test.at("n_tokens").get<double>() / seconds, rate.at("min").get<double>() * 0.9999);
    EXPECT_LE(test.at("n_tokens").get<double>() / seconds, rate.at("max").get<double>() * 1.0001);
  }
  const double median = rate.at("median");
  EXPECT_LE(rate.at("min"), median);
  EXPECT_GE(rate.at("max"), median);
  EXPECT_GE(rate.at("deviation"), 0.0);
  if (test.at("kind") == "decode") {
    const double gbps = median * test.at("bytes_per_token").get<double>() / 1e9;
    EXPECT_NEAR(test.at("gbps"), gbps, 1e-6 * gbps);
    EXPECT_NEAR(test.at("share_of_read"), gbps / run.at("read_gbps").get<double>(), 1e-6 * gbps);
  } else {
    const double tops = 2.0 * median * test.at("multiply_adds_per_token").get<double>() / 1e12;
    EXPECT_NEAR(test.at("tops"), tops, 1e-6 * tops);
    EXPECT_NEAR(test.at("share_of_int8"), tops / run.at("int8_tops").get<double>(), 1e-3 * tops);
  }
}

TEST(Bench, MeasuresEveryLengthAtEveryDepthWithEveryNumberOfThreads) {
  const Json report = bench({"-p", "16", "-n", "4,8", "-d", "32,0", "-r", "3", "-t", "2,1"});
  ASSERT_EQ(report.at("runs").size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Json& run = report.at("runs")[i];
    EXPECT_EQ(run.at("n_threads"), i == 0 ? 2 : 1);
    EXPECT_GT(run.at("int8_tops"), 0.001);
    for (const char* when : {"read_gbps_before", "read_gbps_after"}) {
      EXPECT_GT(run.at(when), 0.1) << when;
      EXPECT_LE(run.at(when), run.at("read_gbps")) << when;
    }
    std::string tests;
    for (const Json& test : run.at("tests")) {
      tests += cat(test.at("kind").get<std::string>(), " ", test.at("n_tokens"), " at ",
                   test.at("depth"), ", ");
      expect_consistent(test, run, 3);
    }
    EXPECT_EQ(tests,
              "prefill 16 at 0, decode 4 at 0, decode 8 at 0, "
              "prefill 16 at 32, decode 4 at 32, decode 8 at 32, ");
  }
  EXPECT_EQ(report.at("n_ctx"), 48);
  EXPECT_GE(report.at("machine").at("n_cores"), 1);
  EXPECT_GT(report.at("load").at("seconds"), 0.0);
}

TEST(Bench, SaysWhetherPagesWereColdOrWarm) {
  const TempDir dir;
  const std::string path = make_model(dir / "m.gguf");
  const Args flags = {"-m", path, "-p", "0", "-n", "1", "-d", "0", "-r", "1", "-t", "1"};
  const Json warm = bench(flags).at("load");
  EXPECT_EQ(warm.at("pages"), "warm");  // just written
  EXPECT_EQ(warm.at("dropped"), false);
  const Json dropped = bench(flags + Args{"--cold"}).at("load");
  EXPECT_EQ(dropped.at("dropped"), true);
  // A file system in memory keeps its pages; then the report must not claim otherwise.
  const double share = dropped.at("cached_share");
  EXPECT_EQ(dropped.at("pages"), share >= 0.99 ? "warm" : share <= 0.01 ? "cold" : "partly warm");
}

TEST(Bench, PrintsATableForPeopleAndOneInMarkdown) {
  const Args flags = {"-p", "16", "-n", "4", "-d", "0", "-r", "1", "-t", "1"};
  const std::string table = output_of(Args{"bench"} + flags);
  for (const char* part :
       {"demo-attn.gguf", "pages ", "1 threads on", "GB/s (", "TOPS (", "2.80 MiB of weights",
        "prefill 16", "decode 4", "% of reads", "predicted"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << " is not in\n" << table;
  }
  std::vector<std::string> rows = lines_of(output_of(Args{"bench", "--md"} + flags));
  std::erase_if(rows, [](const std::string& line) { return !line.starts_with("|"); });
  ASSERT_EQ(rows.size(), 4u);
  for (const std::string& row : rows) {
    EXPECT_EQ(std::ranges::count(row, '|'), std::ranges::count(rows[0], '|')) << row;
    EXPECT_TRUE(row.ends_with("|")) << row;
  }
  EXPECT_TRUE(rows[1].starts_with("| --- | ---: |")) << rows[1];
  EXPECT_TRUE(rows[2].starts_with("| prefill 16 | 0 | 1 | ")) << rows[2];
  EXPECT_TRUE(rows[3].starts_with("| decode 4 | 0 | 1 | ")) << rows[3];
}

// The first run finds nothing measured and says so; what it measures, the next one and `plan` know.
TEST(Bench, KeepsItsRatesAndPredictsWithThoseOfBefore) {
  const TempDir dir;
  const std::string model =  // smaller ones tell nothing, and are not kept
      make_model(dir / "m.gguf", {{"--experts", "64"}, {"--d-ff", "512"}});
  ProcessOptions options;
  options.environment = {{"XDG_CACHE_HOME", dir.path()}};
  const auto json_of = [&](const Args& args) {
    const Outcome outcome = run_sluice(args + Args{"-m", model, "--json"}, options);
    EXPECT_TRUE(succeeded(outcome));
    return Json::parse(outcome.out);
  };
  const Args bench_args = {"bench", "-p", "0", "-n", "4", "-d", "0", "-r", "1"};
  const auto run_of = [&] { return json_of(bench_args).at("runs").at(0); };
  const Json first = run_of(), second = run_of();
  const auto predicted_by = [](const Json& run) {
    return run.at("predicted_by").get<std::string>();
  };
  EXPECT_NE(predicted_by(first).find("nothing was measured here yet"), std::string::npos);
  EXPECT_NE(predicted_by(second).find("(measured)"), std::string::npos) << second;
  const double measured = first.at("tests").at(0).at("tokens_per_second").at("median");
  EXPECT_NEAR(second.at("tests").at(0).at("predicted_tokens_per_second"), measured,
              1e-3 * measured);
  const Json plan = json_of({"plan"});
  EXPECT_EQ(plan.at("hardware").at("cpu_source"), "measured");
  const double again = second.at("tests").at(0).at("tokens_per_second").at("median");
  const Json& on_cpu = plan.at("modes").at(4);
  EXPECT_NEAR(on_cpu.at("decode_tokens_per_second_at_start"), again, 0.05 * again)
      << "but for the few tokens before";
}

TEST(Bench, LeavesOutDefaultsThatDoNotFitTheModel) {
  const Json report = bench({"-c", "200", "-n", "2", "-r", "1", "-t", "1"});
  const Json& tests = report.at("runs").at(0).at("tests");
  ASSERT_EQ(tests.size(), 1u);  // no prefill of 256, nothing at depth 4096
  EXPECT_EQ(tests.at(0).at("kind"), "decode");
  EXPECT_EQ(report.at("n_ctx"), 200);
}

TEST(Bench, RefusesWhatCannotBeMeasured) {
  const auto run = [](const Args& flags) { return run_sluice(Args{"bench"} + flags); };
  EXPECT_TRUE(refused(run({"-p", "4000"}), {"4000 tokens at depth 0", "context of 2048", "-c"}));
  EXPECT_TRUE(refused(run({"-n", "8", "-d", "2041"}), {"8 tokens at depth 2041", "2048"}));
  EXPECT_TRUE(refused(run({"-p", "2147483647", "-d", "2147483647"}), {"2147483647", "2048"}));
  EXPECT_TRUE(refused(run({"-c", "64", "-p", "65"}), {"65 tokens", "context of 64", "2048"}));
  EXPECT_TRUE(refused(run({"-p", "0", "-n", "0"}), {"nothing to measure"}));
  EXPECT_TRUE(refused(run({"-m", "none.gguf"}), {"none.gguf"}));
  EXPECT_TRUE(refused(run({"-m", "none"}), {"there is no model 'none'"}));
  EXPECT_TRUE(misused(run({"-p", "many"}), {"many"}));
  EXPECT_TRUE(misused(run({"-n=-1"}), {"--n-gen"}));
  EXPECT_TRUE(misused(run({"-r", "0"}), {"--repeats"}));
  EXPECT_TRUE(misused(run({"-t", "1,2000"}), {"--threads"}));
  EXPECT_TRUE(misused(run({"--md", "--json"}), {"--md"}));
}

}  // namespace
}  // namespace sluice::test
