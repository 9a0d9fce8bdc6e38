// qwen35moe, qwen35 (Qwen3.5, Qwen3.6) and qwen3next (Qwen3-Next): most layers are a gated
// DeltaNet, which keeps a state of fixed size instead of keys and values; every few layers attend,
// with a gate on the output. qwen35 is dense, the others have experts and a shared one. qwen3next
// differs in how value heads stand in a file, and in that it knows no positions in images.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "model/architecture.h"
#include "model/forward.h"

namespace sluice::model {
namespace {

// A recurrent layer keeps the convolution's last inputs, and for every value head a square matrix,
// all in f32. A token's update: its inputs, its k, what entered and how much stayed.
LayerMemory delta_net_memory(const DeltaNetConfig& d) {
  const auto values = (d.n_taps - 1) * d.conv_cols() + d.value_cols() * int64_t{d.head_dim};
  const auto update = d.conv_cols() + int64_t{d.n_key_heads} * d.head_dim + d.value_cols() +
                      int64_t{d.n_value_heads};
  return {.state_bytes = sizeof(float) * static_cast<uint64_t>(values),
          .update_bytes = sizeof(float) * static_cast<uint64_t>(update)};
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
  if (d.head_dim % 8 != 0 || d.n_value_heads % d.n_key_heads != 0) {
    in.refuse(cat(d.n_value_heads, " value heads over ", d.n_key_heads, " key heads of ",
                  d.head_dim, "; expected a whole number for each, of a multiple of 8"));
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

Config read_hybrid_config(const ConfigReader& in, Networks networks) {
  Config c = read_common_config(in, networks);
  c.d_ff = c.is_dense ? dense_width(in, c) : expert_width(in, c);
  if (!c.is_dense) c.d_ff_shared = shared_expert_width(in, c);
  read_mtp(in, c);
  read_delta_net(in, c);
  require_equal_heads(in, c);
  return c;
}

void read_sections(const ConfigReader& in, Config& c) {
  constexpr std::string_view kSections = "rope.dimension_sections";
  if (!in.has(kSections)) return;
  const auto sections =
      in.metadata().get_int_per_layer(in.key(kSections), std::ssize(c.rope.sections), {0, 1 << 20});
  std::ranges::transform(sections, c.rope.sections.begin(), [](int64_t n) { return int(n); });
}

template <Networks networks>
Config read_qwen35_config(const ConfigReader& in) {
  Config c = read_hybrid_config(in, networks);
  read_sections(in, c);
  return c;
}

Config read_qwen3next_config(const ConfigReader& in) {
  return read_hybrid_config(in, Networks::experts);
}

// The first files of qwen3next hold all of q, k, v and z by key head: one query, one key, and the
// values and z of the value heads that share them.
backend::WeightView fused_in(LayerBinder& bind) {
  const Config& c = bind.config();
  const DeltaNetConfig& d = c.delta_net;
  backend::WeightView all =
      bind.matrix("ssm_in.weight", {c.d_model, d.conv_cols() + d.value_cols()});
  const int dim = d.head_dim, n_values = d.n_value_heads / d.n_key_heads * dim;
  all.groups = {.n_groups = d.n_key_heads, .parts = {dim, dim, n_values, n_values}};
  return all;
}

void bind_delta_net(LayerBinder& bind, Layer& layer, backend::KeyHeads key_heads) {
  const Config& c = bind.config();
  const DeltaNetConfig& d = c.delta_net;
  const auto project = [&](const char* suffix, int64_t n_rows) {
    layer.qkv.push_back({bind.matrix(suffix, {c.d_model, n_rows})});
  };
  layer.attn_norm = bind.norm("attn_norm.weight", c.d_model);
  if (bind.has("ssm_in.weight")) {
    layer.qkv.push_back({fused_in(bind)});
  } else {
    project("attn_qkv.weight", d.conv_cols());
    project("attn_gate.weight", d.value_cols());
  }
  layer.delta_net = {.n_taps = d.n_taps,
                     .n_key_heads = d.n_key_heads,
                     .n_value_heads = d.n_value_heads,
                     .head_dim = d.head_dim,
                     .key_heads = key_heads};
  if (key_heads == backend::KeyHeads::by_neighbours) {
    layer.delta_net.gate_columns = backend::GateColumns::by_key_head;
    project("ssm_ba.weight", 2 * int64_t{d.n_value_heads});
  } else {
    project("ssm_beta.weight", d.n_value_heads);
    project("ssm_alpha.weight", d.n_value_heads);
  }
  layer.delta_net.conv = bind.values("ssm_conv1d.weight", {d.n_taps, d.conv_cols()});
  layer.delta_net.time_bias = bind.vector("ssm_dt.bias", d.n_value_heads);
  layer.delta_net.decay = bind.vector("ssm_a", d.n_value_heads);
  layer.delta_net.norm = bind.norm("ssm_norm.weight", d.head_dim);
  layer.attn_out.weight = bind.matrix("ssm_out.weight", {d.value_cols(), c.d_model});
}

Layer bind_layer(LayerBinder& bind, backend::KeyHeads key_heads) {
  Layer layer = bind.layer();
  if (bind.memory().state_bytes > 0) {
    bind_delta_net(bind, layer, key_heads);
  } else {
    bind.attention(layer, {.is_gated = true});
    bind.head_norms(layer, backend::HeadNorm::per_head);
  }
  if (bind.config().is_dense) {
    bind.dense_network(layer, kPostAttentionNorm);
  } else {
    bind.experts(layer, {.norm = kPostAttentionNorm, .renormalize = true});
    bind.shared_expert(layer, /*gated=*/true);
  }
  bind.mtp(layer);
  return layer;
}

Layer bind_qwen35(LayerBinder& bind) { return bind_layer(bind, backend::KeyHeads::by_remainder); }

Layer bind_qwen3next(LayerBinder& bind) {
  return bind_layer(bind, backend::KeyHeads::by_neighbours);
}

}  // namespace

const Architecture kQwen35{.name = "qwen35",
                           .read_config = read_qwen35_config<Networks::dense>,
                           .bind_layer = bind_qwen35,
                           .forward_layer = forward_hybrid_moe,
                           .networks = Networks::dense,
                           .may_tie_output = true,
                           .is_hybrid = true,
                           .has_rope_sections = true,
                           .may_have_vision = true};

const Architecture kQwen35Moe{.name = "qwen35moe",
                              .read_config = read_qwen35_config<Networks::experts>,
                              .bind_layer = bind_qwen35,
                              .forward_layer = forward_hybrid_moe,
                              .may_tie_output = true,
                              .is_hybrid = true,
                              .has_rope_sections = true,
                              .may_have_vision = true};

const Architecture kQwen3Next{.name = "qwen3next",
                              .read_config = read_qwen3next_config,
                              .bind_layer = bind_qwen3next,
                              .forward_layer = forward_hybrid_moe,
                              .may_tie_output = true,
                              .is_hybrid = true};

}  // namespace sluice::model
