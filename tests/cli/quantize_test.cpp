// sluice quantize: the model it writes is of the type asked for and nearly the same model.
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

// The divergence from F32 grows with the square of the weights' relative error. The models are the
// same everywhere and so are the results, so each bound is only 1.3 times what the two
// architectures gave: F16 1.8e-7, BF16 8.7e-6, Q8_0 8.3e-5, Q6_K 4.9e-4, Q5_K 2.1e-3, Q4_K 7.5e-3,
// Q4_0 1.04e-2, Q4_K_M 5.2e-3, Q5_K_M 1.6e-3. Other seeds stay within 1.4 times these, and two
// unrelated models differ by 0.6. All experts are used, or a token that changes its expert would
// hide the rounding.
struct QuantizeCase {
  const char* type;
  double bound;
};

class QuantizeTo : public testing::TestWithParam<QuantizeCase> {};

TEST_P(QuantizeTo, KeepsTheModelNearlyTheSame) {
  const auto [type, bound] = GetParam();
  const TempDir dir;
  for (const char* architecture : {"qwen3moe", "llama"}) {
    const std::string source =
        make_model(dir / "f32.gguf", {{"--arch", architecture}, {"--experts-used", "4"}});
    const std::string result = dir / "out.gguf";
    ASSERT_TRUE(succeeded(run_sluice({"quantize", source, result, type})));
    const double divergence =
        mean_divergence(all_logprobs(source, prompt_of(24)), all_logprobs(result, prompt_of(24)));
    EXPECT_LE(divergence, bound) << architecture;
    EXPECT_GE(divergence, bound / 10) << architecture << ": as if nothing had been quantised";
    EXPECT_TRUE(succeeded(run_sluice({"inspect", result, "--check-tensors"})));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryType, QuantizeTo,
                         testing::Values(QuantizeCase{"F16", 2.4e-7}, QuantizeCase{"BF16", 1.15e-5},
                                         QuantizeCase{"Q8_0", 1.1e-4}, QuantizeCase{"Q6_K", 6.4e-4},
                                         QuantizeCase{"Q5_K", 2.7e-3}, QuantizeCase{"Q4_K", 9.8e-3},
                                         QuantizeCase{"Q4_0", 1.35e-2},
                                         QuantizeCase{"Q4_K_M", 6.7e-3},
                                         QuantizeCase{"Q5_K_M", 2.1e-3}),
                         [](const auto& test) { return std::string(test.param.type); });

class Quantize : public testing::Test {
 protected:
  json types_of(const std::string& file) {
    json types = json::object();
    const json info = json::parse(output_of({"inspect", file, "--json", "--tensors"}));
    for (const json& tensor : info.at("tensors")) {
      types[tensor.at("name").get<std::string>()] = tensor.at("type");
    }
    return types;
  }

  TempDir dir;
  const std::string source = make_model(dir / "f32.gguf", {{"--layers", "2"}});
  const std::string result = dir / "out.gguf";
};

TEST_F(Quantize, ToF32IsTheIdentity) {
  ASSERT_TRUE(succeeded(run_sluice({"quantize", source, result, "f32"})));
  EXPECT_TRUE(read_file(source) == read_file(result));
}

TEST_F(Quantize, ThereAndBackKeepsWhatTheTypeCouldHold) {
  ASSERT_TRUE(succeeded(run_sluice({"quantize", source, result, "F16"})));
  const Outcome back = run_sluice({"quantize", result, dir / "back.gguf", "F32"});
  ASSERT_TRUE(succeeded(back));
  EXPECT_EQ(back.err, "") << "F16 is no loss worth a note";
  ASSERT_TRUE(succeeded(run_sluice({"quantize", dir / "back.gguf", dir / "again.gguf", "F16"})));
  EXPECT_TRUE(read_file(result) == read_file(dir / "again.gguf"));
}

TEST_F(Quantize, LeavesNormsAndRoutersAlone) {
  ASSERT_TRUE(succeeded(run_sluice({"quantize", source, result, "Q4_K"})));
  const json types = types_of(result);
  EXPECT_EQ(types.at("blk.0.attn_norm.weight"), "F32");
  EXPECT_EQ(types.at("blk.1.ffn_gate_inp.weight"), "F32");
  EXPECT_EQ(types.at("blk.1.ffn_down_exps.weight"), "Q4_K");
  EXPECT_EQ(types.at("token_embd.weight"), "Q4_K");
}

TEST_F(Quantize, ToAMixSpendsMoreBitsWhereTheyMatter) {
  ASSERT_TRUE(succeeded(run_sluice({"quantize", source, result, "Q4_K_M"})));
  const json types = types_of(result);
  EXPECT_EQ(types.at("output.weight"), "Q6_K");
  EXPECT_EQ(types.at("blk.1.ffn_down_exps.weight"), "Q6_K");
  EXPECT_EQ(types.at("blk.1.ffn_up_exps.weight"), "Q4_K");
}

TEST_F(Quantize, SaysInJsonWhatItDid) {
  const json info =
      json::parse(output_of({"quantize", source, result, "Q8_0", "--json", "-t", "2"}));
  EXPECT_EQ(info.at("path"), result);
  EXPECT_LT(info.at("bytes_after").get<uint64_t>(), info.at("bytes_before").get<uint64_t>());
  const json types = types_of(result);
  const auto n_q8 = std::ranges::count(types, "Q8_0");
  EXPECT_EQ(info.at("n_converted"), n_q8);
  EXPECT_EQ(info.at("n_kept"), std::ssize(types) - n_q8);
}

TEST_F(Quantize, GivesTheSameBytesOnAnyNumberOfThreads) {
  ASSERT_TRUE(succeeded(run_sluice({"quantize", source, result, "Q4_K", "-t", "1"})));
  ASSERT_TRUE(succeeded(run_sluice({"quantize", source, dir / "t3.gguf", "Q4_K", "-t", "3"})));
  EXPECT_TRUE(read_file(result) == read_file(dir / "t3.gguf"));
}

TEST_F(Quantize, NotesThatATensorLosesTwice) {
  ASSERT_TRUE(succeeded(run_sluice({"quantize", source, result, "Q4_0"})));
  const Outcome outcome = run_sluice({"quantize", result, dir / "twice.gguf", "Q8_0"});
  ASSERT_TRUE(succeeded(outcome));
  EXPECT_TRUE(outcome.err.starts_with("sluice: note: ")) << outcome;
}

TEST_F(Quantize, RefusesATypeItCannotWriteAndAnUnknownOne) {
  EXPECT_TRUE(refused(run_sluice({"quantize", source, result, "Q2_K"}),
                      {"cannot write Q2_K", "expected one of", "Q8_0", "Q4_K_M"}));
  EXPECT_TRUE(refused(run_sluice({"quantize", source, result, "Q4_K_XL"}),
                      {"unknown type 'Q4_K_XL'", "expected one of"}));
  EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"f32.gguf"}));
}

