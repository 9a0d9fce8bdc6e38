// Sound GGUF files that hold no model sluice can run: a tensor or a key is wrong. The commands that
// compute refuse them in one line; inspect tells the same as the obstacle.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "cli/edit.h"
#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

struct BadModel {
  std::string name;
  std::function<void(EditableModel&)> change;
  std::vector<std::string> parts;  // of the error's text
};

void PrintTo(const BadModel& bad, std::ostream* to) { *to << bad.name; }

BadModel with_key(const std::string& name, const std::string& key, gguf::Value value,
                  std::vector<std::string> parts) {
  return {name, [=](EditableModel& model) { model.set("qwen3moe." + key, value); },
          std::move(parts)};
}

const quant::TypeInfo& type_of(uint32_t id) { return *quant::find_type_info(id); }
const quant::TypeInfo& f32() { return type_of(0); }

std::vector<BadModel> wrong_tensors() {
  const std::string up = "blk.0.ffn_up_exps.weight";
  return {
      {"a_tensor_of_another_width",
       [=](EditableModel& m) {
         m.reshape(up, f32(), {256, 128, 4});
       },
       {up, "[256, 128, 4]", "expected [256, 256, 4]"}},
      {"a_tensor_of_fewer_experts",
       [=](EditableModel& m) {
         m.reshape(up, f32(), {256, 256, 3});
       },
       {up, "[256, 256, 3]", "expected [256, 256, 4]"}},
      {"a_tensor_of_fewer_dimensions",
       [=](EditableModel& m) {
         m.reshape(up, f32(), {256, 1024});
       },
       {up, "[256, 1024]", "expected [256, 256, 4]"}},
      {"a_norm_of_another_length",
       [](EditableModel& m) { m.reshape("output_norm.weight", f32(), {255}); },
       {"output_norm.weight", "[255]", "expected [256]"}},
      {"a_quantised_norm",
       [](EditableModel& m) { m.reshape("output_norm.weight", type_of(8), {256}); },
       {"output_norm.weight", "Q8_0", "expected F32, F16 or BF16"}},
      {"a_missing_tensor",
       [=](EditableModel& m) {
         std::erase_if(m.tensors, [&](const auto& t) { return t.name == up; });
       },
       {up, "is missing", "expected one of shape [256, 256, 4]"}},
      {"no_tensors", [](EditableModel& m) { m.tensors.clear(); }, {"token_embd", "is missing"}},
      {"a_tensor_nobody_knows",
       [](EditableModel& m) {
         m.tensors.push_back({"blk.0.secret\n.weight", {1}, &f32(), "1234"});
       },
       {"'blk.0.secret\\x0a.weight'", "not known for architecture 'qwen3moe'"}},
      {"a_layer_too_many",
       [](EditableModel& m) {
         m.tensors.push_back({"blk.1.attn_norm.weight", {1}, &f32(), "1234"});
       },
       {"blk.1.attn_norm.weight", "not known"}},
      {"a_type_that_is_known_but_not_computed_with",
       [=](EditableModel& m) {
         m.reshape(up, type_of(16), {256, 256, 4});
       },
       {up, "IQ2_XXS", "cannot compute with"}},
      {"integers_as_weights",
       [=](EditableModel& m) {
         m.reshape(up, type_of(26), {256, 256, 4});
       },
       {up, "I32", "cannot compute with"}},
  };
}

std::vector<BadModel> wrong_kinds() {
  return {
      {"another_architecture",
       [](EditableModel& m) { m.set("general.architecture", std::string("deepseek2")); },
       {"'deepseek2' is not supported", "qwen3moe, qwen2moe, olmoe, llama"}},
      {"an_architecture_that_forges_a_second_line",
       [](EditableModel& m) { m.set("general.architecture", std::string("a\nsluice: fine")); },
       {"'a\\x0asluice: fine'"}},
      {"an_architecture_that_is_a_number",
       [](EditableModel& m) { m.set("general.architecture", uint32_t{3}); },
       {"'general.architecture'", "u32", "expected a string"}},
      {"no_architecture",
       [](EditableModel& m) { m.remove_key("general.architecture"); },
       {"'general.architecture' is missing", "expected a string"}},
      {"a_dense_model",
       [](EditableModel& m) { m.remove_key("qwen3moe.expert_count"); },
       {"dense", "qwen3moe.expert_count", "Mixture-of-Experts"}},
      {"no_width",
       [](EditableModel& m) { m.remove_key("qwen3moe.embedding_length"); },
       {"'qwen3moe.embedding_length' is missing", "expected an integer"}},
      {"an_eos_outside_the_vocabulary",
       [](EditableModel& m) { m.set("tokenizer.ggml.eos_token_id", uint32_t{320}); },
       {"'tokenizer.ggml.eos_token_id' is 320", "0 to 319"}},
      {"tokens_that_are_no_list",
       [](EditableModel& m) { m.set("tokenizer.ggml.tokens", std::string("abc")); },
       {"tokenizer.ggml.tokens", "expected 1 to"}},
      {"a_vocabulary_that_is_empty",
       [](EditableModel& m) { m.set("tokenizer.ggml.tokens", std::vector<std::string>()); },
       {"tokenizer.ggml.tokens holds 0 tokens", "expected 1 to"}},
  };
}

