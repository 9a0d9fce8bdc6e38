// qwen3moe (Qwen3-30B-A3B, Qwen3-235B-A22B, Qwen3-Coder): q and k are normalised head by head
// before they turn, and the weights of the chosen experts are made to sum to one.
// SPDX-License-Identifier: Apache-2.0
#include "model/architecture.h"

namespace sluice::model {
namespace {

class Qwen3Moe final : public Architecture {
 public:
  std::string_view name() const override { return "qwen3moe"; }
  bool may_tie_output() const override { return true; }

  Config read_config(const ConfigReader& in) const override {
    Config c = read_common_config(in);
    c.d_ff = expert_width(in, c);
    c.rope.pairing = backend::RopePairing::halves;
    require_full_rope(in, c);
    return c;
  }

  Layer bind_layer(LayerBinder& bind) const override {
    Layer layer = bind.layer();
    const int head_dim = bind.config().head_dim;
    bind.attention(layer, Presence::rare, Presence::rare);
    bind.head_norms(layer, backend::HeadNorm::per_head, head_dim, head_dim);
    bind.experts(layer, /*renormalize=*/true);
    return layer;
  }

  void forward_layer(const Layer& w, Step& step) const override {
    auto& [op, experts, rows, kv, s] = step;
    const auto layer = static_cast<size_t>(w.id.value);
    op.project_in(s.x, w.attn_norm, w.qkv, s.qkv);  // q, k, v of norm(x)
    op.attend(s.qkv, w.attention, rows, kv[layer],
              s.attention);                        // head norms, rope, softmax(q k^T) v
    op.project_add(s.attention, w.attn_out, s.x);  // x += Wo att
    op.route(s.x, w.ffn_norm, w.router, s.expert_input, s.routing);  // a = norm(x); w sums to 1
    experts.run(w.id, s.expert_input, s.routing, s.x);               // x += sum_k w_k expert_k(a)
  }
};

}  // namespace

const Architecture& qwen3moe() {
  static const Qwen3Moe instance;
  return instance;
}

}  // namespace sluice::model
