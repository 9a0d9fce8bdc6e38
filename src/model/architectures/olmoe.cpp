// olmoe (OLMoE-1B-7B): q and k are normalised over all heads at once, and router weights stay as
// the softmax left them.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "model/architecture.h"

namespace sluice::model {
namespace {

class Olmoe final : public Architecture {
 public:
  std::string_view name() const override { return "olmoe"; }
  std::string_view expert_width_key() const override { return "feed_forward_length"; }

  Config read_config(const ConfigReader& in) const override {
    Config c = read_common_config(in);
    c.d_ff = in.same_in_all_layers(expert_width_key(), c.n_layers);
    c.rope.pairing = backend::RopePairing::halves;
    if (c.n_kv_heads != c.n_heads) {
      in.refuse(cat(c.n_kv_heads, " key-value heads; expected ", c.n_heads, " as there are heads"));
    }
    require_full_rope(in, c);
    return c;
  }

  Layer bind_layer(LayerBinder& bind) const override {
    Layer layer = bind.layer();
    bind.attention(layer, Presence::rare, Presence::rare);
    bind.head_norms(layer, backend::HeadNorm::whole, bind.config().q_cols(),
                    bind.config().kv_cols());
    bind.experts(layer, /*renormalize=*/false);
    return layer;
  }

  void forward_layer(const Layer& w, Step& step) const override {
    auto& [op, experts, rows, kv, s] = step;
    const auto layer = static_cast<size_t>(w.id.value);
    op.project_in(s.x, w.attn_norm, w.qkv, s.qkv);                // q, k, v of norm(x)
    op.attend(s.qkv, w.attention, rows, kv[layer], s.attention);  // norms, rope, softmax(q k^T) v
    op.project_add(s.attention, w.attn_out, s.x);                 // x += Wo att
    op.route(s.x, w.ffn_norm, w.router, s.expert_input, s.routing);  // a = norm(x); w
    experts.run(w.id, s.expert_input, s.routing, s.x);               // x += sum_k w_k expert_k(a)
  }
};

}  // namespace

const Architecture& olmoe() {
  static const Olmoe instance;
  return instance;
}

}  // namespace sluice::model
