// qwen3moe (Qwen3-30B-A3B, Qwen3-235B-A22B, Qwen3-Coder): q and k are normalised head by head
// before they turn, and the weights of the chosen experts are made to sum to one.
// SPDX-License-Identifier: Apache-2.0
#include "model/architecture.h"
#include "model/forward.h"

namespace sluice::model {
namespace {

Config read_config(const ConfigReader& in) {
  Config c = read_common_config(in);
  c.d_ff = expert_width(in, c);
  require_plain_heads(in, c);
  return c;
}

Layer bind_layer(LayerBinder& bind) {
  Layer layer = bind.layer();
  bind.attention(layer, {});
  bind.head_norms(layer, backend::HeadNorm::per_head);
  bind.experts(layer, {.renormalize = true});
  return layer;
}

}  // namespace

const Architecture kQwen3Moe{.name = "qwen3moe",
                             .read_config = read_config,
                             .bind_layer = bind_layer,
                             .forward_layer = forward_attention_moe,
                             .may_tie_output = true};

}  // namespace sluice::model
