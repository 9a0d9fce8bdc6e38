// See forward.h.
// SPDX-License-Identifier: Apache-2.0
#include "model/forward.h"

namespace sluice::model {
namespace {

const int32_t* forced_experts(const Step& step, LayerId layer) {
  const backend::StepView& rows = step.rows;
  return rows.forced ? rows.forced + layer.value * rows.n_rows * step.s.routing.n_used : nullptr;
}

}  // namespace

void forward_attention_moe(const Layer& w, Step& step) {
  auto& [op, experts, rows, kv, s] = step;
  const auto layer = static_cast<size_t>(w.id.value);
  op.project_in(s.x, w.attn_norm, w.qkv, s.qkv);                // q, k, v of norm(x)
  op.attend(s.qkv, w.attention, rows, kv[layer], s.attention);  // rope, softmax(q k^T) v
  op.project_add(s.attention, w.attn_out, s.x);                 // x += Wo att
  s.routing.forced = forced_experts(step, w.id);
  op.route(s.x, w.ffn_norm, w.router, s.expert_input, s.routing);  // a = norm(x); top-k
  experts.run(w.id, s.expert_input, s.routing, s.x);               // x += sum_k w_k expert_k(a)
}

}  // namespace sluice::model
