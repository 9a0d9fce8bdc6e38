// qwen2moe (Qwen1.5-MoE-A2.7B, Qwen2-57B-A14B): biases on q, k and v, router weights as the softmax
// left them, and one shared expert behind a sigmoid gate.
// SPDX-License-Identifier: Apache-2.0
#include "model/architecture.h"

namespace sluice::model {
namespace {

class Qwen2Moe final : public Architecture {
 public:
  std::string_view name() const override { return "qwen2moe"; }

  Config read_config(const ConfigReader& in) const override {
    Config c = read_common_config(in);
    c.d_ff = expert_width(in, c);
    c.d_ff_shared = in.has("expert_shared_feed_forward_length")
                        ? in.same_in_all_layers("expert_shared_feed_forward_length", c.n_layers)
                        : in.same_in_all_layers("feed_forward_length", c.n_layers);
    c.rope.pairing = backend::RopePairing::halves;
    require_full_rope(in, c);
    return c;
  }

  Layer bind_layer(LayerBinder& bind) const override {
    Layer layer = bind.layer();
    bind.attention(layer, Presence::usual, Presence::rare);
    bind.experts(layer, /*renormalize=*/false);
    bind.shared_expert(layer);
    return layer;
  }

  void forward_layer(const Layer& w, Step& step) const override {
    auto& [op, experts, rows, kv, s] = step;
    const auto layer = static_cast<size_t>(w.id.value);
    op.project_in(s.x, w.attn_norm, w.qkv, s.qkv);                   // q, k, v of norm(x), + bias
    op.attend(s.qkv, w.attention, rows, kv[layer], s.attention);     // rope, softmax(q k^T) v
    op.project_add(s.attention, w.attn_out, s.x);                    // x += Wo att
    op.route(s.x, w.ffn_norm, w.router, s.expert_input, s.routing);  // a = norm(x); w, g
    experts.run(w.id, s.expert_input, s.routing, s.x);  // x += sum_k w_k expert_k(a) + g shared(a)
  }
};

}  // namespace

const Architecture& qwen2moe() {
  static const Qwen2Moe instance;
  return instance;
}

}  // namespace sluice::model
