// The router of a decode step on the device: which experts the rows chose, with what weight, and
// where their weights stand. Pointers are device memory; nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/experts.h"

namespace sluice::backend::cuda {

struct Route {
  const float* x = nullptr;  // [n_rows, d_model]
  const float* norm = nullptr;
  float eps = 0.0f;
  int n_rows = 0;
  int d_model = 0;
  const int32_t* n_live = nullptr;  // rows from *n_live on choose no expert; null: there are none

  quant::Type type = quant::Type::f32;  // of weight: f32, f16 or bf16
  const void* weight = nullptr;         // [n_experts, d_model], rows
  const float* shared_gate = nullptr;   // [d_model]; null: the shared expert, if any, has no gate
  int n_experts = 0;
  int n_used = 0;
  RouterScore score = RouterScore::softmax;
  bool renormalize = false;
  bool ranks = true;  // false: only scores and a, the rest is left to `Ranking`

  // Where experts stand: table [n_experts], each null or the address of a slot.
  const uint8_t* const* table = nullptr;
  int64_t up_at = 0;
  int64_t down_at = 0;
  const uint8_t* shared[3] = {};  // gate, up, down of the shared expert, or null

  Int8Rows a;                       // norm(x)
  int32_t* experts = nullptr;       // [n_rows, n_used], best first, ties to the lower expert
  float* weights = nullptr;         // [n_rows, n_used]
  float* shared_weights = nullptr;  // [n_rows]; 1 where there is no gate
  ExpertList list;

  float* scores = nullptr;     // scratch: [n_rows, n_experts + 1]
  unsigned* n_done = nullptr;  // scratch: 0 before the first launch, and again after each
};
void route(const Route& p, const Launch& how);

// Whether gate_up could rank instead.
constexpr bool can_rank_later(const Route& p) {
  return p.n_experts <= kMostRanked && p.d_model <= 8192 &&
         (p.shared[0] != nullptr || p.shared_gate == nullptr);
}
constexpr Ranking ranking_of(const Route& p) {
  Ranking r{p.scores, p.n_experts, p.score,   p.renormalize, p.table,
            p.up_at,  p.down_at,   p.experts, p.weights};
  for (int i = 0; i < 3; ++i) r.shared[i] = p.shared[i];
  r.has_shared_gate = p.shared_gate != nullptr;
  r.shared_weights = p.shared_weights;
  r.n_live = p.n_live;
  return r;
}

}  // namespace sluice::backend::cuda
