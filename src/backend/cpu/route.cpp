// Ops::route on the CPU: a = norm(x) in the formats that are asked for, and the router's choice.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/route.h"

#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/softmax.h"
#include "quant/activation.h"
#include "quant/dot.h"
#include "quant/swiglu.h"

namespace sluice::backend::cpu {
namespace {

void route_row(ConstRowsView h, int64_t r, const RouterView& router, std::span<float> scores,
               const ExpertInputView& a, const RoutingView& routing) {
  const auto n_used = static_cast<size_t>(router.n_used);
  choose_experts(scores, router.renormalize, {routing.experts + r * router.n_used, n_used},
                 {routing.weights + r * router.n_used, n_used});
  for (int64_t i = r * router.n_used; routing.forced && i < (r + 1) * router.n_used; ++i) {
    if (routing.forced[i] >= 0) routing.experts[i] = routing.forced[i];
  }
  if (router.shared_gate) {
    routing.shared_weights[r] =
        quant::sigmoid(quant::dot_f32(router.shared_gate, h.row(r), h.n_cols));
  }
  const auto n_cols = static_cast<size_t>(h.n_cols);
  if (a.f32) std::copy_n(h.row(r), n_cols, a.f32 + r * a.n_cols);
  if (a.q) {
    quant::quantize_activation({h.row(r), n_cols}, a.q + r * a.n_cols, a.d + r * a.n_cols / 32,
                               a.y + r * a.n_cols / 32);
  }
}

}  // namespace

void choose_experts(std::span<float> scores, bool renormalize, std::span<int32_t> experts,
                    std::span<float> weights) {
  softmax(scores);

  // Insertion into a short sorted list; a later equal probability does not pass an earlier one.
  const size_t n_used = experts.size();
  size_t n_found = 0;
  for (size_t e = 0; e < scores.size(); ++e) {
    size_t rank = n_found;
    while (rank > 0 && scores[e] > weights[rank - 1]) --rank;
    if (rank == n_used) continue;
    n_found = std::min(n_found + 1, n_used);
    for (size_t i = n_found - 1; i > rank; --i) {
      experts[i] = experts[i - 1];
      weights[i] = weights[i - 1];
    }
    experts[rank] = static_cast<int32_t>(e);
    weights[rank] = scores[e];
  }

  if (!renormalize) return;
  float total = 0.0f;
  for (const float w : weights) total += w;
  total = std::max(total, 0x1p-14f);
  for (float& w : weights) w /= total;
}

void CpuOps::route(ConstRowsView x, const NormView& norm, const RouterView& router,
                   const ExpertInputView& a, const RoutingView& routing) {
  const ConstRowsView h = normalised(x, norm);
  const Projection projection{router.weight, nullptr};
  const int64_t n_experts = router.weight.n_rows;
  const RowsView scores{scores_.get(x.n_rows * n_experts), x.n_rows, n_experts};
  matmul_.multiply(h, {&projection, 1}, scores);
  pool_.parallel_for(x.n_rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      route_row(h, r, router, {scores.row(r), static_cast<size_t>(n_experts)}, a, routing);
    }
  });
}

}  // namespace sluice::backend::cpu
