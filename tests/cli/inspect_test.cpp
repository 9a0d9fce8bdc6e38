// sluice inspect: what it says about a file is what synth was told to write.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "cli/edit.h"
#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

using nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Inspect : public testing::Test {
 protected:
  TempDir dir;
  const std::string path = make_model(
      dir / "m.gguf", {{"--arch", "qwen2moe"}, {"--layers", "2"}, {"--d-ff-shared", "512"}});
};

TEST_F(Inspect, TellsTheShapeInJson) {
  const json info = json::parse(output_of({"inspect", path, "--json"}));
  EXPECT_EQ(info.at("path"), path);
  EXPECT_EQ(info.at("architecture"), "qwen2moe");
  EXPECT_EQ(info.at("name"), "synthetic qwen2moe F32");
  EXPECT_EQ(info.at("n_shards"), 1);
  EXPECT_EQ(info.at("file_bytes"), std::filesystem::file_size(path));
  EXPECT_EQ(info.at("runs"), true);
  const json shape = {{"n_layers", 2},       {"d_model", 256},      {"n_heads", 4},
                      {"n_kv_heads", 2},     {"head_dim", 64},      {"n_experts", 4},
                      {"n_experts_used", 2}, {"d_ff", 256},         {"d_ff_shared", 512},
                      {"n_vocab", kVocab},   {"n_ctx_train", 4096}, {"is_dense", false}};
  EXPECT_EQ(info.at("shape"), shape);
  EXPECT_FALSE(info.contains("tensors"));
  EXPECT_FALSE(info.contains("metadata"));
}

TEST_F(Inspect, CountsEveryValueAndByte) {
  const json info = json::parse(output_of({"inspect", path, "--json", "--tensors"}));
  uint64_t n_values = 0;
  uint64_t n_bytes = 0;
  std::set<std::string> names;
  for (const json& tensor : info.at("tensors")) {
    uint64_t n = 1;
    for (const json& dim : tensor.at("shape")) n *= dim.get<uint64_t>();
    EXPECT_EQ(tensor.at("bytes"), n * 4) << tensor.dump();  // all F32
    n_values += n;
    n_bytes += tensor.at("bytes").get<uint64_t>();
    names.insert(tensor.at("name").get<std::string>());
  }
  EXPECT_EQ(names.size(), info.at("n_tensors").get<size_t>());
  EXPECT_TRUE(names.contains("blk.1.ffn_down_shexp.weight"));
  EXPECT_EQ(info.at("n_parameters"), n_values);
  ASSERT_EQ(info.at("types").size(), 1u) << info.at("types").dump();
  EXPECT_EQ(info.at("types")[0].at("type"), "F32");
  EXPECT_EQ(info.at("types")[0].at("bytes"), n_bytes);
}

TEST_F(Inspect, ListsEveryKeyAndShortensLongArrays) {
  const json info = json::parse(output_of({"inspect", path, "--json", "--metadata"}));
  const json& keys = info.at("metadata");
  EXPECT_EQ(keys.at("general.architecture"), "qwen2moe");
  EXPECT_EQ(keys.at("qwen2moe.expert_shared_feed_forward_length"), 512);
  EXPECT_EQ(keys.at("tokenizer.ggml.add_bos_token"), false);
  EXPECT_EQ(keys.at("tokenizer.ggml.tokens").at("length"), kVocab);
  EXPECT_EQ(keys.at("tokenizer.ggml.tokens").at("first").size(), 8u);
}

