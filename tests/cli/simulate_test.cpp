// sluice simulate: hits counted by hand, the shapes of its outputs, sweeps, generated and recorded
// routing, files of traces and profiles, and what it refuses.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

using Json = nlohmann::json;

// Two layers of four experts of 1 MB. Layer 0 uses 0, then decodes 0 2 0 1; layer 1 always uses 3.
const std::string kTinyCsv =
    "# model=/models/tiny.gguf n_layer=2 n_expert=4 n_expert_used=1\n"
    "# layer=0 expert_bytes=1000000\n"
    "# layer=1 expert_bytes=1000000\n"
    "turn,phase,step,layer,slot,expert,weight\n"
    "0,0,0,0,0,0,1.0\n"
    "0,0,0,1,0,3,1.0\n"
    "0,1,1,0,0,0,1.0\n"
    "0,1,1,1,0,3,1.0\n"
    "0,1,2,0,0,2,1.0\n"
    "0,1,2,1,0,3,1.0\n"
    "0,1,3,0,0,0,1.0\n"
    "0,1,3,1,0,3,1.0\n"
    "0,1,4,0,0,1,1.0\n"
    "0,1,4,1,0,3,1.0\n";

class Simulate : public testing::Test {
 protected:
  Simulate() { write_file(trace, kTinyCsv); }

  Outcome run(const Args& flags) { return run_sluice(Args{"simulate"} + flags); }
  Outcome replay(const Args& flags) { return run(Args{"--trace", trace} + flags); }
  Json rows(const Args& flags) {
    return Json::parse(output_of(Args{"simulate", "--json"} + flags));
  }
  Json replayed(const Args& flags) { return rows(Args{"--trace", trace} + flags); }

  // That of a report's page.
  static Json document_of(const std::string& path) {
    const std::string page = read_file(path);
    EXPECT_TRUE(page.starts_with("<!doctype html>")) << page.substr(0, 40);
    const size_t begin = page.find("{\"trace\":");
    const size_t end = page.find("</script>", begin);
    return Json::parse(page.substr(begin, page.rfind('}', end) + 1 - begin));
  }

  TempDir dir;
  const std::string trace = dir / "t.csv";
};

// A quarter of the experts is one slot in each layer, or two that the layers share.
TEST_F(Simulate, CountsWhatAPersonCountsByHand) {
  const Json all = replayed({"--policy", "lru,belady", "--budget", "25"});
  ASSERT_EQ(all.size(), 2u);
  const Json& lru = all[0];
  EXPECT_EQ(lru.at("policy"), "lru");
  EXPECT_EQ(lru.at("budget"), 25.0);
  EXPECT_EQ(lru.at("n_tokens"), 4);
  EXPECT_DOUBLE_EQ(lru.at("hit_rate"), 5.0 / 8) << "layer 0 hits with the first token, 1 with all";
  EXPECT_EQ(lru.at("n_copies"), 3);
  EXPECT_EQ(lru.at("bytes_copied"), 3'000'000);
  const Json& belady = all[1];
  EXPECT_EQ(belady.at("policy"), "belady");
  EXPECT_DOUBLE_EQ(belady.at("hit_rate"), 6.0 / 8) << "it keeps 0, which comes again";
  EXPECT_EQ(belady.at("n_copies"), 0);
}

TEST_F(Simulate, TimesATokenByItsParts) {
  const Json row = replayed({"--policy", "lru", "--budget", "25 %", "--link", "1", "--cpu", "2GB/s",
                             "--gpu", "10 GB/s", "--handshake", "0.1ms"})[0];
  EXPECT_NEAR(row.at("gpu_ms"), 5 * 0.1 / 4, 1e-9);
  EXPECT_NEAR(row.at("cpu_ms"), 3 * (0.5 + 0.4 * 0.5) / 4, 1e-9) << "work, and copies beside it";
  EXPECT_NEAR(row.at("handshake_ms"), 3 * 0.1 / 4, 1e-9);
  EXPECT_NEAR(row.at("copy_ms"), 3 * 1.0 / 4, 1e-9);
  // A token with a miss: 0.5 + 0.1 in layer 0, 0.1 in layer 1, 0.2 of interference, and the copy
  // takes 1.0; the one without: 0.1 in each layer.
  EXPECT_NEAR(row.at("copy_wait_ms"), 3 * 0.1 / 4, 1e-9);
  EXPECT_NEAR(row.at("ms_per_token"), (3 * 1.0 + 0.2) / 4, 1e-9);
  EXPECT_NEAR(row.at("tokens_per_second"), 1000.0 / row.at("ms_per_token").get<double>(), 1e-9);
}