TEST_F(Quantize, RefusesToWriteOverItsOwnInput) {
  const std::string before = read_file(source);
  const auto expect_refusal = [&](const std::string& in, const std::string& out) {
    EXPECT_TRUE(refused(run_sluice({"quantize", in, out, "Q8_0"}),
                        {out, "is the input itself", "another output file"}));
  };
  expect_refusal(source, source);
  expect_refusal(source, dir.path() + "/./f32.gguf");
  std::filesystem::create_symlink("f32.gguf", dir / "link.gguf");
  expect_refusal(source, dir / "link.gguf");
  expect_refusal(dir / "link.gguf", source);
  // While it is incomplete, the output is called out.gguf.partial.
  std::filesystem::copy_file(source, dir / "out.gguf.partial");
  expect_refusal(dir / "out.gguf.partial", result);
  EXPECT_TRUE(read_file(source) == before);
  EXPECT_TRUE(read_file(dir / "out.gguf.partial") == before);
}

TEST_F(Quantize, RefusesToWriteOverAnyShardOfItsInput) {
  const EditableModel model(source);
  const auto [first, second] = split_in_two(model, dir / "s");
  const std::string before = read_file(second);
  EXPECT_TRUE(
      refused(run_sluice({"quantize", first, second, "Q8_0"}), {second, "is the input itself"}));
  EXPECT_TRUE(read_file(second) == before);

  // Elsewhere the shards become one file.
  ASSERT_TRUE(succeeded(run_sluice({"quantize", first, result, "F32"})));
  const json info = json::parse(output_of({"inspect", result, "--json"}));
  EXPECT_EQ(info.at("n_shards"), 1);
  EXPECT_EQ(info.at("n_tensors"), model.tensors.size());
  EXPECT_TRUE(output_of({"logits", "-m", result, "--tokens", "1,2"}) ==
              output_of({"logits", "-m", source, "--tokens", "1,2"}));
}

