// The sizes read from tensor directories of every architecture of the specification, against totals
// computed by hand. Q4_K takes 144 bytes for 256 weights, Q5_K 176, Q6_K 210; Q8_0 34 for 32, MXFP4
// 17.
// SPDX-License-Identifier: Apache-2.0
#include "model_file/shape.h"

#include <gtest/gtest.h>

#include "base/expert_slot.h"
#include "unit/model/tiny_model.h"
#include "unit/model_file/shape_models.h"

namespace sluice::model_file::test {
namespace {

using namespace model::test;  // tiny models to start from

using policy::LayerShape;
using policy::ModelShape;

uint64_t trunk_bytes(const ModelShape& shape) {
  uint64_t sum = 0;
  for (const LayerShape& layer : shape.layers) sum += layer.trunk_bytes;
  return sum;
}

uint64_t kv_bytes(const ModelShape& shape, policy::KvType type, int n_ctx) {
  uint64_t sum = 0;
  for (const LayerShape& layer : shape.layers) {
    sum += policy::kv_bytes(layer, {.n_ctx = n_ctx, .k_type = type, .v_type = type});
  }
  return sum;
}

// Every byte of the directory is booked exactly once, and so are those before a boundary of 64.
// (The experts and embeddings of these tests all have a multiple of that.)
void expect_complete(const Directory& directory, const ModelShape& shape) {
  const uint64_t booked = trunk_bytes(shape) + shape.expert_bytes() + shape.mtp_bytes() +
                          shape.output_bytes + (shape.tied ? 0 : shape.embedding_bytes);
  EXPECT_EQ(booked, directory.n_bytes());
}

TEST(Shape, OfQwen3Moe) {
  const Directory d = qwen3_30b();
  const ModelShape s = d.shape();
  expect_complete(d, s);
  EXPECT_EQ(s.n_layers(), 48);
  EXPECT_EQ(s.n_experts_used, 8);
  EXPECT_EQ(s.d_ff, 768);
  EXPECT_EQ(s.n_vocab, 151936);
  EXPECT_EQ(s.widest_row, 4096u + 512 + 512 + 4096 + 2048 + 128);  // attention's own output too
  // q and out 2 x 4,718,592, k and v 2 x 589,824, router and norms 4 x 266,496; v in Q6_K 860,160.
  EXPECT_EQ(s.layers[7].trunk_bytes, 11'682'816u);
  EXPECT_EQ(s.layers[8].trunk_bytes, 11'953'152u);
  EXPECT_EQ(trunk_bytes(s), 567'263'232u);  // 24 of each
  EXPECT_EQ(s.layers[7].shared_bytes, 0u);
  // gate and up 2 x 884,736, down 884,736 or 1,290,240.
  EXPECT_EQ(s.layers[7].expert_bytes, 2'654'208u);
  EXPECT_EQ(s.layers[8].expert_bytes, 3'059'712u);
  EXPECT_EQ(s.expert_bytes(), 17'553'162'240u);  // 24 x 128 of each
  EXPECT_EQ(s.layers[7].expert_elems, 3u * 2048 * 768);
  EXPECT_EQ(s.embedding_bytes, 175'030'272u);      // 151936 x 8 x 144
  EXPECT_EQ(s.output_bytes, 255'252'480u + 8192);  // 151936 x 8 x 210, and the norm
  EXPECT_EQ(kv_bytes(s, policy::KvType::f16, 4096), 402'653'184u);  // 48 x 4096 x 2 x 512 x 2
}

TEST(Shape, OfQwen2Moe) {
  Directory d("qwen2moe",
              "block_count 24, embedding_length 2048, expert_count 60, expert_used_count 4, "
              "expert_feed_forward_length 1408, expert_shared_feed_forward_length 5632, "
              "attention.head_count 16");
  d.add_ends(2048, 151936, Type::q8_0, Type::q8_0);
  for (int i = 0; i < 24; ++i) {
    d.add_to(i, Type::f32,
             "attn_norm 2048, ffn_norm 2048, attn_q.bias 2048, attn_k.bias 2048, attn_v.bias 2048, "
             "ffn_gate_inp 2048x60, ffn_gate_inp_shexp 2048");
    d.add_to(i, Type::q8_0,
             "attn_q 2048x2048, attn_k 2048x2048, attn_v 2048x2048, attn_output 2048x2048, "
             "ffn_gate_shexp 2048x5632, ffn_up_shexp 2048x5632, ffn_down_shexp 5632x2048, "
             "ffn_gate_exps 2048x1408x60, ffn_up_exps 2048x1408x60, ffn_down_exps 1408x2048x60");
  }
  const ModelShape s = d.shape();
  expect_complete(d, s);
  // f32: 66 x 2048 x 4 = 540,672; attention 4 x 2048 x 2048 / 32 x 34 = 17,825,792; shared expert
  // 3 x 2048 x 5632 / 32 x 34 = 36,765,696.
  EXPECT_EQ(s.layers[0].trunk_bytes, 55'132'160u);
  EXPECT_EQ(s.layers[0].shared_bytes, 36'765'696u + 8192);  // with its gate
  EXPECT_EQ(s.layers[0].expert_bytes, 9'191'424u);          // 3 x 2048 x 1408 / 32 x 34
  EXPECT_EQ(s.layers[0].n_kv_heads, 16);                    // no key: as many as heads
  EXPECT_EQ(s.layers[0].k_head_dim, 128);                   // 2048 / 16
}

TEST(Shape, OfOlmoe) {
  Directory d("olmoe",
              "block_count 16, embedding_length 2048, expert_count 64, expert_used_count 8, "
              "feed_forward_length 1024, attention.head_count 16, attention.head_count_kv 16");
  d.add_ends(2048, 50304, Type::q4_k, Type::q6_k);
  for (int i = 0; i < 16; ++i) {
    d.add_to(
        i, Type::f32,
        "attn_norm 2048, ffn_norm 2048, attn_q_norm 2048, attn_k_norm 2048, ffn_gate_inp 2048x64");
    d.add_to(i, Type::q4_k,
             "attn_q 2048x2048, attn_k 2048x2048, attn_v 2048x2048, attn_output 2048x2048, "
             "ffn_gate_exps 2048x1024x64, ffn_up_exps 2048x1024x64, ffn_down_exps 1024x2048x64");
  }
  const ModelShape s = d.shape();
  expect_complete(d, s);
  // f32: 68 x 2048 x 4 = 557,056; attention 4 x 2048 x 2048 / 256 x 144 = 9,437,184.
  EXPECT_EQ(trunk_bytes(s), 16u * 9'994'240);
  EXPECT_EQ(s.layers[15].expert_bytes, 3'538'944u);  // 3 x 2048 x 1024 / 256 x 144
  EXPECT_EQ(s.output_bytes, 84'510'720u + 8192);     // 50304 x 8 x 210
}

// Attention of Mixtral: k and v in Q8_0, the output projection in Q5_K.
Directory mixtral_trunk() {
  Directory d("llama",
              "block_count 32, embedding_length 4096, expert_count 8, expert_used_count 2, "
              "feed_forward_length 14336, attention.head_count 32, attention.head_count_kv 8");
  d.add_ends(4096, 32000, Type::q4_k, std::nullopt);
  for (int i = 0; i < 32; ++i) {
    d.add_to(i, Type::f32, "attn_norm 4096, ffn_norm 4096, ffn_gate_inp 4096x8");
    d.add_to(i, Type::q4_k, "attn_q 4096x4096");
    d.add_to(i, Type::q8_0, "attn_k 4096x1024, attn_v 4096x1024");
    d.add_to(i, Type::q5_k, "attn_output 4096x4096");
  }
  return d;
}

void expect_mixtral(const Directory& d) {
  const ModelShape s = d.shape();
  expect_complete(d, s);
  // q 9,437,184, k and v 2 x 4,456,448, out 11,534,336, norms 32,768, router 131,072.
  EXPECT_EQ(trunk_bytes(s), 32u * 30'048'256);
  EXPECT_EQ(s.layers[31].expert_bytes, 99'090'432u);  // 3 x 4096 x 14336 / 256 x 144
  EXPECT_EQ(s.layers[31].n_experts, 8);
  EXPECT_EQ(s.d_ff, 14336);
  EXPECT_TRUE(s.tied);
  EXPECT_EQ(s.output_bytes, 73'728'000u + 16'384);  // the embedding, 32000 x 16 x 144, and the norm
  EXPECT_EQ(kv_bytes(s, policy::KvType::f16, 64), 8'388'608u);  // 32 x 64 x 2 x 1024 x 2
}

TEST(Shape, OfMixtral) {
  Directory d = mixtral_trunk();
  for (int i = 0; i < 32; ++i) {
    d.add_to(i, Type::q4_k,
             "ffn_gate_exps 4096x14336x8, ffn_up_exps 4096x14336x8, ffn_down_exps 14336x4096x8");
  }
  expect_mixtral(d);
}

TEST(Shape, OfAVeryOldMixtralWithATensorForEveryExpert) {
  Directory d = mixtral_trunk();
  for (int i = 0; i < 32; ++i) {
    for (int e = 0; e < 8; ++e) {
      d.add_to(i, Type::q4_k,
               cat("ffn_gate.", e, ".weight", " 4096x14336, ", "ffn_up.", e, ".weight",
                   " 4096x14336, ", "ffn_down.", e, ".weight", " 14336x4096"));
    }
  }
  expect_mixtral(d);
}

TEST(Shape, OfGptOss) {
  Directory d = gpt_oss();
  ModelShape s = d.shape();
  expect_complete(d, s);
  // f32: norms 5760, biases 8000, sinks 64, router 92,192: 106,016 x 4 = 424,064; attention
  // 26,542,080 / 32 x 34 = 28,200,960.
  EXPECT_EQ(s.layers[0].trunk_bytes, 28'625'024u);
  // 3 x 2880 x 2880 / 32 x 17 = 13,219,200, and three rows of biases, 34,560.
  EXPECT_EQ(s.layers[0].expert_bytes, 13'253'760u);
  EXPECT_EQ(s.layers[0].k_head_dim, 64);
  EXPECT_EQ(s.layers[0].window, 128);  // even layers slide
  EXPECT_EQ(s.layers[1].window, 0);
  // 12 layers of 4096 tokens, 12 of 704 (128 + 512 in pages, and one more), 2 x 512 x 2 bytes each.
  EXPECT_EQ(kv_bytes(s, policy::KvType::f16, 4096), 12u * (4096 + 704) * 2048);

  std::vector<bool> slides(24);
  slides[23] = true;
  d.set("attention.sliding_window_pattern", slides);
  s = d.shape();
  EXPECT_EQ(s.layers[0].window, 0);
  EXPECT_EQ(s.layers[23].window, 128);
}

TEST(Shape, OfQwen3NextWithMergedGateAndUp) {
  Directory d("qwen3next", hybrid_keys(48, 512, 10));
  d.add_ends(2048, 151936, Type::q4_k, Type::q6_k);
  for (int i = 0; i < 48; ++i) {
    add_hybrid_layer(d, i, i % 4 == 3, 512, /*one_ba=*/true);
    d.add_to(i, Type::q4_k, "ffn_gate_up_exps 2048x1024x512, ffn_down_exps 512x2048x512");
  }
  const ModelShape s = d.shape();
  expect_complete(d, s);
  // f32: norms 4096, conv 32,768, dt and a 64, norm 128, router 1,048,576, gate 2048: 4,350,720
  // bytes; Q4_K: qkv 16,777,216, z and out 2 x 8,388,608, ba 131,072, shared 3,145,728: 20,717,568.
  EXPECT_EQ(s.layers[0].trunk_bytes, 25'068'288u);
  // f32: 4096 + 512 + 1,048,576 + 2048, 4,220,928 bytes; Q4_K 30,408,704 weights, 17,104,896 bytes.
  EXPECT_EQ(s.layers[3].trunk_bytes, 21'325'824u);
  EXPECT_EQ(trunk_bytes(s), 36u * 25'068'288 + 12u * 21'325'824);
  EXPECT_EQ(s.layers[0].expert_bytes, 1'769'472u);  // 3 x 2048 x 512 / 256 x 144
  EXPECT_EQ(s.d_ff, 512);
  EXPECT_EQ(s.expert_bytes(), 43'486'543'872u);    // 48 x 512 of them
  EXPECT_EQ(s.layers[0].state_bytes, 2'195'456u);  // 3 x 8192 x 4 and 32 x 128 x 128 x 4
  EXPECT_FALSE(s.layers[0].attends());
  EXPECT_EQ(s.layers[3].state_bytes, 0u);
  EXPECT_EQ(s.layers[0].update_bytes, 4u * (8192 + 2048 + 4096 + 32));  // inputs, k, entered, decay
  EXPECT_EQ(s.layers[3].update_bytes, 0u);
  EXPECT_EQ(s.layers[3].n_kv_heads, 2);
}

TEST(Shape, OfQwen35MoeWithAnMtpBlock) {
  Directory d("qwen35moe", hybrid_keys(41, 256, 8) + ", nextn_predict_layers 1");
  d.add_ends(2048, 248320, Type::q4_k, Type::q6_k);
  for (int i = 0; i < 41; ++i) {
    add_hybrid_layer(d, i, i % 4 == 3 || i == 40, 256, /*one_ba=*/false);
    d.add_to(i, Type::q4_k, "ffn_gate_exps 2048x512x256, ffn_up_exps 2048x512x256");
    d.add_to(i, Type::q6_k, "ffn_down_exps 512x2048x256");
  }
  d.add_to(40, Type::q4_k, "nextn.eh_proj.weight 4096x2048");
  d.add_to(40, Type::f32,
           "nextn.enorm.weight 2048, nextn.hnorm.weight 2048, nextn.shared_head_norm.weight 2048");
  const ModelShape s = d.shape();
  expect_complete(d, s);
  EXPECT_EQ(s.n_layers(), 40);
  // As qwen3next, but with 256 router rows: 2,253,568 + 20,717,568 and 2,123,776 + 17,104,896.
  EXPECT_EQ(s.layers[0].trunk_bytes, 22'971'136u);
  EXPECT_EQ(s.layers[3].trunk_bytes, 19'228'672u);
  EXPECT_EQ(trunk_bytes(s), 30u * 22'971'136 + 10u * 19'228'672);
  EXPECT_EQ(s.layers[0].expert_bytes, 2'039'808u);  // 2 x 589,824 + 860,160
  EXPECT_EQ(s.expert_bytes(), 20'887'633'920u);     // 40 x 256 of them
  // 10 of 40 layers attend: 20480, 10880 and 5760 bytes a token.
  EXPECT_EQ(kv_bytes(s, policy::KvType::f16, 4096), 4096u * 20'480);
  EXPECT_EQ(kv_bytes(s, policy::KvType::q8_0, 4096), 4096u * 10'880);
  EXPECT_EQ(kv_bytes(s, policy::KvType::q4_0, 4096), 4096u * 5'760);
  // The MTP block: an attention layer, eh_proj 4,718,592, three norms 24,576.
  ASSERT_EQ(s.mtp.size(), 1u);
  EXPECT_EQ(s.mtp[0].trunk_bytes, 23'971'840u);
  EXPECT_TRUE(s.mtp[0].attends());
  EXPECT_EQ(s.mtp_bytes(), 23'971'840u + 256u * 2'039'808);
}

TEST(Shape, OfGlm4Moe) {
  Directory d("glm4moe",
              "block_count 47, nextn_predict_layers 1, embedding_length 4096, expert_count 128, "
              "expert_used_count 8, expert_feed_forward_length 1408, feed_forward_length 10944, "
              "attention.head_count 96, attention.head_count_kv 8, "
              "attention.key_length 128, attention.value_length 128, leading_dense_block_count 1");
  d.add_ends(4096, 151552, Type::q8_0, Type::q8_0);
  for (int i = 0; i < 47; ++i) {
    d.add_to(i, Type::f32,
             "attn_norm 4096, post_attention_norm 4096, attn_q.bias 12288, attn_k.bias 1024, "
             "attn_v.bias 1024");
    d.add_to(i, Type::q8_0,
             "attn_q 4096x12288, attn_k 4096x1024, attn_v 4096x1024, attn_output 12288x4096");
    if (i == 0) {
      d.add_to(i, Type::q8_0, "ffn_gate 4096x10944, ffn_up 4096x10944, ffn_down 10944x4096");
      continue;
    }
    d.add_to(i, Type::f32, "ffn_gate_inp 4096x128, exp_probs_b.bias 128");
    if (i == 46) {
      d.add_to(i, Type::f32, "nextn.enorm.weight 4096, nextn.hnorm.weight 4096");
      d.add_to(i, Type::q8_0, "nextn.eh_proj.weight 8192x4096");
    }
    d.add_to(i, Type::q8_0,
             "ffn_gate_shexp 4096x1408, ffn_up_shexp 4096x1408, ffn_down_shexp 1408x4096, "
             "ffn_gate_exps 4096x1408x128, ffn_up_exps 4096x1408x128, ffn_down_exps 1408x4096x128");
  }
  const ModelShape s = d.shape();
  expect_complete(d, s);
  EXPECT_EQ(s.n_layers(), 46);
  EXPECT_EQ(s.mtp.size(), 1u);
  // Attention 109,051,904 / 32 x 34 = 115,867,648 and 22,528 x 4 = 90,112; the dense network
  // 3 x 4096 x 10944 / 32 x 34 = 142,884,864.
  EXPECT_EQ(s.layers[0].trunk_bytes, 258'842'624u);
  EXPECT_EQ(s.layers[0].shared_bytes, 142'884'864u);
  EXPECT_EQ(s.layers[0].n_experts, 0);
  // Router and its bias 524,416 x 4 = 2,097,664, shared expert 3 x 4096 x 1408 / 32 x 34.
  EXPECT_EQ(s.layers[1].trunk_bytes, 115'867'648u + 90'112 + 2'097'664 + 18'382'848);
  EXPECT_EQ(s.layers[1].shared_bytes, 18'382'848u);
  EXPECT_EQ(s.layers[1].expert_bytes, 18'382'848u);
  EXPECT_EQ(s.expert_bytes(), 105'885'204'480u);  // 45 x 128 of them
}

TEST(Shape, OfDeepseek2) {
  for (const bool legacy : {false, true}) {
    const Directory d = deepseek(legacy);
    const ModelShape s = d.shape();
    expect_complete(d, s);
    // 13,762,560 / 32 x 34 = 14,622,720, norms 18,432; dense 71,442,432.
    EXPECT_EQ(s.layers[0].trunk_bytes, 86'083'584u);
    // Router 524,288, shared experts 18,382,848.
    EXPECT_EQ(s.layers[1].trunk_bytes, 33'548'288u);
    EXPECT_EQ(s.layers[1].expert_bytes, 9'191'424u);  // 3 x 2048 x 1408 / 32 x 34
    // 512 + 64 values a token and layer, for keys and values together.
    EXPECT_EQ(kv_bytes(s, policy::KvType::f16, 64), 27u * 64 * 576 * 2);
    EXPECT_EQ(kv_bytes(s, policy::KvType::q8_0, 64), 27u * 64 * 612);
  }
}

TEST(Shape, BooksScalesOfExpertsToThemAndSharedOnesToTheTrunk) {
  Directory d = qwen3_30b();
  const ModelShape plain = d.shape();
  d.add_to(0, Type::f32, "ffn_up_exps.scale 128, attn_q.scale 1, ffn_down_exps.scale 1");
  const ModelShape s = d.shape();
  expect_complete(d, s);
  EXPECT_EQ(s.layers[0].expert_bytes, plain.layers[0].expert_bytes + 4);
  EXPECT_EQ(s.layers[0].trunk_bytes, plain.layers[0].trunk_bytes + 2 * 64);  // a value each
}

TEST(Shape, TakesFusedQueryKeyAndValue) {
  Directory d = qwen3_30b();
  std::erase_if(d.tensors(), [](const gguf::TensorInfo& t) {
    return t.name == "blk.0.attn_q.weight" || t.name == "blk.0.attn_k.weight" ||
           t.name == "blk.0.attn_v.weight";
  });
  d.add_to(0, Type::q4_k, "attn_qkv 2048x5120");
  EXPECT_EQ(d.shape().layers[0].n_kv_heads, 4);
}

TEST(Shape, OfAFileIsThatOfItsDirectory) {
  const TempDir dir;
  for (const char* architecture : kArchitectures) {
    const std::string path = dir / "m.gguf";
    write_tiny(path, architecture, "Q4_K_M");
    const gguf::ModelFile file = gguf::ModelFile::open(path);
    const ModelShape s = read_shape(file);
    uint64_t in_file = 0;
    for (const gguf::Tensor& t : file.tensors()) {  // the host reads the embedding where it stands
      const bool in_place = t.name == "token_embd.weight" && !s.tied;
      in_file += in_place ? t.n_bytes : round_up(t.n_bytes, policy::kTensorAlignment);
    }
    if (s.is_dense) {  // the routers' zeros, which no file holds
      in_file += s.layers.size() * round_up(sizeof(float) * static_cast<uint64_t>(s.d_model),
                                            policy::kTensorAlignment);
    }
    EXPECT_EQ(trunk_bytes(s) + s.expert_bytes() + s.output_bytes + (s.tied ? 0 : s.embedding_bytes),
              in_file)
        << architecture;
    EXPECT_EQ(s.architecture, architecture);
  }
}

TEST(Shape, OfADenseModelIsOneExpertALayer) {
  const TempDir dir;
  for (const char* architecture : kDense) {
    const std::string path = dir / "m.gguf";
    write_tiny(path, architecture, "Q8_0");
    const gguf::ModelFile file = gguf::ModelFile::open(path);
    const ModelShape s = read_shape(file);
    EXPECT_TRUE(s.is_dense);
    EXPECT_EQ(s.n_experts_used, 1);
    for (size_t i = 0; i < s.layers.size(); ++i) {
      uint64_t n_bytes = 0;
      for (const char* name : {"ffn_gate", "ffn_up", "ffn_down"}) {
        n_bytes += slot_part_bytes(file.find(cat("blk.", i, ".", name, ".weight"))->n_bytes);
      }
      EXPECT_EQ(s.layers[i].n_experts, 1);
      EXPECT_EQ(s.layers[i].expert_bytes, n_bytes);
      EXPECT_EQ(s.layers[i].expert_elems, 3u * 64 * 96);
      EXPECT_EQ(s.layers[i].shared_bytes, 0u);
    }
  }
}

// A tensor that nobody asks for takes its room all the same.
TEST(Shape, CountsWhatMemoryHoldsWideVectorsAndWholeBoundaries) {
  Directory d = qwen3_30b();
  const ModelShape plain = d.shape();
  // 16-bit vectors are held in f32, matrices as they are: 3 x 5 x 2 = 30 bytes and 40 x 4 = 160.
  d.add_to(0, Type::f16, "unknown_matrix 3x5");
  d.add_to(0, Type::bf16, "unknown_vector 40, attn_q.bias 4096");
  d.add("rope_freqs.weight", Type::f16, {33});  // 132 bytes
  const ModelShape s = d.shape();
  EXPECT_EQ(s.layers[0].trunk_bytes, plain.layers[0].trunk_bytes + 64 + 192 + 4 * 4096);
  EXPECT_EQ(s.layers[0].shared_bytes, 0u);
  EXPECT_EQ(s.output_bytes, plain.output_bytes + 192);
}

// What a step of the engine needs beside weights and KV cache, by the configuration of the model.
uint64_t step_bytes(const model::Config& c, int n_rows) {
  uint64_t sum = 0;
  const auto add = [&](int64_t rows, int64_t row_bytes) {
    sum += round_up(static_cast<uint64_t>(rows * row_bytes), policy::kTensorAlignment);
  };
  add(n_rows, 4 * int64_t{c.d_model});                     // x
  add(n_rows, 4 * (c.q_cols() + 2 * c.kv_cols()));         // q, k and v
  add(n_rows, 4 * c.q_cols());                             // attention
  add(n_rows, 4 * int64_t{c.d_model});                     // the experts' input in f32,
  add(n_rows, c.d_model);                                  // in int8,
  add(n_rows, c.d_model / 32 * 4);                         // with its scales
  add(n_rows, c.d_model / 32 * 4);                         // and sums
  add(n_rows, 4 * c.n_experts_used);                       // who was chosen,
  add(n_rows, 4 * c.n_experts_used);                       // with which weight,
  add(n_rows, 4);                                          // and the shared expert's
  add(n_rows, 4 * int64_t{c.n_experts_used} * c.d_model);  // experts' rows
  add(std::min(n_rows, policy::kMaxLogitRows), 4 * int64_t{c.n_vocab});
  return sum;
}

TEST(Shape, PricesNoLessScratchThanAStepNeeds) {
  const TempDir dir;
  for (const char* architecture : kArchitectures) {
    const std::string path = dir / "m.gguf";
    write_tiny(path, architecture, "Q4_K_M");
    const gguf::ModelFile file = gguf::ModelFile::open(path);
    const ModelShape s = read_shape(file);
    const model::Model model(file);
    for (const int n_rows : {1, 3, 16, 17, 512}) {
      EXPECT_GE(policy::trunk_scratch_bytes(s, n_rows) + policy::expert_scratch_bytes(s, n_rows),
                step_bytes(model.config(), n_rows))
          << architecture << ", " << n_rows << " rows";
    }
  }
}

}  // namespace
}  // namespace sluice::model_file::test