TEST_F(Simulate, GivesOneObjectForEveryPolicyAndBudget) {
  const Json all = replayed({});
  ASSERT_EQ(all.size(), 7u * 8u);
  std::set<std::pair<std::string, double>> seen;
  for (const Json& row : all) {
    seen.emplace(row.at("policy"), row.at("budget"));
    EXPECT_GE(row.at("hit_rate"), 0.0);
    EXPECT_LE(row.at("hit_rate"), 1.0);
    for (const char* key : {"bytes_copied", "ms_per_token", "gpu_ms", "cpu_ms", "handshake_ms",
                            "copy_ms", "copy_wait_ms", "tokens_per_second", "n_tokens", "n_copies",
                            "link_gbps", "cpu_gbps", "gpu_gbps", "copy_cost"}) {
      EXPECT_TRUE(row.at(key).is_number()) << key;
    }
  }
  EXPECT_EQ(seen.size(), all.size());
  EXPECT_TRUE(seen.contains({"lru-global", 6.25}));
  EXPECT_TRUE(seen.contains({"belady", 60.0}));
}

TEST_F(Simulate, SweepsAllCombinationsOfMachines) {
  const Json all = replayed({"--policy", "default,lru", "--budget", "25,50", "--link", "6,25GB/s",
                             "--cpu", "30,60", "--gpu", "500"});
  ASSERT_EQ(all.size(), 2u * 2 * 2 * 2);
  for (const Json& row : all) {  // a sweep's row is what that machine has alone
    const auto rate = [&](const char* key) { return cat(row.at(key).get<double>()); };
    const Json alone = replayed({"--policy", row.at("policy"), "--budget", rate("budget"), "--link",
                                 rate("link_gbps"), "--cpu", rate("cpu_gbps")});
    EXPECT_EQ(alone[0], row);
  }
  const std::string table = output_of({"simulate", "--trace", trace, "--link", "6,25"});
  for (const char* part : {"link", "cpu", "gpu"}) {
    EXPECT_NE(table.find(part), std::string::npos) << table;
  }
}

TEST_F(Simulate, TakesTheCopyCostOfTheMachineUnlessToldOtherwise) {
  const Json own = replayed({"--policy", "default,lru", "--budget", "50", "--cpu", "60"});
  EXPECT_NEAR(own[0].at("copy_cost"), 0.4545, 1e-3);
  EXPECT_EQ(own[1].at("copy_cost"), 0.0) << "others do not weigh copies";
  EXPECT_EQ(replayed({"--policy", "default", "--budget", "50"})[0], own[0])
      << "the same figures, unsaid and said";
  EXPECT_EQ(replayed({"--policy", "default", "--cpu", "60", "--copy-cost", "0"})[0].at("copy_cost"),
            0.0);
  const Json dear = replayed({"--policy", "default", "--budget", "50", "--copy-cost", "1000"});
  EXPECT_EQ(dear[0].at("bytes_copied"), 0);
}

// What a copy is weighed at is settled then, so which ones are made is too; a link only times them.
TEST_F(Simulate, WithACopyCostGivenTheLinkChangesNoCopy) {
  const Args flags = {"--generate", "120",       "--policy",    "default",
                      "--budget",   "12.5,37.5", "--copy-cost", "0.5"};
  const Json usual = rows(flags);
  EXPECT_GT(usual[0].at("n_copies"), 0);
  for (const char* link : {"0.5", "6", "100"}) {
    const Json other = rows(flags + Args{"--link", link});
    for (size_t i = 0; i < usual.size(); ++i) {
      EXPECT_EQ(other[i].at("bytes_copied"), usual[i].at("bytes_copied")) << link;
      EXPECT_EQ(other[i].at("hit_rate"), usual[i].at("hit_rate")) << link;
    }
    EXPECT_NE(other[0].at("copy_ms"), usual[0].at("copy_ms")) << link;
  }
  const Json swept = rows(flags + Args{"--link", "0.5,25,100"});
  for (size_t i = 0; i < swept.size(); ++i) {
    EXPECT_EQ(swept[i].at("bytes_copied"), usual[i % 2].at("bytes_copied")) << swept[i];
  }
}

