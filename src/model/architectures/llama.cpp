// llama, dense (Llama, Mistral-7B) or with experts (Mixtral-8x7B, 8x22B): dimensions turn in
// adjacent pairs, and the weights of the chosen experts are made to sum to one, which is the
// softmax over their scores alone.
// SPDX-License-Identifier: Apache-2.0
#include "model/architecture.h"
#include "model/forward.h"

namespace sluice::model {
namespace {

Config read_config(const ConfigReader& in) {
  Config c = read_common_config(in, Networks::either);
  c.d_ff = dense_width(in, c);
  c.rope.pairing = backend::RopePairing::adjacent;
  require_plain_heads(in, c);
  return c;
}

Layer bind_layer(LayerBinder& bind) {
  Layer layer = bind.layer();
  bind.attention(layer, {});
  if (bind.config().is_dense) {
    bind.dense_network(layer);
  } else {
    bind.experts(layer, {.renormalize = true});
  }
  return layer;
}

}  // namespace

const Architecture kLlama{.name = "llama",
                          .read_config = read_config,
                          .bind_layer = bind_layer,
                          .forward_layer = forward_attention_moe,
                          .networks = Networks::either,
                          .expert_width_key = "feed_forward_length",
                          .may_tie_output = true,
                          .may_have_rope_factors = true};

}  // namespace sluice::model
