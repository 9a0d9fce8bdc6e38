// Operations that hand everything on to others, for tests that change or hear of some of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "backend/ops.h"

namespace sluice::engine::test {

// Base: backend::Ops, or backend::DeviceOps, whose own operations are left to whoever derives.
template <typename Base>
class ForwardedOps : public Base {
 public:
  explicit ForwardedOps(std::unique_ptr<Base> inner) : inner_(std::move(inner)) {}

  backend::Buffer allocate(uint64_t n_bytes) override { return inner_->allocate(n_bytes); }
  void embed(const backend::WeightView& table, const backend::StepView& step,
             backend::RowsView x) override {
    inner_->embed(table, step, x);
  }
  void project_in(backend::ConstRowsView x, const backend::NormView& norm,
                  std::span<const backend::Projection> projections,
                  backend::RowsView out) override {
    inner_->project_in(x, norm, projections, out);
  }
  void delta_net(backend::ConstRowsView in, const backend::DeltaNetView& net,
                 const backend::StepView& step, const backend::StateLayerView& state,
                 backend::RowsView out) override {
    inner_->delta_net(in, net, step, state, out);
  }
  void delta_replay(const backend::DeltaNetView& net, const backend::StateLayerView& state,
                    const backend::StateReplay& replay) override {
    inner_->delta_replay(net, state, replay);
  }
  void attend(backend::RowsView qkv, const backend::AttentionView& attention,
              const backend::StepView& step, const backend::KvLayerView& kv,
              backend::RowsView out) override {
    inner_->attend(qkv, attention, step, kv, out);
  }
  void project_add(backend::ConstRowsView in, const backend::Projection& projection,
                   backend::RowsView x) override {
    inner_->project_add(in, projection, x);
  }
  void route(backend::ConstRowsView x, const backend::NormView& norm,
             const backend::RouterView& router, const backend::ExpertInputView& a,
             const backend::RoutingView& routing) override {
    inner_->route(x, norm, router, a, routing);
  }
  void experts(const backend::ExpertsView& experts, const backend::ExpertInputView& a,
               const backend::RoutingView& routing, backend::RowsView x) override {
    inner_->experts(experts, a, routing, x);
  }
  void logits(backend::ConstRowsView x, const backend::StepView& step, int64_t first,
              const backend::NormView& norm, const backend::WeightView& output,
              backend::RowsView logits) override {
    inner_->logits(x, step, first, norm, output, logits);
  }
  void pick(backend::ConstRowsView logits, const backend::StepView& step, int64_t first,
            backend::PickedRow* picks) override {
    inner_->pick(logits, step, first, picks);
  }

 protected:
  std::unique_ptr<Base> inner_;
};

}  // namespace sluice::engine::test
