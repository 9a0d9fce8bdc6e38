// qwen3 (Qwen3-0.6B to 32B): qwen3moe with a dense network in the experts' place.
// SPDX-License-Identifier: Apache-2.0
#include "model/architecture.h"
#include "model/forward.h"

namespace sluice::model {
namespace {

Config read_config(const ConfigReader& in) {
  Config c = read_common_config(in, Networks::dense);
  c.d_ff = dense_width(in, c);
  require_plain_heads(in, c);
  return c;
}

Layer bind_layer(LayerBinder& bind) {
  Layer layer = bind.layer();
  bind.attention(layer, {});
  bind.head_norms(layer, backend::HeadNorm::per_head);
  bind.dense_network(layer);
  return layer;
}

}  // namespace

const Architecture kQwen3{.name = "qwen3",
                          .read_config = read_config,
                          .bind_layer = bind_layer,
                          .forward_layer = forward_attention_moe,
                          .networks = Networks::dense,
                          .may_tie_output = true};

}  // namespace sluice::model