// Figures that nobody gave are those that the report names: the default policy heeds both alike.
TEST_F(Simulate, TheSameFiguresGiveTheSameRunWhetherSaidOrNot) {
  const Args flags = {"--generate", "120", "--budget", "6.25,25"};
  const Json unsaid = rows(flags);
  const auto said = [&](const char* key) { return cat(unsaid[0].at(key).get<double>()); };
  EXPECT_EQ(rows(flags + Args{"--link", said("link_gbps"), "--cpu", said("cpu_gbps"), "--gpu",
                              said("gpu_gbps"), "--handshake", said("handshake_us")}),
            unsaid);
}

TEST_F(Simulate, KnowsTheMachinesThatPlanKnows) {
  const Json row = replayed({"--hw", "rtx4070ti-12g+64g-ddr5", "--cpu", "7"})[0];
  EXPECT_EQ(row.at("link_gbps"), 25.0);
  EXPECT_NEAR(row.at("gpu_gbps"), 504 * 0.8, 1e-9);
  EXPECT_EQ(row.at("cpu_gbps"), 7.0) << "a flag of its own goes before the description";
  EXPECT_EQ(replayed({"--hw", "rtx3090,handshake=30us"})[0].at("handshake_us"), 30.0);
}

TEST_F(Simulate, PrintsATableForPeople) {
  const std::string table = output_of({"simulate", "--trace", trace, "--budget", "25,50"});
  for (const char* part : {"tiny.gguf, 2 layers x 4 experts", "1 prompt + 4 decoded",
                           "link 25, CPU 60, GPU 500 GB/s", "MB/token", "tokens/s", "50 %",
                           "belady *", "62.5", "the ceiling", "nothing was measured"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << " is not in\n" << table;
  }
  EXPECT_EQ(output_of({"simulate", "--trace", trace, "--policy", "lru"}).find("ceiling"),
            std::string::npos);
}

TEST_F(Simulate, GeneratesTheSameTraceForTheSameSeed) {
  const std::string model = make_model(dir / "m.gguf", {});
  const Args flags = {"--generate", "60", "-m", model, "--budget", "10,40"};
  EXPECT_EQ(rows(flags), rows(flags));
  EXPECT_NE(rows(flags), rows(flags + Args{"--seed", "4"}));
  EXPECT_NE(rows(flags), rows(flags + Args{"--topic-steps", "10"}));
  EXPECT_EQ(rows(flags)[0].at("n_tokens"), 60);
}

TEST_F(Simulate, UniformRoutingHitsAsOftenAsThereAreSlots) {
  for (const Json& row : rows({"--generate", "100", "--uniform", "--budget", "25,60"})) {
    if (row.at("policy") == "belady") continue;  // it sees what comes
    EXPECT_NEAR(row.at("hit_rate"), row.at("budget").get<double>() / 100, 0.02) << row;
  }
  EXPECT_NE(replay({"--uniform"}).exit_code, 0) << "a recorded one is as it is";
}

// 0.5 % of the default shape's experts are 31 slots for 384 that a token uses.
TEST_F(Simulate, DoesNotCollapseBelowOneTokensWorthOfSlots) {
  constexpr size_t kPolicies = 7;
  const Json small = rows({"--generate", "60", "--budget", "0.5,3"});
  ASSERT_EQ(small.size(), 2 * kPolicies);
  for (const Json& row : small) {
    EXPECT_GT(row.at("hit_rate"), row.at("budget").get<double>() / 100 / 4) << row;
  }
  const Json none = replayed({"--budget", "0"}), all = replayed({"--budget", "100"});
  ASSERT_EQ(none.size(), kPolicies);
  ASSERT_EQ(all.size(), kPolicies);
  for (const Json& row : none) EXPECT_EQ(row.at("hit_rate"), 0.0) << row;
  for (const Json& row : all) EXPECT_GE(row.at("hit_rate"), 0.75) << row;
}

TEST_F(Simulate, OnRecordedTracesTheDefaultIsAboveTheOthersAndBelowTheCeiling) {
  // Those of large models are an extra, where they lie beside the checkout.
  for (const char* name : {"traces/demo-attn.slrt", "traces/demo-hybrid.slrt",
                           "../../../shared/traces/qwen3-30b-a3b.route.csv",
                           "../../../shared/traces/gpt-oss-120b.route.csv"}) {
    const std::string path = cat(SLUICE_TEST_DATA, "/", name);
    if (std::string_view(name).starts_with("..") && !std::filesystem::exists(path)) continue;
    for (const char* budget : {"3", "6.25", "25", "60"}) {
      const Json all = rows({"--trace", path, "--budget", budget, "--copy-cost", "0"});
      ASSERT_EQ(all.size(), 7u);
      const double ours = all[0].at("hit_rate");
      for (const Json& row : all) {
        const double theirs = row.at("hit_rate");
        EXPECT_GT(theirs, 0.0);
        if (row.at("policy") == "belady") {
          EXPECT_LE(ours, theirs) << name << budget;
        } else {
          EXPECT_GE(ours, theirs - 0.003) << name << ", " << budget << " %, " << row.at("policy");
        }
      }
    }
  }
}

// The fields that the page draws; grids are as long as their axes.
TEST_F(Simulate, WritesAReport) {
  EXPECT_TRUE(succeeded(replay({"--report", dir / "r.html", "--budget", "50"})));
  const Json doc = document_of(dir / "r.html");
  EXPECT_EQ(doc.at("trace").at("model"), "tiny.gguf");
  EXPECT_EQ(doc.at("trace").at("expert_bytes_total"), 8'000'000);
  EXPECT_EQ(doc.at("machine").at("link_gbps"), 25.0);
  ASSERT_EQ(doc.at("curves").size(), 7u);
  const size_t n_budgets = doc.at("speed_map").at("budgets").size();
  for (const Json& curve : doc.at("curves")) EXPECT_EQ(curve.at("points").size(), n_budgets);
  EXPECT_EQ(doc.at("speed_map").at("vram_gib").size(), n_budgets);
  const auto expect_grid = [](const Json& grid, size_t n_rows, size_t n_columns) {
    ASSERT_EQ(grid.size(), n_rows);
    for (const Json& row : grid) EXPECT_EQ(row.size(), n_columns);
  };
  expect_grid(doc.at("speed_map").at("tokens_per_s"), doc.at("speed_map").at("links").size(),
              n_budgets);
  expect_grid(doc.at("speed_map").at("used_budget"), doc.at("speed_map").at("links").size(),
              n_budgets);
  expect_grid(doc.at("layers").at("hit_rate"), n_budgets, 2);
  // Of 5 uses 3 of expert 0, one each of 1 and 2; in layer 1 always the same.
  EXPECT_NEAR(doc.at("layers").at("use_entropy")[0],
              0.6 * std::log2(1 / 0.6) + 2 * 0.2 * std::log2(5), 1e-9);
  EXPECT_NEAR(doc.at("layers").at("use_entropy")[1], 0.0, 1e-9);
  const Json& frontier = doc.at("frontier");
  const size_t n_links = frontier.at("links").size();
  const size_t n_cpus = frontier.at("cpus").size();
  for (const char* mode : {"compute", "cache", "stream"}) {
    expect_grid(frontier.at("tokens_per_s").at(mode), n_links, n_cpus);
  }
  expect_grid(frontier.at("copy_cost"), n_links, n_cpus);
  expect_grid(frontier.at("mb_per_token"), n_links, n_cpus);
}

// On this routing the policy copies more than pays with some larger budgets (the map says where).
TEST_F(Simulate, ItsMapIsNeverSlowerWithMoreVram) {
  EXPECT_TRUE(succeeded(run(
      {"--generate", "150", "--report", dir / "r.html", "--budget", "50", "--policy", "default"})));
  const Json map = document_of(dir / "r.html").at("speed_map");
  const std::vector<double> budgets = map.at("budgets");
  int n_with_less = 0;
  for (size_t link = 0; link < map.at("links").size(); ++link) {
    const std::vector<double> speeds = map.at("tokens_per_s")[link];
    EXPECT_TRUE(std::ranges::is_sorted(speeds)) << testing::PrintToString(speeds);
    const std::vector<double> used = map.at("used_budget")[link];
    for (size_t b = 0; b < budgets.size(); ++b) {
      EXPECT_LE(used[b], budgets[b]);
      if (used[b] == budgets[b]) continue;
      EXPECT_EQ(speeds[b], speeds[b - 1]);
      ++n_with_less;
    }
  }
  EXPECT_GT(n_with_less, 0) << "nothing to smooth here: take routing that has it";
}

TEST_F(Simulate, SavesAnyTraceSoThatItReplaysAlike) {
  EXPECT_TRUE(succeeded(replay({"--write-trace", dir / "t.bin"})));
  EXPECT_EQ(read_file(dir / "t.bin").substr(0, 4), "SLRT");
  EXPECT_EQ(rows({"--trace", dir / "t.bin"}), replayed({}));

  const Args generate = {"--generate", "300", "--policy", "default,lru", "--budget", "12.5"};
  const Json generated = rows(generate + Args{"--write-trace", dir / "g.bin"});
  const std::string bytes = read_file(dir / "g.bin");
  EXPECT_GT(bytes.size(), 328u * 48 * 8 * 4);
  const Args again = {"--trace", dir / "g.bin", "--policy", "default,lru", "--budget", "12.5"};
  EXPECT_EQ(rows(again), generated);
  EXPECT_EQ(rows(again + Args{"--write-trace", dir / "g.bin"}), generated) << "onto itself";
  EXPECT_TRUE(read_file(dir / "g.bin") == bytes);
}

TEST_F(Simulate, RefusesDamagedTraces) {
  EXPECT_TRUE(succeeded(replay({"--write-trace", dir / "t.bin"})));
  const std::string whole = read_file(dir / "t.bin");
  const std::string bad = dir / "bad";
  const auto refusal = [&](const std::string& bytes, const std::vector<std::string>& parts) {
    write_file(bad, bytes);
    const Outcome outcome = run({"--trace", bad, "--write-trace", dir / "out"});
    EXPECT_TRUE(refused(outcome, Args{bad} + parts));
    EXPECT_FALSE(std::filesystem::exists(dir / "out"));
    EXPECT_FALSE(std::filesystem::exists(dir / "out.partial"));
  };
  for (size_t n = 4; n < whole.size(); n += 3) {
    refusal(whole.substr(0, n), {"routing trace: it ends within"});
  }
  refusal("", {"is empty"});
  refusal("SL", {"routing CSV, line 1"});
  refusal("<html>\x1b[2J", {"routing CSV, line 1", "expected turn,phase"});
  refusal(whole + "x", {"1 bytes after its end"});
  refusal("SLRT" + std::string(200, '\xff'), {"version"});
  refusal(kTinyCsv + "0,1,5,0,0,4,1.0\n", {"line 15", "expert 4 in layer 0; expected 0 to 3"});
  refusal(kTinyCsv + "0,1,5,0\n", {"line 15", "column 5"});
  EXPECT_TRUE(refused(run({"--trace", dir.path()}), {dir.path(), "Is a directory"}));
  EXPECT_TRUE(refused(run({"--trace", dir / "none"}), {dir / "none", "No such file"}));
}

TEST_F(Simulate, StartsFromAProfileAndUpdatesIt) {
  const std::string profile = dir / "profile";
  const Args cold = {"--policy", "lru", "--budget", "75"};
  const double before = replayed(cold)[0].at("hit_rate");
  EXPECT_EQ(replayed(cold + Args{"--write-profile", profile})[0].at("hit_rate"), before);
  const std::string first = read_file(profile);
  EXPECT_EQ(first.substr(0, 4), "SLRP");
  const Json warm = replayed(cold + Args{"--profile", profile, "--write-profile", profile});
  EXPECT_DOUBLE_EQ(before, 6.0 / 8);
  EXPECT_EQ(warm[0].at("hit_rate"), 1.0) << "the three experts of layer 0 are there from the start";
  EXPECT_EQ(read_file(profile).size(), first.size());
  EXPECT_NE(read_file(profile), first);
  EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"profile", "t.csv"}));
}