TEST_F(Quantize, RefusesNumbersThatAreNotFinite) {
  EditableModel model(source);
  model.tensor("blk.1.ffn_up_exps.weight")
      .data.replace(256 * 4 * 5, 4, std::string("\0\0\xc0\x7f", 4));
  model.write(source);
  EXPECT_TRUE(refused(run_sluice({"quantize", source, result, "Q4_K"}),
                      {source, "'blk.1.ffn_up_exps.weight'", "not finite in row 5", "damaged"}));
  EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"f32.gguf"}));
}

TEST(QuantizeCommand, ListsWhatItCanWrite) {
  const TempDir dir;
  const std::string source = make_model(dir / "f32.gguf");
  const Outcome listed = run_sluice({"quantize", "--types"});
  ASSERT_TRUE(succeeded(listed));
  std::istringstream lines(listed.out);
  int n_types = 0;
  for (std::string name, rest; lines >> name && std::getline(lines, rest); ++n_types) {
    EXPECT_NE(rest.find(" bits a weight"), std::string::npos) << name << rest;
    EXPECT_TRUE(succeeded(run_sluice({"quantize", source, dir / "out.gguf", name}))) << name;
  }
  EXPECT_EQ(n_types, 10);
  EXPECT_TRUE(refused(run_sluice({"quantize", source, dir / "out.gguf", "Q9_Z"}),
                      {"unknown type 'Q9_Z'", "Q4_K_M"}));
}

TEST(QuantizeCommand, TakesTheModelByItsFlagAndThreadsAsLlamaCppDoes) {
  const TempDir dir;
  const std::string source = make_model(dir / "f32.gguf"), out = dir / "out.gguf";
  for (const Args& words : {Args{source, out, "q4_0"}, Args{source, out, "q4_0", "1"},
                            Args{"-m", source, out, "q4_0"}, Args{out, "q4_0", "-m", source}}) {
    const Outcome outcome = run_sluice(Args{"quantize"} + words);
    EXPECT_TRUE(succeeded(outcome));
    EXPECT_NE(outcome.out.find("out.gguf: Q4_0, "), std::string::npos) << outcome;
  }
  const char* const example = "sluice quantize model.gguf model-Q4_K_M.gguf Q4_K_M";
  for (const Args& words : {Args{}, Args{source}, Args{source, "Q4_0"}, Args{"-m", source, out},
                            Args{source, out, "Q4_0", "1", "2"}}) {
    EXPECT_TRUE(misused(run_sluice(Args{"quantize"} + words), {example}));
  }
  EXPECT_TRUE(misused(run_sluice({"quantize", source, out, "Q4_0", "x"}), {"threads", "'x'"}));
}

}  // namespace
}  // namespace sluice::test
