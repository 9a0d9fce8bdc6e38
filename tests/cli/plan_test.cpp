// sluice plan: the table and the JSON of a real shape, the wishes, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/machine_fingerprint.h"
#include "cli/models.h"
#include "engine/machine/session_plan.h"
#include "support/temp_dir.h"
#include "unit/gguf/file_bytes.h"

namespace sluice::test {
namespace {

using Json = nlohmann::json;

struct TensorLine {
  std::string name;
  std::vector<int64_t> shape;
  int32_t type;

  uint64_t n_bytes() const {
    uint64_t n = 1;
    for (const int64_t dim : shape) n *= static_cast<uint64_t>(dim);
    return type == 0 ? 4 * n : n / 256 * (type == 12 ? 144 : 210);  // F32, Q4_K, Q6_K
  }
};

// Qwen3-30B-A3B in Q4_K_M.
std::vector<TensorLine> qwen3_30b_tensors() {
  std::vector<TensorLine> lines = {{"token_embd", {2048, 151936}, 12},
                                   {"output_norm", {2048}, 0},
                                   {"output", {2048, 151936}, 14}};
  for (int i = 0; i < 48; ++i) {
    const int32_t more = i < 6 || i >= 42 || (i - 6) % 3 == 2 ? 14 : 12;
    const auto add = [&](const char* name, std::vector<int64_t> shape, int32_t type) {
      lines.push_back({cat("blk.", i, ".", name), std::move(shape), type});
    };
    add("attn_norm", {2048}, 0);
    add("ffn_norm", {2048}, 0);
    add("attn_q_norm", {128}, 0);
    add("attn_k_norm", {128}, 0);
    add("ffn_gate_inp", {2048, 128}, 0);
    add("attn_q", {2048, 4096}, 12);
    add("attn_k", {2048, 512}, 12);
    add("attn_v", {2048, 512}, more);
    add("attn_output", {4096, 2048}, 12);
    add("ffn_gate_exps", {2048, 768, 128}, 12);
    add("ffn_up_exps", {2048, 768, 128}, 12);
    add("ffn_down_exps", {768, 2048, 128}, more);
  }
  return lines;
}

// 17 GiB of which only the header takes room on the disk: a plan reads no weights.
std::string write_qwen3_30b(const std::string& path) {
  const std::vector<TensorLine> tensors = qwen3_30b_tensors();
  const std::vector<std::pair<std::string, uint32_t>> keys = {
      {"block_count", 48},
      {"embedding_length", 2048},
      {"context_length", 40960},
      {"expert_count", 128},
      {"expert_used_count", 8},
      {"expert_feed_forward_length", 768},
      {"vocab_size", 151936},
      {"attention.layer_norm_rms_epsilon", 0},
      {"attention.head_count", 32},
      {"attention.key_length", 128},
      {"attention.head_count_kv", 4},
      {"attention.value_length", 128}};
  gguf::test::FileBytes file(std::ssize(tensors), std::ssize(keys) + 1);
  file.key("general.architecture", gguf::test::kString).text("qwen3moe");
  for (const auto& [key, value] : keys) file.key("qwen3moe." + key, gguf::test::kU32).put(value);
  uint64_t offset = 0;
  for (const TensorLine& t : tensors) {
    file.text(t.name + ".weight").put(static_cast<uint32_t>(t.shape.size()));
    for (const int64_t dim : t.shape) file.put(dim);
    file.put(t.type).put(offset);
    offset += (t.n_bytes() + 31) / 32 * 32;
  }
  write_file(path, file.pad().str());
  std::filesystem::resize_file(path, file.str().size() + offset);
  return path;
}

class PlanOfQwen3 : public testing::Test {
 protected:
  Outcome run(const Args& flags) { return run_sluice(Args{"plan", "-m", path_} + flags); }
  // On a described machine, so that the answer is the same everywhere.
  Args with_card(const Args& flags) { return Args{"--hw", "rtx4070ti-12g+64g-ddr5"} + flags; }
  Json plan(const Args& flags) {
    return Json::parse(output_of(Args{"plan", "-m", path_, "--json"} + flags));
  }

