// See layer.h.
// SPDX-License-Identifier: Apache-2.0
#include "model/layer.h"

namespace sluice::model {

using backend::HeadNorm;
using backend::WeightView;

TrunkTensors trunk_of(Layer& layer) {
  TrunkTensors trunk;
  const auto add = [&](backend::Projection& p) {
    trunk.matrices.push_back(&p.weight);
    trunk.vectors.push_back({&p.bias, p.weight.n_rows});
  };
  for (backend::Projection& p : layer.qkv) add(p);
  add(layer.attn_out);
  backend::ExpertsView& e = layer.experts;
  for (WeightView* w : {&layer.router.weight, &e.shared_gate, &e.shared_up, &e.shared_down}) {
    trunk.matrices.push_back(w);
  }
  const int64_t d_model = layer.attn_out.weight.n_rows;
  const backend::AttentionView& att = layer.attention;
  const bool whole = att.head_norm == HeadNorm::whole;
  trunk.vectors.push_back({&layer.attn_norm.weight, d_model});
  trunk.vectors.push_back({&layer.attention.q_norm.weight, whole ? att.q_cols() : att.head_dim});
  trunk.vectors.push_back({&layer.attention.k_norm.weight, whole ? att.kv_cols() : att.head_dim});
  backend::DeltaNetView& net = layer.delta_net;
  trunk.vectors.push_back({&net.conv, net.conv_cols() * net.n_taps});
  trunk.vectors.push_back({&net.decay, net.n_value_heads});
  trunk.vectors.push_back({&net.time_bias, net.n_value_heads});
  trunk.vectors.push_back({&net.norm.weight, net.head_dim});
  trunk.vectors.push_back({&layer.ffn_norm.weight, d_model});
  trunk.vectors.push_back({&layer.router.shared_gate, d_model});
  std::erase_if(trunk.matrices, [](const WeightView* w) { return !*w; });
  std::erase_if(trunk.vectors, [](const TrunkTensors::Vector& v) { return !*v.data; });
  return trunk;
}

}  // namespace sluice::model
