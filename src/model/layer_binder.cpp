// See layer_binder.h.
// SPDX-License-Identifier: Apache-2.0
#include "model/layer_binder.h"

#include "base/error.h"

namespace sluice::model {

using backend::HeadNorm;
using backend::NormView;
using backend::WeightView;

std::string LayerBinder::name(const std::string& suffix) const {
  return cat("blk.", id_.value, ".", suffix);
}

NormView LayerBinder::norm(const char* suffix, int64_t n, Presence presence) {
  return {vector(suffix, n, presence), config_.norm_eps};
}

const float* LayerBinder::vector(const char* suffix, int64_t n, Presence presence) {
  return source_.vector({name(suffix), {n}, presence});
}

const float* LayerBinder::values(const char* suffix, std::vector<int64_t> shape) {
  return source_.vector({name(suffix), std::move(shape)});
}

WeightView LayerBinder::matrix(const char* suffix, std::vector<int64_t> shape, Presence presence) {
  return source_.matrix({name(suffix), std::move(shape), presence});
}

WeightView LayerBinder::matrix_of(Role role, const std::string& suffix,
                                  std::vector<int64_t> shape) {
  return source_.matrix({name(suffix), std::move(shape), Presence::required, role});
}

WeightView LayerBinder::stack(const char* suffix, std::vector<int64_t> shape) {
  return matrix_of(Role::expert, suffix, std::move(shape));
}

// Some converters store q, k and v as one matrix: rows of q, then k, then v.
bool LayerBinder::fused_qkv(Layer& layer, int64_t q) {
  if (!has("attn_qkv.weight")) return false;
  const int64_t kv = config_.kv_cols();
  const WeightView all = matrix("attn_qkv.weight", {config_.d_model, q + 2 * kv});
  const float* b = vector("attn_qkv.bias", q + 2 * kv, Presence::rare);
  if (!all) return true;  // a source without data
  layer.qkv = {{all.rows(0, q), b},
               {all.rows(q, kv), b ? b + q : nullptr},
               {all.rows(q + kv, kv), b ? b + q + kv : nullptr}};
  return true;
}

void LayerBinder::attention(Layer& layer, const AttentionRules& rules) {
  const Config& c = config_;
  layer.attn_norm = norm("attn_norm.weight", c.d_model);
  const int64_t q_cols = rules.is_gated ? 2 * c.q_cols() : c.q_cols();
  if (!fused_qkv(layer, q_cols)) {
    layer.qkv = {{matrix("attn_q.weight", {c.d_model, q_cols}),
                  vector("attn_q.bias", q_cols, rules.qkv_bias)},
                 {matrix("attn_k.weight", {c.d_model, c.kv_cols()}),
                  vector("attn_k.bias", c.kv_cols(), rules.qkv_bias)},
                 {matrix("attn_v.weight", {c.d_model, c.kv_cols()}),
                  vector("attn_v.bias", c.kv_cols(), rules.qkv_bias)}};
  }
  layer.attn_out = {matrix("attn_output.weight", {c.q_cols(), c.d_model}),
                    vector("attn_output.bias", c.d_model, rules.out_bias)};
  layer.attention.n_heads = c.n_heads;
  layer.attention.n_kv_heads = c.n_kv_heads;
  layer.attention.head_dim = c.head_dim;
  layer.attention.is_gated = rules.is_gated;
  layer.attention.rope = rope_;
}

void LayerBinder::head_norms(Layer& layer, HeadNorm kind, Presence presence) {
  const bool whole = kind == HeadNorm::whole;
  layer.attention.head_norm = kind;
  layer.attention.q_norm =
      norm("attn_q_norm.weight", whole ? config_.q_cols() : config_.head_dim, presence);
  layer.attention.k_norm =
      norm("attn_k_norm.weight", whole ? config_.kv_cols() : config_.head_dim, presence);
}

void LayerBinder::experts(Layer& layer, const RouterRules& rules) {
  const Config& c = config_;
  layer.ffn_norm = norm(rules.norm, c.d_model);
  layer.router = {.weight = matrix("ffn_gate_inp.weight", {c.d_model, c.n_experts}),
                  .n_used = c.n_experts_used,
                  .renormalize = rules.renormalize};
  has("ffn_gate.0.weight") ? experts_apart() : stacked_experts(layer);
}

void LayerBinder::stacked_experts(Layer& layer) {
  const Config& c = config_;
  if (has("ffn_gate_up_exps.weight") && !has("ffn_gate_exps.weight")) {
    const WeightView both =
        stack("ffn_gate_up_exps.weight", {c.d_model, 2 * int64_t{c.d_ff}, c.n_experts});
    layer.experts.gate = both.rows_of_each(0, c.d_ff);
    layer.experts.up = both.rows_of_each(c.d_ff, c.d_ff);
  } else {
    layer.experts.gate = stack("ffn_gate_exps.weight", {c.d_model, c.d_ff, c.n_experts});
    layer.experts.up = stack("ffn_up_exps.weight", {c.d_model, c.d_ff, c.n_experts});
  }
  layer.experts.down = stack("ffn_down_exps.weight", {c.d_ff, c.d_model, c.n_experts});
}

// As files of 2023 hold them.
void LayerBinder::experts_apart() {
  const Config& c = config_;
  source_.require_planning("a tensor for every single expert");
  for (int e = 0; e < c.n_experts; ++e) {
    matrix_of(Role::expert, cat("ffn_gate.", e, ".weight"), {c.d_model, c.d_ff});
    matrix_of(Role::expert, cat("ffn_up.", e, ".weight"), {c.d_model, c.d_ff});
    matrix_of(Role::expert, cat("ffn_down.", e, ".weight"), {c.d_ff, c.d_model});
  }
}

void LayerBinder::dense_network(Layer& layer, const char* norm_name) {
  const Config& c = config_;
  layer.ffn_norm = norm(norm_name, c.d_model);
  layer.router = {.weight = source_.zero_row(c.d_model), .n_used = 1};
  layer.experts.gate = stack("ffn_gate.weight", {c.d_model, c.d_ff});
  layer.experts.up = stack("ffn_up.weight", {c.d_model, c.d_ff});
  layer.experts.down = stack("ffn_down.weight", {c.d_ff, c.d_model});
}

void LayerBinder::shared_expert(Layer& layer, bool gated) {
  const Config& c = config_;
  if (gated) {
    layer.router.shared_gate = source_.vector(
        {name("ffn_gate_inp_shexp.weight"), {c.d_model}, Presence::required, Role::shared});
  }
  const auto shared = [&](const char* suffix, int64_t n_in, int64_t n_out) {
    return matrix_of(Role::shared, suffix, {n_in, n_out});
  };
  layer.experts.shared_gate = shared("ffn_gate_shexp.weight", c.d_model, c.d_ff_shared);
  layer.experts.shared_up = shared("ffn_up_shexp.weight", c.d_model, c.d_ff_shared);
  layer.experts.shared_down = shared("ffn_down_shexp.weight", c.d_ff_shared, c.d_model);
}

void LayerBinder::dense_or_experts(Layer& layer, const char* norm_name) {
  const Config& c = config_;
  if (id_.value < c.n_dense_layers) {
    layer.ffn_norm = norm(norm_name, c.d_model);
    matrix_of(Role::shared, "ffn_gate.weight", {c.d_model, c.d_ff_dense});
    matrix_of(Role::shared, "ffn_up.weight", {c.d_model, c.d_ff_dense});
    matrix_of(Role::shared, "ffn_down.weight", {c.d_ff_dense, c.d_model});
    return;
  }
  experts(layer, {.norm = norm_name});
  vector("exp_probs_b.bias", c.n_experts, Presence::usual);
  shared_expert(layer, /*gated=*/false);
}

void LayerBinder::mtp(Layer& layer) {
  const Config& c = config_;
  if (id_.value < c.n_layers) return;
  MtpView& mtp = layer.mtp;
  mtp.join = matrix("nextn.eh_proj.weight", {2 * int64_t{c.d_model}, c.d_model});
  mtp.embedding_norm = norm("nextn.enorm.weight", c.d_model);
  mtp.hidden_norm = norm("nextn.hnorm.weight", c.d_model);
  mtp.output_norm = norm("nextn.shared_head_norm.weight", c.d_model, Presence::usual);
  mtp.embedding = matrix("nextn.embed_tokens.weight", {c.d_model, c.n_vocab}, Presence::rare);
  mtp.output = matrix("nextn.shared_head_head.weight", {c.d_model, c.n_vocab}, Presence::rare);
}

}  // namespace sluice::model