std::vector<BadModel> wrong_sizes() {
  constexpr int64_t k2To40 = int64_t{1} << 40;
  return {
      with_key("layers_as_text", "block_count", std::string("1"),
               {"'qwen3moe.block_count' is of type string", "expected an integer"}),
      with_key("layers_as_float", "block_count", 1.0f, {"block_count", "f32", "an integer"}),
      with_key("no_layers", "block_count", uint32_t{0}, {"block_count' is 0", "from 1 to"}),
      with_key("negative_layers", "block_count", int32_t{-1}, {"block_count' is -1", "from 1 to"}),
      with_key("layers_without_tensors", "block_count", uint32_t{2}, {"blk.1.", "is missing"}),
      with_key("too_many_layers", "block_count", uint32_t{5000}, {"5000", "at most 4096"}),
      with_key("layers_2_to_40", "block_count", k2To40, {"is 1099511627776", "from 1 to 1048576"}),
      with_key("a_width_of_2_to_40", "embedding_length", k2To40, {"is 1099511627776", "1048576"}),
      with_key("a_width_of_zero", "embedding_length", uint64_t{0}, {"is 0", "from 1 to"}),
      with_key("another_width", "embedding_length", uint32_t{512},
               {"token_embd.weight", "[256, 320]", "expected [512, 320]"}),
      with_key("heads_that_do_not_divide", "attention.head_count", uint32_t{5},
               {"5 heads over 2 key-value heads", "expected a whole number"}),
      with_key("no_heads", "attention.head_count", uint32_t{0}, {"is 0", "from 1 to"}),
      with_key("heads_per_layer_for_another_model", "attention.head_count",
               std::vector<uint32_t>{4, 4}, {"array of 2 u32", "expected one value, or 1"}),
      with_key("an_odd_head", "attention.key_length", uint32_t{63}, {"63", "expected"}),
      with_key("a_rope_wider_than_the_head", "rope.dimension_count", uint32_t{66},
               {"rope.dimension_count is 66", "up to the head size 64"}),
      with_key("half_a_rope", "rope.dimension_count", uint32_t{32},
               {"rope.dimension_count is 32", "expected the head size 64"}),
      with_key("a_rope_base_of_zero", "rope.freq_base", 0.0f, {"rope base 0", "above 1"}),
      with_key("a_rope_base_of_infinity", "rope.freq_base", std::numeric_limits<float>::infinity(),
               {"rope.freq_base' is inf", "expected a finite"}),
      with_key("an_unknown_rope_scaling", "rope.scaling.type", std::string("lo\nng"),
               {"rope.scaling.type is 'lo\\x0ang'", "expected none, linear or yarn"}),
      with_key("a_negative_epsilon", "attention.layer_norm_rms_epsilon", -1.0f,
               {"epsilon is -1", "expected 0 or more"}),
      with_key("a_context_of_zero", "context_length", uint32_t{0}, {"context_length' is 0"}),
      with_key("a_context_of_2_to_40", "context_length", k2To40, {"is 1099511627776"}),
      with_key("more_experts_used_than_there_are", "expert_used_count", uint32_t{5},
               {"5 of 4 experts used", "no more used than there are"}),
      with_key("no_experts_used", "expert_used_count", uint32_t{0}, {"is 0", "from 1 to"}),
      with_key("too_many_experts", "expert_count", uint32_t{1025}, {"1025 experts", "1024"}),
      with_key("experts_2_to_40", "expert_count", k2To40, {"is 1099511627776", "1048576"}),
      with_key("more_experts_than_the_tensors_hold", "expert_count", uint32_t{8},
               {"ffn_gate_inp", "[256, 4]", "expected [256, 8]"}),
      with_key("another_expert_width", "expert_feed_forward_length", uint32_t{512},
               {"[256, 256, 4]", "expected [256, 512, 4]"}),
  };
}

std::vector<BadModel> bad_models() {
  std::vector<BadModel> all;
  for (auto&& part : {wrong_tensors(), wrong_kinds(), wrong_sizes()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

class BadModels : public testing::TestWithParam<BadModel> {};

TEST_P(BadModels, AreRefusedWithTheReason) {
  const BadModel& bad = GetParam();
  const TempDir dir;
  EditableModel model(make_model(dir / "good.gguf"));
  bad.change(model);
  const std::string path = model.write(dir / "bad.gguf");

  auto parts = bad.parts;
  parts.push_back(path);
  EXPECT_TRUE(refused(run_sluice({"logits", "-m", path, "--tokens", "1", "--json"}), parts));
  EXPECT_TRUE(refused(run_sluice({"run", "-m", path, "--tokens", "1"}), parts));

  // inspect is for looking at any file; it fails only where it cannot even name the architecture.
  const Outcome inspected = run_sluice({"inspect", path, "--json"});
  if (bad.name == "an_architecture_that_is_a_number") {
    EXPECT_TRUE(refused(inspected, parts));
    return;
  }
  ASSERT_TRUE(succeeded(inspected));
  const auto info = nlohmann::json::parse(inspected.out);
  if (bad.name == "an_eos_outside_the_vocabulary") return;  // not asked for when looking
  EXPECT_EQ(info.at("runs"), false);
  for (const std::string& part : parts) {
    EXPECT_NE(info.at("obstacle").get<std::string>().find(part), std::string::npos)
        << "expected to read " << part << " in " << info.at("obstacle");
  }
}

INSTANTIATE_TEST_SUITE_P(Each, BadModels, testing::ValuesIn(bad_models()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace sluice::test