TEST_F(Inspect, SaysTheSameInWords) {
  const std::string brief = output_of({"inspect", path});
  for (const char* part : {"'qwen2moe'", "2 of width 256, 4 heads (2 key-value) of 64",
                           "2 of 4 used, width 256, and a shared one of 512", "320 tokens",
                           "4096 tokens", "F32", "sluice can run it"}) {
    EXPECT_PRED2(contains, brief, part);
  }
  EXPECT_FALSE(contains(brief, "blk.1.ffn_down_shexp.weight"));
  EXPECT_FALSE(contains(brief, "tokenizer.ggml.eos_token_id"));
  EXPECT_PRED2(contains, output_of({"inspect", path, "--tensors"}),
               "'blk.1.ffn_down_shexp.weight'");
  EXPECT_PRED2(contains, output_of({"inspect", path, "--metadata"}),
               "'tokenizer.ggml.eos_token_id' = 258");
}

TEST_F(Inspect, FindsNoFaultInAGoodFile) {
  EXPECT_EQ(output_of({"inspect", path, "--check-tensors"}), output_of({"inspect", path}));
}

TEST_F(Inspect, DescribesAFileThatSluiceCannotRunAndSaysWhy) {
  EditableModel model(path);
  model.set("general.architecture", std::string("mamba"));
  model.write(dir / "mamba.gguf");
  const json info = json::parse(output_of({"inspect", dir / "mamba.gguf", "--json"}));
  EXPECT_EQ(info.at("runs"), false);
  EXPECT_PRED2(contains, info.at("obstacle").get<std::string>(), "'mamba' is not supported");
  EXPECT_FALSE(info.contains("shape"));
  EXPECT_PRED2(contains, output_of({"inspect", dir / "mamba.gguf"}), "sluice cannot run it: ");
}

TEST_F(Inspect, WritesValidJsonForTextThatIsNotUtf8) {
  EditableModel model(path);
  model.set("general.name", std::string("caf\xe9\n\x01"));
  model.write(dir / "latin1.gguf");
  const std::string text = output_of({"inspect", dir / "latin1.gguf", "--json", "--metadata"});
  EXPECT_EQ(json::parse(text).at("name"), "caf\xef\xbf\xbd\n\x01");
}

// One bad number anywhere, in each way a type can hold one.
class BadNumber : public testing::TestWithParam<std::tuple<const char*, size_t, std::string>> {};

TEST_P(BadNumber, IsFoundByCheckTensorsAlone) {
  const auto& [type, at, bytes] = GetParam();
  const TempDir dir;
  const std::string path = make_model(dir / "m.gguf", {{"--type", type}});
  EditableModel model(path);
  const char* name = "blk.0.ffn_up_exps.weight";
  EditableTensor& tensor = model.tensor(name);
  tensor.data.replace(7 * tensor.type->block_bytes + at, bytes.size(), bytes);
  model.write(path);
  EXPECT_TRUE(succeeded(run_sluice({"inspect", path})));
  EXPECT_TRUE(refused(run_sluice({"inspect", path, "--check-tensors"}),
                      {path, name, "not finite", "block 7 of", "damaged"}));
  EXPECT_TRUE(refused(run_sluice({"inspect", path, "--check-tensors", "--json"}), {"block 7 of"}));
}

const std::string kHalfNan = "\x01\x7e";
const std::string kHalfInf("\x00\x7c", 2);
INSTANTIATE_TEST_SUITE_P(
    Types, BadNumber,
    testing::Values(std::tuple("F32", 0, std::string("\x00\x00\xc0\x7f", 4)),  // NaN
                    std::tuple("F32", 0, std::string("\x00\x00\x80\xff", 4)),  // -infinity
                    std::tuple("F16", 0, kHalfNan), std::tuple("BF16", 0, std::string("\xc0\x7f")),
                    std::tuple("Q8_0", 0, kHalfInf), std::tuple("Q4_1", 2, kHalfNan),
                    std::tuple("Q4_K", 2, kHalfInf), std::tuple("Q6_K", 208, kHalfNan),
                    std::tuple("MXFP4", 0, std::string("\xff"))),
    [](const auto& test) {
      return std::string(std::get<0>(test.param)) + "_" + std::to_string(test.index);
    });

}  // namespace
}  // namespace sluice::test
