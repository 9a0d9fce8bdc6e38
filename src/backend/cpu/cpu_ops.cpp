// Ops on the CPU, composed of the parts in this folder.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_ops.h"

#include <algorithm>

#include "backend/cpu/attend.h"
#include "backend/cpu/experts.h"
#include "backend/cpu/host_memory.h"
#include "backend/cpu/matmul.h"
#include "backend/cpu/rms_norm.h"
#include "backend/cpu/route.h"
#include "backend/cpu/scratch.h"
#include "base/check.h"
#include "quant/activation.h"
#include "quant/decode.h"
#include "quant/dot.h"
#include "quant/swiglu.h"

namespace sluice::backend {
namespace cpu {
namespace {

class CpuOps final : public Ops {
 public:
  CpuOps(ThreadPool& pool, const Kernels& kernels)
      : pool_(pool), matmul_(pool, kernels), attend_(pool), experts_(pool, kernels) {}

  Buffer allocate(uint64_t n_bytes) override { return allocate_host(n_bytes); }

  void embed(const WeightView& table, const StepView& step, RowsView x) override {
    for (int64_t r = 0; r < x.n_rows; ++r) {
      const TokenId token = step.tokens[static_cast<size_t>(r)];
      CHECK(token >= 0 && token < table.n_rows);
      quant::decode_row(table.type, table.row(token), {x.row(r), static_cast<size_t>(x.n_cols)});
    }
  }

  void project_in(ConstRowsView x, const NormView& norm, std::span<const Projection> projections,
                  RowsView out) override {
    matmul_.multiply(normalised(x, norm), projections, out);
  }

  void attend(RowsView qkv, const AttentionView& attention, const StepView& step,
              const KvLayerView& kv, RowsView out) override {
    attend_.run(qkv, attention, step, kv, out);
  }

  void project_add(ConstRowsView in, const Projection& projection, RowsView x) override {
    matmul_.multiply_add(in, projection, x);
  }

  void route(ConstRowsView x, const NormView& norm, const RouterView& router,
             const ExpertInputView& a, const RoutingView& routing) override {
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

  void experts(const ExpertsView& experts, const ExpertInputView& a, const RoutingView& routing,
               RowsView x) override {
    experts_.run(experts, a, routing, x);
  }

  void logits(ConstRowsView x, std::span<const int32_t> rows, const NormView& norm,
              const WeightView& output, RowsView logits) override {
    const auto n = static_cast<int64_t>(rows.size());
    float* normed = normed_.get(n * x.n_cols);
    for (int64_t i = 0; i < n; ++i) {
      rms_norm({x.row(rows[static_cast<size_t>(i)]), static_cast<size_t>(x.n_cols)}, norm,
               normed + i * x.n_cols);
    }
    const Projection projection{output, nullptr};
    matmul_.multiply({normed, n, x.n_cols}, {&projection, 1}, logits);
  }

 private:
  // norm(x), held until the next call.
  ConstRowsView normalised(ConstRowsView x, const NormView& norm) {
    float* out = normed_.get(x.n_rows * x.n_cols);
    pool_.parallel_for(x.n_rows, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        rms_norm({x.row(r), static_cast<size_t>(x.n_cols)}, norm, out + r * x.n_cols);
      }
    });
    return {out, x.n_rows, x.n_cols};
  }

  static void route_row(ConstRowsView h, int64_t r, const RouterView& router,
                        std::span<float> scores, const ExpertInputView& a,
                        const RoutingView& routing) {
    const auto n_used = static_cast<size_t>(router.n_used);
    choose_experts(scores, router.renormalize, {routing.experts + r * router.n_used, n_used},
                   {routing.weights + r * router.n_used, n_used});
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

  ThreadPool& pool_;
  Matmul matmul_;
  Attend attend_;
  Experts experts_;
  Scratch<float> normed_;
  Scratch<float> scores_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, const cpu::Kernels& kernels) {
  return std::make_unique<cpu::CpuOps>(pool, kernels);
}

std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool) {
  return make_cpu_ops(pool, cpu::best_kernels());
}

}  // namespace sluice::backend
