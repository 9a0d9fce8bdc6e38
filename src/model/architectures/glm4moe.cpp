// glm4moe (GLM-4.5, 4.6, 4.7, Air), for planning: half of each head turns, the first layers have a
// dense network, a shared expert without a gate stands beside the others, and blocks that predict
// further tokens follow the layers.
// SPDX-License-Identifier: Apache-2.0
#include "model/architecture.h"

namespace sluice::model {
namespace {

Config read_config(const ConfigReader& in) {
  Config c = read_common_config(in);
  c.d_ff = expert_width(in, c);
  c.d_ff_shared = shared_experts_width(in, c);
  read_leading_dense(in, c);
  read_mtp(in, c);
  require_equal_heads(in, c);
  return c;
}

Layer bind_layer(LayerBinder& bind) {
  Layer layer = bind.layer();
  bind.attention(layer, {.qkv_bias = Presence::usual});
  bind.head_norms(layer, backend::HeadNorm::per_head, Presence::rare);
  bind.dense_or_experts(layer, kPostAttentionNorm);
  bind.mtp(layer);
  return layer;
}

}  // namespace

const Architecture kGlm4Moe{.name = "glm4moe",
                            .read_config = read_config,
                            .bind_layer = bind_layer,
                            .may_tie_output = true};

}  // namespace sluice::model
