// gpt-oss (20b, 120b), for planning: all but one of every few layers look back only over a window,
// heads have a sink each, and everything has a bias, experts too.
// SPDX-License-Identifier: Apache-2.0
#include "model/architecture.h"

namespace sluice::model {
namespace {

// Of every `pattern` layers all but the last slide, or those that an array marks.
void set_windows(const ConfigReader& in, Config& c) {
  const int window = in.size("attention.sliding_window");
  const std::string key = in.key("attention.sliding_window_pattern");
  const gguf::Value* pattern = in.metadata().find(key);
  std::vector<int64_t> slides;
  if (pattern && gguf::is_array(*pattern)) {
    slides = in.metadata().get_int_per_layer(key, c.n_layers);
  } else {
    const int64_t period = in.metadata().get_int_or(key, 2, {1, 1 << 20});
    for (int64_t i = 0; i < c.n_layers; ++i) slides.push_back(i % period < period - 1);
  }
  for (size_t i = 0; i < slides.size(); ++i) c.memory[i].window = slides[i] ? window : 0;
}

Config read_config(const ConfigReader& in) {
  Config c = read_common_config(in);
  c.d_ff = expert_width(in, c);
  require_plain_heads(in, c);
  set_windows(in, c);
  return c;
}

Layer bind_layer(LayerBinder& bind) {
  const Config& c = bind.config();
  Layer layer = bind.layer();
  bind.attention(layer, {.qkv_bias = Presence::required, .out_bias = Presence::required});
  bind.vector("attn_sinks.weight", c.n_heads);
  bind.experts(layer, {.norm = kPostAttentionNorm});
  bind.vector("ffn_gate_inp.bias", c.n_experts);
  bind.stack("ffn_gate_exps.bias", {c.d_ff, c.n_experts});
  bind.stack("ffn_up_exps.bias", {c.d_ff, c.n_experts});
  bind.stack("ffn_down_exps.bias", {c.d_model, c.n_experts});
  return layer;
}

}  // namespace

const Architecture kGptOss{.name = "gpt-oss", .read_config = read_config, .bind_layer = bind_layer};

}  // namespace sluice::model
