// llama with experts (Mixtral-8x7B, 8x22B): dimensions turn in adjacent pairs, and the weights of
// the chosen experts are made to sum to one, which is the softmax over their scores alone.
// SPDX-License-Identifier: Apache-2.0
#include "model/architecture.h"

namespace sluice::model {
namespace {

class Llama final : public Architecture {
 public:
  std::string_view name() const override { return "llama"; }
  std::string_view expert_width_key() const override { return "feed_forward_length"; }
  bool may_tie_output() const override { return true; }
  bool may_have_rope_factors() const override { return true; }

  Config read_config(const ConfigReader& in) const override {
    Config c = read_common_config(in);
    c.d_ff = in.same_in_all_layers(expert_width_key(), c.n_layers);
    c.rope.pairing = backend::RopePairing::adjacent;
    require_full_rope(in, c);
    return c;
  }

  Layer bind_layer(LayerBinder& bind) const override {
    Layer layer = bind.layer();
    bind.attention(layer, Presence::rare, Presence::rare);
    bind.experts(layer, /*renormalize=*/true);
    return layer;
  }

  void forward_layer(const Layer& w, Step& step) const override {
    auto& [op, experts, rows, kv, s] = step;
    const auto layer = static_cast<size_t>(w.id.value);
    op.project_in(s.x, w.attn_norm, w.qkv, s.qkv);                   // q, k, v of norm(x)
    op.attend(s.qkv, w.attention, rows, kv[layer], s.attention);     // rope, softmax(q k^T) v
    op.project_add(s.attention, w.attn_out, s.x);                    // x += Wo att
    op.route(s.x, w.ffn_norm, w.router, s.expert_input, s.routing);  // a = norm(x); w sums to 1
    experts.run(w.id, s.expert_input, s.routing, s.x);               // x += sum_k w_k expert_k(a)
  }
};

}  // namespace

const Architecture& llama() {
  static const Llama instance;
  return instance;
}

}  // namespace sluice::model
