// Tensor directories of real models, for the tests of shape.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unit/model_file/shape_directory.h"

namespace sluice::model_file::test {

using quant::Type;

// Qwen3-30B-A3B in Q4_K_M: first and last eighth and every third layer between with more bits.
inline Directory qwen3_30b() {
  Directory d("qwen3moe",
              "block_count 48, embedding_length 2048, expert_count 128, expert_used_count 8, "
              "expert_feed_forward_length 768, attention.head_count 32, attention.head_count_kv 4, "
              "attention.key_length 128, "
              "attention.value_length 128");
  d.add_ends(2048, 151936, Type::q4_k, Type::q6_k);
  for (int i = 0; i < 48; ++i) {
    const bool more = i < 6 || i >= 42 || (i - 6) % 3 == 2;
    d.add_to(
        i, Type::f32,
        "attn_norm 2048, ffn_norm 2048, attn_q_norm 128, attn_k_norm 128, ffn_gate_inp 2048x128");
    d.add_to(i, Type::q4_k,
             "attn_q 2048x4096, attn_k 2048x512, attn_output 4096x2048, ffn_gate_exps "
             "2048x768x128, ffn_up_exps 2048x768x128");
    d.add_to(i, more ? Type::q6_k : Type::q4_k, "attn_v 2048x512, ffn_down_exps 768x2048x128");
  }
  return d;
}

inline Directory gpt_oss() {
  Directory d("gpt-oss",
              "block_count 24, embedding_length 2880, expert_count 32, expert_used_count 4, "
              "expert_feed_forward_length 2880, attention.head_count 64, attention.head_count_kv "
              "8, attention.key_length 64, "
              "attention.value_length 64, attention.sliding_window 128");
  d.add_ends(2880, 201088, Type::q8_0, Type::q8_0);
  for (int i = 0; i < 24; ++i) {
    d.add_to(
        i, Type::f32,
        "attn_norm 2880, post_attention_norm 2880, attn_q.bias 4096, attn_k.bias 512, attn_v.bias "
        "512, attn_output.bias 2880, attn_sinks 64, ffn_gate_inp 2880x32, ffn_gate_inp.bias 32, "
        "ffn_gate_exps.bias 2880x32, ffn_up_exps.bias 2880x32, ffn_down_exps.bias 2880x32");
    d.add_to(i, Type::q8_0,
             "attn_q 2880x4096, attn_k 2880x512, attn_v 2880x512, attn_output 4096x2880");
    d.add_to(i, Type::mxfp4,
             "ffn_gate_exps 2880x2880x32, ffn_up_exps 2880x2880x32, ffn_down_exps 2880x2880x32");
  }
  return d;
}

// A layer of the hybrids, in Q4_K but for what is always F32.
inline void add_hybrid_layer(Directory& d, int i, bool attends, int64_t n_experts, bool one_ba) {
  d.add_to(i, Type::f32,
           cat("attn_norm 2048, post_attention_norm 2048, ffn_gate_inp 2048x", n_experts,
               ", ffn_gate_inp_shexp 2048"));
  d.add_to(i, Type::q4_k,
           "ffn_gate_shexp 2048x512, ffn_up_shexp 2048x512, ffn_down_shexp 512x2048");
  if (attends) {
    d.add_to(i, Type::f32, "attn_q_norm 256, attn_k_norm 256");
    d.add_to(i, Type::q4_k,
             "attn_q 2048x8192, attn_k 2048x512, attn_v 2048x512, attn_output 4096x2048");
    return;
  }
  d.add_to(i, Type::f32, "ssm_conv1d 4x8192, ssm_dt.bias 32, ssm_a 32, ssm_norm 128");
  d.add_to(i, Type::q4_k, "attn_qkv 2048x8192, attn_gate 2048x4096, ssm_out 4096x2048");
  if (one_ba) {
    d.add_to(i, Type::q4_k, "ssm_ba 2048x64");
  } else {
    d.add_to(i, Type::q4_k, "ssm_alpha 2048x32, ssm_beta 2048x32");
  }
}

inline std::string hybrid_keys(int n_blocks, int n_experts, int n_used) {
  return cat(
      "block_count ", n_blocks, ", expert_count ", n_experts, ", expert_used_count ", n_used,
      ", embedding_length 2048, expert_feed_forward_length 512, "
      "expert_shared_feed_forward_length 512, attention.head_count 16, attention.head_count_kv 2, "
      "attention.key_length 256, attention.value_length 256, ssm.conv_kernel 4, "
      "ssm.state_size 128, ssm.group_count 16, ssm.time_step_rank 32, ssm.inner_size 4096, "
      "full_attention_interval 4");
}

// DeepSeek-V2-Lite, with compressed keys and values; `legacy`: k_b and v_b in one matrix.
inline Directory deepseek(bool legacy) {
  Directory d("deepseek2",
              cat("block_count 27, embedding_length 2048, expert_count 64, expert_used_count 6, "
                  "expert_feed_forward_length 1408, expert_shared_count 2, "
                  "feed_forward_length 10944, leading_dense_block_count 1, "
                  "attention.head_count 16, attention.kv_lora_rank 512, rope.dimension_count 64, ",
                  legacy ? "attention.head_count_kv 16, attention.key_length 192, "
                           "attention.value_length 128"
                         : "attention.head_count_kv 1, attention.key_length 576, "
                           "attention.value_length 512, attention.key_length_mla 192, "
                           "attention.value_length_mla 128"));
  d.add_ends(2048, 102400, Type::q8_0, Type::q8_0);
  for (int i = 0; i < 27; ++i) {
    d.add_to(i, Type::f32, "attn_norm 2048, attn_kv_a_norm 512, ffn_norm 2048");
    d.add_to(i, Type::q8_0, "attn_q 2048x3072, attn_kv_a_mqa 2048x576, attn_output 2048x2048");
    if (legacy) {
      d.add_to(i, Type::q8_0, "attn_kv_b 512x4096");
    } else {
      d.add_to(i, Type::q8_0, "attn_k_b 128x512x16, attn_v_b 512x128x16");
    }
    if (i == 0) {
      d.add_to(i, Type::q8_0, "ffn_gate 2048x10944, ffn_up 2048x10944, ffn_down 10944x2048");
      continue;
    }
    d.add_to(i, Type::f32, "ffn_gate_inp 2048x64");
    d.add_to(i, Type::q8_0,
             "ffn_gate_shexp 2048x2816, ffn_up_shexp 2048x2816, ffn_down_shexp 2816x2048, "
             "ffn_gate_exps 2048x1408x64, ffn_up_exps 2048x1408x64, ffn_down_exps 1408x2048x64");
  }
  return d;
}

}  // namespace sluice::model_file::test
