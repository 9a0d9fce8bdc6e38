// See layer.h.
// SPDX-License-Identifier: Apache-2.0
#include "model/layer.h"

#include "base/error.h"

namespace sluice::model {

using backend::HeadNorm;
using backend::NormView;
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
  trunk.vectors.push_back({&layer.ffn_norm.weight, d_model});
  trunk.vectors.push_back({&layer.router.shared_gate, d_model});
  std::erase_if(trunk.matrices, [](const WeightView* w) { return !*w; });
  std::erase_if(trunk.vectors, [](const TrunkTensors::Vector& v) { return !*v.data; });
  return trunk;
}

std::string LayerBinder::name(const char* suffix) const {
  return cat("blk.", id_.value, ".", suffix);
}

NormView LayerBinder::norm(const char* suffix, int64_t n) {
  return {source_.vector({name(suffix), {n}}), config_.norm_eps};
}

WeightView LayerBinder::matrix(const char* suffix, std::vector<int64_t> shape, Presence presence) {
  return source_.matrix({name(suffix), std::move(shape), presence});
}

const float* LayerBinder::bias(const char* suffix, int64_t n, Presence presence) {
  return source_.vector({name(suffix), {n}, presence});
}

// Some converters store q, k and v as one matrix: rows of q, then k, then v.
bool LayerBinder::fused_qkv(Layer& layer) {
  const int64_t q = config_.q_cols();
  const int64_t kv = config_.kv_cols();
  const WeightView all = matrix("attn_qkv.weight", {config_.d_model, q + 2 * kv}, Presence::rare);
  if (!all) return false;
  const float* b = bias("attn_qkv.bias", q + 2 * kv, Presence::rare);
  layer.qkv[0] = {all.rows(0, q), b};
  layer.qkv[1] = {all.rows(q, kv), b ? b + q : nullptr};
  layer.qkv[2] = {all.rows(q + kv, kv), b ? b + q + kv : nullptr};
  return true;
}

void LayerBinder::attention(Layer& layer, Presence q_k_v_bias, Presence out_bias) {
  const Config& c = config_;
  layer.attn_norm = norm("attn_norm.weight", c.d_model);
  if (!fused_qkv(layer)) {
    layer.qkv[0] = {matrix("attn_q.weight", {c.d_model, c.q_cols()}),
                    bias("attn_q.bias", c.q_cols(), q_k_v_bias)};
    layer.qkv[1] = {matrix("attn_k.weight", {c.d_model, c.kv_cols()}),
                    bias("attn_k.bias", c.kv_cols(), q_k_v_bias)};
    layer.qkv[2] = {matrix("attn_v.weight", {c.d_model, c.kv_cols()}),
                    bias("attn_v.bias", c.kv_cols(), q_k_v_bias)};
  }
  layer.attn_out = {matrix("attn_output.weight", {c.q_cols(), c.d_model}),
                    bias("attn_output.bias", c.d_model, out_bias)};
  layer.attention.n_heads = c.n_heads;
  layer.attention.n_kv_heads = c.n_kv_heads;
  layer.attention.head_dim = c.head_dim;
  layer.attention.rope = rope_;
}

void LayerBinder::head_norms(Layer& layer, HeadNorm kind, int64_t n_q, int64_t n_k) {
  layer.attention.head_norm = kind;
  layer.attention.q_norm = norm("attn_q_norm.weight", n_q);
  layer.attention.k_norm = norm("attn_k_norm.weight", n_k);
}

void LayerBinder::experts(Layer& layer, bool renormalize) {
  const Config& c = config_;
  layer.ffn_norm = norm("ffn_norm.weight", c.d_model);
  layer.router = {.weight = matrix("ffn_gate_inp.weight", {c.d_model, c.n_experts}),
                  .n_used = c.n_experts_used,
                  .renormalize = renormalize};
  layer.experts.gate = matrix("ffn_gate_exps.weight", {c.d_model, c.d_ff, c.n_experts});
  layer.experts.up = matrix("ffn_up_exps.weight", {c.d_model, c.d_ff, c.n_experts});
  layer.experts.down = matrix("ffn_down_exps.weight", {c.d_ff, c.d_model, c.n_experts});
}

void LayerBinder::shared_expert(Layer& layer) {
  const Config& c = config_;
  layer.router.shared_gate = source_.vector({name("ffn_gate_inp_shexp.weight"), {c.d_model}});
  layer.experts.shared_gate = matrix("ffn_gate_shexp.weight", {c.d_model, c.d_ff_shared});
  layer.experts.shared_up = matrix("ffn_up_shexp.weight", {c.d_model, c.d_ff_shared});
  layer.experts.shared_down = matrix("ffn_down_shexp.weight", {c.d_ff_shared, c.d_model});
}

}  // namespace sluice::model
