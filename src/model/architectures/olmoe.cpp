// olmoe (OLMoE-1B-7B): q and k are normalised over all heads at once, and router weights stay as
// the softmax left them.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "model/architecture.h"
#include "model/forward.h"

namespace sluice::model {
namespace {

Config read_config(const ConfigReader& in) {
  Config c = read_common_config(in);
  c.d_ff = dense_width(in, c);
  if (c.n_kv_heads != c.n_heads) {
    in.refuse(cat(c.n_kv_heads, " key-value heads; expected ", c.n_heads, " as there are heads"));
  }
  require_plain_heads(in, c);
  return c;
}

Layer bind_layer(LayerBinder& bind) {
  Layer layer = bind.layer();
  bind.attention(layer, {});
  bind.head_norms(layer, backend::HeadNorm::whole);
  bind.experts(layer, {});
  return layer;
}

}  // namespace

const Architecture kOlmoe{.name = "olmoe",
                          .read_config = read_config,
                          .bind_layer = bind_layer,
                          .forward_layer = forward_attention_moe,
                          .expert_width_key = "feed_forward_length"};

}  // namespace sluice::model