  TempDir dir_;
  std::string path_ = write_qwen3_30b(dir_ / "qwen3-30b.gguf");
};

TEST_F(PlanOfQwen3, PutsTheWholeTrunkInto12GiBAndTellsTheExpertBudget) {
  for (const Args& machine : {Args{"--hw", "rtx4070ti-12g+64g-ddr5"},
                              Args{"--hw", "ram=64GiB,cpu=60GB/s,vram=24GiB", "--vram", "12GiB"}}) {
    const Json p = plan(machine);
    EXPECT_EQ(p.at("mode"), "expert_cache");
    EXPECT_EQ(p.at("n_gpu_layers"), 48);
    const Json& vram = p.at("vram");
    EXPECT_EQ(vram.at("budget_bytes"), 12884901888);
    EXPECT_EQ(vram.at("trunk_bytes"), 567263232);
    EXPECT_EQ(vram.at("output_bytes"), 255260672);
    EXPECT_EQ(vram.at("kv_bytes"), 402653184);
    EXPECT_EQ(vram.at("tables_bytes"), 49152 + 256);
    EXPECT_EQ(vram.at("staging_bytes"), 24477696);
    EXPECT_GT(vram.at("expert_budget_bytes"), 10'000'000'000);
    EXPECT_LE(vram.at("total_bytes"), vram.at("budget_bytes"));
    EXPECT_EQ(p.at("experts").at("n_experts"), 6144);
    EXPECT_EQ(p.at("experts").at("layers").size(), 48u);
    EXPECT_EQ(p.at("host").at("holding"), "registered");
    EXPECT_EQ(p.at("modes").size(), 5u);
  }
}

TEST_F(PlanOfQwen3, ShrinksTheKvLineWithItsType) {
  const auto kv = [&](const std::string& type) {
    return plan(with_card({"-c", "8192", "-ctk", type, "-ctv", type}))
        .at("vram")
        .at("kv_bytes")
        .get<double>();
  };
  const double f16 = kv("f16");
  EXPECT_NEAR(kv("q8_0") / f16, 0.531, 0.001);
  EXPECT_NEAR(kv("q4_0") / f16, 0.281, 0.001);
}

TEST_F(PlanOfQwen3, PrintsATableOfOneScreen) {
  const std::string table = output_of(Args{"plan", "-m", path_} + with_card({}));
  for (const char* part : {"'qwen3moe'",
                           "17.3 GiB",
                           "rtx4070ti 12.0 GiB",
                           "Plan: expert cache",
                           "48 of 48 trunk layers on the GPU",
                           "context 4096, KV f16, prompts in chunks of 2048",
                           "room for experts",
                           "2.53 MiB for 24 layers",
                           "registered in place",
                           "scratch: activations ",
                           "step block ",
                           "pair lists ",
                           "partials ",
                           "pinned: mailbox ",
                           "readback 15 us",
                           "> expert cache",
                           "all resident           needs 18.",
                           "GPU experts, streamed ",
                           "2048 tokens into a text; expert cache at its start: decode ",
                           "Why: ",
                           "no step was measured"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << " is not in\n" << table;
  }
  EXPECT_LT(std::ranges::count(table, '\n'), 45);
}

TEST_F(PlanOfQwen3, SaysHowDeepInATextItsSpeedsHold) {
  const Json deep = plan({"--hw", "cpu+64g-ddr5"});
  EXPECT_EQ(deep.at("forecast_depth"), 2048);
  const Json& mode = deep.at("modes").at(4);
  EXPECT_GT(mode.at("decode_tokens_per_second_at_start"), mode.at("decode_tokens_per_second"));
  EXPECT_EQ(plan({"--hw", "cpu+64g-ddr5", "-c", "100"}).at("forecast_depth"), 100);
}

TEST_F(PlanOfQwen3, IsForThisMachineUnlessAnotherIsDescribed) {
  ProcessOptions unmeasured;
  unmeasured.environment = {{"XDG_CACHE_HOME", dir_.path()}};
  const Outcome outcome = run_sluice({"plan", "-m", path_, "--json"}, unmeasured);
  if (outcome.exit_code != 0) {  // a machine with too little RAM for the model: it must say so
    EXPECT_TRUE(refused(outcome, {"of RAM where"}));
    return;
  }
  const Json hardware = Json::parse(outcome.out).at("hardware");
  EXPECT_GE(hardware.at("n_cores"), 1);
  EXPECT_NE(hardware.at("cpu_source").get<std::string>().find("estimated"), std::string::npos);
}

TEST(Plan, KnowsWhatWasMeasuredOnThisMachine) {
  const TempDir dir;
  const std::string model = make_model(dir / "m.gguf");
  ProcessOptions options;
  options.environment = {{"XDG_CACHE_HOME", dir.path()}};
  const auto hardware_after = [&](const std::string& host) {
    engine::MachineRecord record;
    record.host = host;
    const int n_threads = engine::this_machine().n_cores;
    record.add(engine::DeviceRates{"Some GPU, 8 GiB", n_threads, unmeasured_rates()});
    record.devices[0].rates.cpu_gbps = 12.5;
    record.save(dir / "sluice/machine");
    const Outcome outcome = run_sluice({"plan", "-m", model, "--json"}, options);
    EXPECT_TRUE(succeeded(outcome));
    return Json::parse(outcome.out).at("hardware");
  };
  const Json measured = hardware_after(machine_fingerprint(""));
  EXPECT_EQ(measured.at("cpu_source"), "measured");
  EXPECT_EQ(measured.at("cpu_gbps"), 12.5);

  const Json other = hardware_after("Some CPU, 3 cores, 1 GiB, no device");
  EXPECT_TRUE(other.at("cpu_source").get<std::string>().starts_with("estimated")) << other;
}

// A description is a description, whichever flag has it: what is planned is what would run.
TEST_F(PlanOfQwen3, IsTheSameForAMachineDescribedAndSimulated) {
  for (const Args& more : {Args{}, Args{"--vram", "2GiB"}, Args{"--vram", "1200MiB"},
                           Args{"--vram", "6GiB", "-c", "8192", "--moe", "gpu"}}) {
    const char* const machine = "rtx3060-12g+32g-ddr4";
    const Json described = plan(Args{"--hw", machine} + more);
    EXPECT_EQ(described, plan(Args{"--sim-machine", machine} + more));
    EXPECT_EQ(described.at("vram").at("cuda_bytes"), 512 << 20);
  }
}

TEST_F(PlanOfQwen3, FitsATypicalMachineWhoseMemoryHoldsItOnce) {
  const Json p = plan({"--hw", "rtx3060-12g+32g-ddr4"});
  EXPECT_EQ(p.at("mode"), "expert_cache");
  EXPECT_GT(p.at("host").at("experts_bytes"), 16'000'000'000);
}

// The assumption stands beside the figures that rest on it, until a profile takes its place.
TEST(Plan, SaysWhatLocalityItAssumesAndTakesAMeasuredOne) {
  const TempDir dir;
  const std::string model = make_model(dir / "m.gguf", {{"--experts", "64"}, {"--layers", "4"}});
  const Args args = {
      "plan",          "-m", model, "--profile", dir / "p", "--hw", "rtx3060+32g-ddr4,overhead=0B",
      "--cache-slots", "40"};
  const Json assumed = Json::parse(output_of(args + Args{"--json"}));
  EXPECT_NE(assumed.at("locality").get<std::string>().find("assumed"), std::string::npos);
  EXPECT_NE(output_of(args).find("locality of routing, assumed"), std::string::npos);

  const auto learn = [&](const char* n) {
    output_of({"simulate", "--generate", n, "-m", model, "--policy", "lru", "--write-profile",
               dir / "p"});
    return Json::parse(output_of(args + Args{"--json"}));
  };
  EXPECT_EQ(learn("100").at("locality"), assumed.at("locality")) << "too short to go by";
  const Json measured = learn("400");
  EXPECT_NE(measured.at("locality").get<std::string>().find("measured: this model's profile of"),
            std::string::npos);
  const auto cache_of = [](const Json& plan) { return plan.at("modes").at(1); };
  EXPECT_NE(cache_of(measured).at("hit_rate"), cache_of(assumed).at("hit_rate"));
  EXPECT_NE(cache_of(measured).at("decode_tokens_per_second"),
            cache_of(assumed).at("decode_tokens_per_second"));
}

TEST_F(PlanOfQwen3, ObeysWishes) {
  EXPECT_EQ(plan(with_card({"--cache-slots", "1234"})).at("experts").at("n_slots"), 1234);
  EXPECT_EQ(plan(with_card({"--moe", "CPU"})).at("mode"), "cpu_experts");
  const Json on_gpu = plan(with_card({"--moe", "gpu"}));
  EXPECT_EQ(on_gpu.at("mode"), "streamed");
  EXPECT_EQ(on_gpu.at("link_share"), 1.0);
  EXPECT_EQ(plan(with_card({"--n-gpu-layers", "10"})).at("n_gpu_layers"), 10);
  EXPECT_EQ(plan(with_card({"--n-gpu-layers", "0"})).at("mode"), "cpu_only");
  EXPECT_EQ(plan(with_card({"--parallel", "2", "-c", "4096"})).at("vram").at("kv_bytes"),
            805306368);
  EXPECT_EQ(plan(with_card({"--allow-kv-quant"})).at("k_type"), "q8_0");
  EXPECT_EQ(plan(with_card({"--n-cpu-moe", "20"})).at("experts").at("layers")[19].at("n_slots"), 0);

  const auto pinned = [&](const std::string& layers) {
    std::vector<size_t> out;
    const Json all = plan(with_card({"--pin-layers", layers})).at("experts").at("layers");
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].at("pinned")) out.push_back(i);
    }
    return out;
  };
  EXPECT_EQ(pinned("3"), (std::vector<size_t>{0, 1, 47}));
  EXPECT_EQ(pinned("5,9"), (std::vector<size_t>{5, 9}));
  EXPECT_EQ(pinned("5,"), (std::vector<size_t>{5}));
  EXPECT_EQ(pinned("2-4,7"), (std::vector<size_t>{2, 3, 4, 7}));
}

TEST_F(PlanOfQwen3, RefusesWhatFitsNowhereWithTheNumbers) {
  EXPECT_TRUE(refused(run({"--hw", "cpu+8g-ddr4"}), {"CPU only needs 17.", "7.50 GiB are free"}));
  const Outcome one = run(with_card({"-c", "2000000000"}));
  EXPECT_TRUE(refused(one, {"GiB of RAM", "-c"}));
  EXPECT_EQ(one.err.find("-np"), std::string::npos) << "there is one sequence: " << one;
  EXPECT_TRUE(refused(run(with_card({"-c", "2000000000", "-np", "2"})), {"fewer sequences (-np)"}));
  EXPECT_TRUE(
      refused(run({"--hw", "rtx4070ti-12g+64g-ddr5,pin=1g", "--moe", "gpu"}),
              {"18.1 GiB of VRAM", "12.0 GiB are free", "that the GPU can read where 1.00"}));
  EXPECT_TRUE(refused(run(with_card({"--cache-slots", "6000"})), {"expert cache needs"}));
  EXPECT_TRUE(refused(run(with_card({"--cache-slots", "6145"})), {"6145", "6144"}));
}

TEST_F(PlanOfQwen3, RefusesWhatItDoesNotUnderstand) {
  EXPECT_TRUE(refused(run({"--hw", "rtx4070t"}), {"'rtx4070t'", "rtx4070ti"}));
  EXPECT_TRUE(refused(run({"--hw", "vram=much"}), {"vram is 'much'", "vram=12GiB"}));
  EXPECT_TRUE(refused(run({"--vram", "12"}), {"--vram is '12'", "12GiB"}));
  for (const char* layers : {"a", "1,b", "7-3", "-1", "1,,2", "1;2", ","}) {
    EXPECT_TRUE(refused(run(with_card({cat("--pin-layers=", layers)})), {"--pin-layers", "3-7"}))
        << layers;
  }
  EXPECT_TRUE(refused(run(with_card({"--pin-layers", "48,"})), {"layer 48", "0 to 47"}));
  EXPECT_TRUE(misused(run({"--moe", "magic"}), {"'magic'", "auto, cache, cpu or gpu"}));
  EXPECT_TRUE(misused(run({"--parallel", "0"}), {"--parallel"}));
  EXPECT_TRUE(misused(run_sluice({"plan"}), {"sluice plan needs a model"}));
  EXPECT_TRUE(refused(run_sluice({"plan", "-m", dir_ / "none.gguf"}), {"none.gguf"}));
}

TEST(Plan, WorksForEveryArchitectureThatRuns) {
  const TempDir dir;
  for (const char* architecture : {"qwen3moe", "qwen2moe", "olmoe", "llama"}) {
    const std::string path = make_model(dir / "m.gguf", {{"--arch", architecture}});
    const Json p =
        Json::parse(output_of({"plan", "-m", path, "--json", "--hw", "rtx3060-12g+32g-ddr4"}));
    EXPECT_EQ(p.at("mode"), "all_resident") << architecture;
    EXPECT_EQ(p.at("n_ctx"), 4096) << architecture;
  }
}

}  // namespace
}  // namespace sluice::test
