// Ops on the CPU. An operation stands in the file of its name (embed.cpp, project_in.cpp, ...);
// those that have work to divide keep it in a class of their own (attend.h, experts.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cpu/attend.h"
#include "backend/cpu/delta_net.h"
#include "backend/cpu/experts.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/matmul.h"
#include "backend/cpu/scratch.h"
#include "backend/ops.h"

namespace sluice::backend {
namespace cpu {

class CpuOps final : public Ops {
 public:
  CpuOps(ThreadPool& pool, const Kernels& kernels)
      : pool_(pool),
        matmul_(pool, kernels),
        attend_(pool),
        delta_net_(pool),
        experts_(pool, kernels) {}

  Buffer allocate(uint64_t n_bytes) override;
  void embed(const WeightView& table, const StepView& step, RowsView x) override;
  void project_in(ConstRowsView x, const NormView& norm, std::span<const Projection> projections,
                  RowsView out) override;
  void attend(RowsView qkv, const AttentionView& attention, const StepView& step,
              const KvLayerView& kv, RowsView out) override {
    attend_.run(qkv, attention, step, kv, out);
  }
  void delta_net(ConstRowsView in, const DeltaNetView& net, const StepView& step,
                 const StateLayerView& state, RowsView out) override {
    delta_net_.run(in, net, step, state, out);
  }
  void delta_replay(const DeltaNetView& net, const StateLayerView& state,
                    const StateReplay& replay) override;
  void project_add(ConstRowsView in, const Projection& projection, RowsView x) override;
  void route(ConstRowsView x, const NormView& norm, const RouterView& router,
             const ExpertInputView& a, const RoutingView& routing) override;
  void experts(const ExpertsView& experts, const ExpertInputView& a, const RoutingView& routing,
               RowsView x) override {
    experts_.run(experts, a, routing, x);
  }
  void logits(ConstRowsView x, const StepView& step, int64_t first, const NormView& norm,
              const WeightView& output, RowsView logits) override;
  void pick(ConstRowsView logits, const StepView& step, int64_t first, PickedRow* picks) override;

 private:
  // norm(x), held until the next call.
  ConstRowsView normalised(ConstRowsView x, const NormView& norm);

  ThreadPool& pool_;
  Matmul matmul_;
  Attend attend_;
  DeltaNet delta_net_;
  Experts experts_;
  Scratch<float> normed_;
  Scratch<float> scores_;
};

}  // namespace cpu

// With kernels of one's own choice: make_cpu_ops(pool) of ops.h takes the best.
std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, const cpu::Kernels& kernels);

}  // namespace sluice::backend