TEST_F(Simulate, RefusesDamagedProfilesAndLeavesThemWhereTheyAre) {
  const std::string profile = dir / "profile";
  EXPECT_TRUE(succeeded(replay({"--write-profile", profile})));
  const std::string whole = read_file(profile);
  std::string flipped = whole;
  flipped[30] = static_cast<char>(flipped[30] ^ 1);
  for (const std::string& bytes : {std::string(), whole.substr(0, 20), whole + "x", flipped}) {
    write_file(profile, bytes);
    for (const char* flag : {"--profile", "--write-profile"}) {
      EXPECT_TRUE(refused(replay({flag, profile}), {profile, "routing profile: ", "delete"}));
      EXPECT_EQ(read_file(profile), bytes);
    }
  }
  write_file(profile, whole);
  for (const char* flag : {"--profile", "--write-profile"}) {
    EXPECT_TRUE(refused(run({"--generate", "5", "--policy", "lru", flag, profile}),
                        {profile, "2 layers of 4 experts; expected 48 of 128"}));
  }
  // One dimension alone is another.
  for (const auto& [layers, experts] : {std::pair{"2", "8"}, {"3", "4"}}) {
    const std::string model = make_model(
        dir / "m.gguf", {{"--layers", layers}, {"--experts", experts}, {"--experts-used", "1"}});
    EXPECT_TRUE(
        refused(run({"--generate", "5", "-m", model, "--profile", profile}),
                {profile, cat("2 layers of 4 experts; expected ", layers, " of ", experts)}));
  }
  EXPECT_TRUE(refused(replay({"--profile", dir / "none"}), {dir / "none", "No such file"}));
  EXPECT_TRUE(refused(replay({"--profile", dir.path()}), {dir.path(), "Is a directory"}));
  EXPECT_EQ(read_file(profile), whole);
}

