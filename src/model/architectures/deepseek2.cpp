// deepseek2 (DeepSeek V2, V3, R1, Kimi-K2), for planning: keys and values of a token are one
// compressed row (MLA), the first layers have a dense network, and the shared experts are one
// without a gate.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "model/architecture.h"

namespace sluice::model {
namespace {

// Files without the two _mla keys give the lengths of a head under the usual names.
void read_mla(const ConfigReader& in, Config& c) {
  c.mla.q_rank = in.size_or("attention.q_lora_rank", 0);
  c.mla.kv_rank = in.size("attention.kv_lora_rank");
  c.mla.k_dim = in.size_or("attention.key_length_mla", c.head_dim);
  c.mla.v_dim = in.size_or("attention.value_length_mla", c.v_head_dim);
  if (c.rope.n_rot >= c.mla.k_dim) {
    in.refuse(cat(in.key("rope.dimension_count"), " is ", c.rope.n_rot,
                  "; expected less than the head size ", c.mla.k_dim));
  }
  for (LayerMemory& memory : c.memory) {
    memory = {.n_kv_heads = 1, .k_head_dim = c.mla.kv_rank + c.rope.n_rot};
  }
}

Config read_config(const ConfigReader& in) {
  Config c = read_common_config(in);
  c.d_ff = expert_width(in, c);
  c.d_ff_shared = shared_experts_width(in, c);
  c.rope.pairing = backend::RopePairing::adjacent;
  read_leading_dense(in, c);
  read_mtp(in, c);
  read_mla(in, c);
  return c;
}

void bind_mla(LayerBinder& bind, Layer& layer) {
  const Config& c = bind.config();
  const auto [q_rank, kv_rank, k_dim, v_dim] = c.mla;
  const int64_t q_cols = int64_t{c.n_heads} * k_dim, n_plain = k_dim - c.rope.n_rot;
  layer.attn_norm = bind.norm("attn_norm.weight", c.d_model);
  if (q_rank > 0) {
    bind.matrix("attn_q_a.weight", {c.d_model, q_rank});
    bind.norm("attn_q_a_norm.weight", q_rank);
    bind.matrix("attn_q_b.weight", {q_rank, q_cols});
  } else {
    bind.matrix("attn_q.weight", {c.d_model, q_cols});
  }
  bind.matrix("attn_kv_a_mqa.weight", {c.d_model, kv_rank + c.rope.n_rot});
  bind.norm("attn_kv_a_norm.weight", kv_rank);
  if (bind.has("attn_kv_b.weight")) {  // older files hold both as one
    bind.matrix("attn_kv_b.weight", {kv_rank, c.n_heads * (n_plain + v_dim)});
  } else {
    bind.matrix("attn_k_b.weight", {n_plain, kv_rank, c.n_heads});
    bind.matrix("attn_v_b.weight", {kv_rank, v_dim, c.n_heads});
  }
  layer.attn_out.weight =
      bind.matrix("attn_output.weight", {int64_t{c.n_heads} * v_dim, c.d_model});
}

Layer bind_layer(LayerBinder& bind) {
  Layer layer = bind.layer();
  bind_mla(bind, layer);
  bind.dense_or_experts(layer, kFfnNorm);
  bind.mtp(layer);
  return layer;
}

}  // namespace

const Architecture kDeepseek2{.name = "deepseek2",
                              .read_config = read_config,
                              .bind_layer = bind_layer,
                              .may_tie_output = true};

}  // namespace sluice::model
