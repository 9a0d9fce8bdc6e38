// Forms that only some files of an architecture have: other keys for the same thing, matrices
// merged or apart. Each is compared with the usual form of the same model.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/model_file/shape_models.h"

namespace sluice::model_file::test {
namespace {

using policy::LayerShape;
using policy::ModelShape;

void erase(Directory& d, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto is_it = [&](const gguf::TensorInfo& t) { return t.name == name; };
    ASSERT_EQ(std::erase_if(d.tensors(), is_it), 1u) << name;
  }
}

// By layer, what `property` gives.
template <typename Property>
std::vector<int> by_layer(const ModelShape& shape, Property&& property) {
  std::vector<int> out;
  for (const LayerShape& layer : shape.layers) out.push_back(property(layer) ? 1 : 0);
  return out;
}

TEST(ShapeForms, GptOssSlidesInAllButTheLastOfEveryFewLayers) {
  Directory d = gpt_oss();
  const auto slides = [](const LayerShape& layer) { return layer.window > 0; };
  for (const int64_t period : {1, 2, 3, 24, 100}) {
    d.set("attention.sliding_window_pattern", period);
    const std::vector<int> got = by_layer(d.shape(), slides);
    for (size_t i = 0; i < got.size(); ++i) {
      const bool is_last = (static_cast<int64_t>(i) + 1) % period == 0;
      EXPECT_EQ(got[i], is_last ? 0 : 1) << "layer " << i << ", period " << period;
    }
  }
}

// Four layers and an MTP block; `marks` says which of the five are recurrent.
Directory small_hybrid(const std::vector<bool>& recurs) {
  Directory d("qwen35moe", hybrid_keys(5, 4, 2) + ", nextn_predict_layers 1");
  d.add_ends(2048, 1000, Type::q4_k, std::nullopt);
  for (int i = 0; i < 5; ++i) {
    add_hybrid_layer(d, i, !recurs[static_cast<size_t>(i)], 4, /*one_ba=*/false);
    d.add_to(i, Type::q4_k,
             "ffn_gate_exps 2048x512x4, ffn_up_exps 2048x512x4, ffn_down_exps 512x2048x4");
  }
  d.add_to(4, Type::q4_k, "nextn.eh_proj.weight 4096x2048");
  d.add_to(4, Type::f32, "nextn.enorm.weight 2048, nextn.hnorm.weight 2048");
  return d;
}

TEST(ShapeForms, HybridsAttendEveryFewLayersOrWhereTheFileSaysSo) {
  const auto attends = [](const LayerShape& layer) { return layer.attends(); };
  Directory usual = small_hybrid({true, true, true, false, false});
  EXPECT_EQ(by_layer(usual.shape(), attends), (std::vector{0, 0, 0, 1}));
  EXPECT_TRUE(usual.shape().mtp[0].attends());
  EXPECT_TRUE(usual.shape().tied);

  Directory every_second = small_hybrid({true, false, true, false, false});
  every_second.set("full_attention_interval", int64_t{2});
  EXPECT_EQ(by_layer(every_second.shape(), attends), (std::vector{0, 1, 0, 1}));

  const std::vector<bool> marks = {false, true, true, false, false};
  Directory marked = small_hybrid(marks);
  marked.set("attention.recurrent_layers", marks);
  EXPECT_EQ(by_layer(marked.shape(), attends), (std::vector{1, 0, 0, 1}));
  marked.set("attention.recurrent_layers", std::vector<bool>{false, true, true, false, true});
  EXPECT_TRUE(marked.shape().mtp[0].attends()) << "MTP blocks always do";
  marked.set("attention.recurrent_layers", std::vector<bool>(4));
  expect_contains(marked.refusal(Errc::bad_file), "5, one for each layer");
}

// q, k, v and z in one matrix: 2048 x (8192 + 4096).
TEST(ShapeForms, TheFirstFilesOfQwen3NextHaveOneInputMatrix) {
  Directory d = small_hybrid({true, true, true, false, false});
  const ModelShape usual = d.shape();
  erase(d, {"blk.0.attn_qkv.weight", "blk.0.attn_gate.weight"});
  d.add_to(0, Type::q4_k, "ssm_in 2048x12288");
  EXPECT_EQ(d.shape().layers[0].trunk_bytes, usual.layers[0].trunk_bytes);
  EXPECT_EQ(d.shape().widest_row, usual.widest_row);
  EXPECT_EQ(d.shape().layers[0].state_bytes, usual.layers[0].state_bytes);
}

// 2048 x 1536 and 1536 x 3072 instead of 2048 x 3072, in Q8_0, and a norm of 1536.
TEST(ShapeForms, LargeDeepseeksCompressTheirQueriesToo) {
  Directory d = deepseek(/*legacy=*/false);
  const ModelShape lite = d.shape();
  d.set("attention.q_lora_rank", int64_t{1536});
  expect_contains(d.refusal(), "'blk.0.attn_q_a.weight' is missing");
  for (int i = 0; i < 27; ++i) {
    erase(d, {cat("blk.", i, ".attn_q.weight")});
    d.add_to(i, Type::q8_0, "attn_q_a 2048x1536, attn_q_b 1536x3072");
    d.add_to(i, Type::f32, "attn_q_a_norm 1536");
  }
  const uint64_t more = (2048 * 1536 + 1536 * 3072 - 2048 * 3072) / 32 * 34 + 4 * 1536;
  EXPECT_EQ(d.shape().layers[5].trunk_bytes, lite.layers[5].trunk_bytes + more);
  EXPECT_EQ(d.shape().layers[5].k_head_dim, 576);
}

}  // namespace
}  // namespace sluice::model_file::test