TEST_F(Simulate, SaysWhereItCannotWrite) {
  for (const char* flag : {"--write-trace", "--write-profile", "--report"}) {
    EXPECT_TRUE(refused(replay({flag, "/dev/full"}), {"/dev/full", "No space left"})) << flag;
    EXPECT_TRUE(refused(replay({flag, dir / "no/f"}), {dir / "no/f", "No such file"})) << flag;
    EXPECT_TRUE(refused(replay({flag, dir.path()}), {dir.path(), "Is a directory"})) << flag;
    const Outcome out = replay({flag, "/dev/stdout", "--json", "--policy", "lru"});
    EXPECT_TRUE(succeeded(out)) << flag;
    EXPECT_TRUE(out.out.starts_with("SLR") || out.out.starts_with("<!")) << out;
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_EQ(names_in(dir.path()), std::vector<std::string>{"t.csv"});
}

TEST_F(Simulate, RefusesWhatItCannotDo) {
  EXPECT_TRUE(refused(replay({"--policy", "lru,magic"}),
                      {"'magic'", "default, lru, lru-global, slru, lfu, dlfu, belady"}));
  for (const char* budget : {"-1", "100.5", "six", "6,,7", "nan"}) {
    EXPECT_TRUE(refused(replay({cat("--budget=", budget)}), {"--budget", "0 to 100"})) << budget;
  }
  EXPECT_TRUE(refused(replay({"--link", "25 parsecs"}), {"--link is '25 parsecs'", "25GB/s"}));
  EXPECT_TRUE(refused(replay({"--gpu", "500,0"}), {"--gpu is '0'"}));
  EXPECT_TRUE(refused(replay({"--handshake", "long"}), {"--handshake is 'long'", "18us"}));
  EXPECT_TRUE(refused(replay({"--hw", "rtx4070t"}), {"'rtx4070t'", "rtx4070ti"}));
  EXPECT_TRUE(refused(replay({"--hw", "cpu+64g-ddr5"}), {"has no GPU"}));
  EXPECT_TRUE(misused(replay({"--copy-cost", "-1"}), {"--copy-cost"}));
  EXPECT_TRUE(misused(run({}), {"--trace", "--generate"}));
  EXPECT_TRUE(misused(replay({"--generate", "5"}), {"--generate", "--trace"}));
  EXPECT_TRUE(misused(replay({"--seed", "5"}), {"--seed", "--generate"}));
  EXPECT_TRUE(misused(run({"--generate", "0"}), {"--generate"}));
  EXPECT_TRUE(refused(run({"--generate", "5", "-m", dir / "none.gguf"}), {"none.gguf"}));
  EXPECT_TRUE(refused(run({"--generate", "900000000"}),
                      {"belady must hold the whole trace", "GiB", "8.00 GiB", "--policy"}));
}

TEST_F(Simulate, RefusesATraceWithoutDecodedTokensAndWritesNothing) {
  write_file(trace, kTinyCsv.substr(0, kTinyCsv.find("0,1,1,0")));
  EXPECT_TRUE(refused(replay({"--write-trace", dir / "out", "--write-profile", dir / "profile",
                              "--report", dir / "r.html"}),
                      {"1 prompt tokens and none decoded"}));
  EXPECT_EQ(names_in(dir.path()), std::vector<std::string>{"t.csv"});
}

}  // namespace
}  // namespace sluice::test
