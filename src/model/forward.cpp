// See forward.h.
// SPDX-License-Identifier: Apache-2.0
#include "model/forward.h"

namespace sluice::model {
namespace {

const int32_t* forced_experts(const Step& step, LayerId layer) {
  const backend::StepView& rows = step.rows;
  return rows.forced ? rows.forced + layer.value * rows.n_rows * step.s.routing.n_used : nullptr;
}

// Layers of a model may have rows of different widths in the same memory.
backend::RowsView of_width(backend::RowsView rows, int64_t n_cols) {
  return {rows.data, rows.n_rows, n_cols};
}

// x += attention of norm(x).
void attend(const Layer& w, Step& step) {
  auto& [op, experts, rows, kv, s, state] = step;
  const auto layer = static_cast<size_t>(w.id.value);
  const backend::RowsView qkv = of_width(s.qkv, w.attention.qkv_cols());
  const backend::RowsView attention = of_width(s.attention, w.attention.q_cols());
  op.project_in(s.x, w.attn_norm, w.qkv, qkv);              // q (and gates), k, v of norm(x)
  op.attend(qkv, w.attention, rows, kv[layer], attention);  // rope, softmax(q k^T) v
  op.project_add(attention, w.attn_out, s.x);               // x += Wo att
}

// x += the gated DeltaNet of norm(x).
void recur(const Layer& w, Step& step) {
  auto& [op, experts, rows, kv, s, state] = step;
  const auto layer = static_cast<size_t>(w.id.value);
  const backend::RowsView in = of_width(s.qkv, w.delta_net.in_cols());
  const backend::RowsView out = of_width(s.attention, w.delta_net.value_cols());
  op.project_in(s.x, w.attn_norm, w.qkv, in);              // q, k, v, z, b, a of norm(x)
  op.delta_net(in, w.delta_net, rows, state[layer], out);  // convolution, delta rule, gated norm
  op.project_add(out, w.attn_out, s.x);                    // x += Wo out
}

// x += experts of norm(x).
void feed_forward(const Layer& w, Step& step) {
  auto& [op, experts, rows, kv, s, state] = step;
  s.routing.forced = forced_experts(step, w.id);
  op.route(s.x, w.ffn_norm, w.router, s.expert_input, s.routing);  // a = norm(x); top-k
  experts.run(w.id, s.expert_input, s.routing, s.x);               // x += sum_k w_k expert_k(a)
}

}  // namespace

void forward_attention_moe(const Layer& w, Step& step) {
  attend(w, step);
  feed_forward(w, step);
}

void forward_hybrid_moe(const Layer& w, Step& step) {
  w.delta_net ? recur(w, step) : attend(w, step);
  feed_forward(w, step);
}

}  // namespace sluice::model
