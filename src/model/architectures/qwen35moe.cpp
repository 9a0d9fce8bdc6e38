// qwen35moe (Qwen3.5, Qwen3.6) and qwen3next (Qwen3-Next), for planning: most layers are a gated
// DeltaNet, which keeps a state of fixed size instead of keys and values; every few layers attend,
// with a gate on the output. All have experts and a shared one.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "model/architecture.h"

namespace sluice::model {
namespace {

// A recurrent layer keeps the convolution's last inputs, and for every value head a square matrix,
// all in f32.
LayerMemory delta_net_memory(const DeltaNetConfig& d) {
  const auto values = (d.n_taps - 1) * d.conv_cols() + d.value_cols() * int64_t{d.head_dim};
  return {.state_bytes = sizeof(float) * static_cast<uint64_t>(values)};
}

// MTP blocks always attend.
void read_delta_net(const ConfigReader& in, Config& c) {
  DeltaNetConfig& d = c.delta_net;
  d.n_taps = in.size("ssm.conv_kernel");
  d.head_dim = in.size("ssm.state_size");
  d.n_key_heads = in.size("ssm.group_count");
  d.n_value_heads = in.size("ssm.time_step_rank");
  if (const int inner = in.size("ssm.inner_size"); inner != d.value_cols()) {
    in.refuse(cat(in.key("ssm.inner_size"), " is ", inner, "; expected ", d.n_value_heads,
                  " value heads of ", d.head_dim));
  }
  const auto n_blocks = static_cast<int64_t>(c.memory.size());
  const std::string marks = in.key("attention.recurrent_layers");
  std::vector<int64_t> recurs;
  if (in.metadata().contains(marks)) {
    recurs = in.metadata().get_int_per_layer(marks, n_blocks);
  } else {
    const int interval = in.size_or("full_attention_interval", 4);
    for (int64_t i = 0; i < n_blocks; ++i) recurs.push_back((i + 1) % interval != 0);
  }
  for (size_t i = 0; i < static_cast<size_t>(c.n_layers); ++i) {
    if (recurs[i]) c.memory[i] = delta_net_memory(d);
  }
}

Config read_config(const ConfigReader& in) {
  Config c = read_common_config(in);
  c.d_ff = expert_width(in, c);
  c.d_ff_shared = shared_expert_width(in, c);
  read_mtp(in, c);
  read_delta_net(in, c);
  require_equal_heads(in, c);
  return c;
}

// Of every head first the query, then the gate of its output.
void bind_gated_attention(LayerBinder& bind, Layer& layer) {
  const Config& c = bind.config();
  layer.attn_norm = bind.norm("attn_norm.weight", c.d_model);
  bind.matrix("attn_q.weight", {c.d_model, 2 * c.q_cols()});
  bind.matrix("attn_k.weight", {c.d_model, c.kv_cols()});
  bind.matrix("attn_v.weight", {c.d_model, c.kv_cols()});
  layer.attn_out.weight = bind.matrix("attn_output.weight", {c.q_cols(), c.d_model});
  bind.head_norms(layer, backend::HeadNorm::per_head);
}

void bind_delta_net(LayerBinder& bind, Layer& layer) {
  const Config& c = bind.config();
  const DeltaNetConfig& d = c.delta_net;
  layer.attn_norm = bind.norm("attn_norm.weight", c.d_model);
  if (bind.has("ssm_in.weight")) {  // first files of qwen3next
    bind.matrix("ssm_in.weight", {c.d_model, d.conv_cols() + d.value_cols()});
  } else {
    bind.matrix("attn_qkv.weight", {c.d_model, d.conv_cols()});
    bind.matrix("attn_gate.weight", {c.d_model, d.value_cols()});
  }
  if (bind.has("ssm_ba.weight")) {  // qwen3next
    bind.matrix("ssm_ba.weight", {c.d_model, 2 * d.n_value_heads});
  } else {
    bind.matrix("ssm_alpha.weight", {c.d_model, d.n_value_heads});
    bind.matrix("ssm_beta.weight", {c.d_model, d.n_value_heads});
  }
  bind.matrix("ssm_conv1d.weight", {d.n_taps, d.conv_cols()});
  bind.vector("ssm_dt.bias", d.n_value_heads);
  bind.vector("ssm_a", d.n_value_heads);
  bind.norm("ssm_norm.weight", d.head_dim);
  layer.attn_out.weight = bind.matrix("ssm_out.weight", {d.value_cols(), c.d_model});
}

Layer bind_layer(LayerBinder& bind) {
  Layer layer = bind.layer();
  if (bind.memory().state_bytes > 0) {
    bind_delta_net(bind, layer);
  } else {
    bind_gated_attention(bind, layer);
  }
  bind.experts(layer, {.norm = kPostAttentionNorm, .renormalize = true});
  bind.shared_expert(layer, /*gated=*/true);
  bind.mtp();
  return layer;
}

}  // namespace

const Architecture kQwen35Moe{.name = "qwen35moe",
                              .read_config = read_config,
                              .bind_layer = bind_layer,
                              .may_tie_output = true};

const Architecture kQwen3Next{.name = "qwen3next",
                              .read_config = read_config,
                              .bind_layer = bind_layer,
                              .may_tie_output = true};

}  // namespace sluice::model
