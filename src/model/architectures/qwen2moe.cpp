// qwen2moe (Qwen1.5-MoE-A2.7B, Qwen2-57B-A14B): biases on q, k and v, router weights as the softmax
// left them, and one shared expert behind a sigmoid gate.
// SPDX-License-Identifier: Apache-2.0
#include "model/architecture.h"
#include "model/forward.h"

namespace sluice::model {
namespace {

Config read_config(const ConfigReader& in) {
  Config c = read_common_config(in);
  c.d_ff = expert_width(in, c);
  c.d_ff_shared = shared_expert_width(in, c);
  require_plain_heads(in, c);
  return c;
}

Layer bind_layer(LayerBinder& bind) {
  Layer layer = bind.layer();
  bind.attention(layer, {.qkv_bias = Presence::usual});
  bind.experts(layer, {});
  bind.shared_expert(layer, /*gated=*/true);
  return layer;
}

}  // namespace

const Architecture kQwen2Moe{"qwen2moe", read_config, bind_layer, forward_attention_moe};

}  // namespace sluice::model
