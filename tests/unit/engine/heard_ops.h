// Operations of a device that somebody hears of, and that are otherwise the ones they were given.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "backend/device_ops.h"

namespace sluice::engine::test {

// Told of each layer's attention when it is enqueued or recorded.
using OnAttend = std::function<void(const backend::StepView&)>;

class HeardOps final : public backend::DeviceOps {
 public:
  HeardOps(std::unique_ptr<backend::DeviceOps> inner, OnAttend on_attend)
      : inner_(std::move(inner)), on_attend_(std::move(on_attend)) {}

  void attend(backend::RowsView qkv, const backend::AttentionView& attention,
              const backend::StepView& step, const backend::KvLayerView& kv,
              backend::RowsView out) override {
    on_attend_(step);
    inner_->attend(qkv, attention, step, kv, out);
  }

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
  void reserve(const OpsSize& size) override { inner_->reserve(size); }
  void change_table(const backend::TableChangesView& changes) override {
    inner_->change_table(changes);
  }
  void foresee(const backend::ForeseeView& foresee, backend::ConstRowsView x,
               const backend::NormView& norm, const backend::RouterView& router,
               const backend::RoutingView& prediction) override {
    inner_->foresee(foresee, x, norm, router, prediction);
  }
  int64_t most_found_rows() const override { return inner_->most_found_rows(); }
  void find_experts(const backend::ExpertsView& experts, const backend::LookupView& lookup,
                    const backend::ExpertInputView& a,
                    const backend::RoutingView& routing) override {
    inner_->find_experts(experts, lookup, a, routing);
  }
  void compute_found(const backend::ExpertsView& experts,
                     const backend::ExpertInputView& a) override {
    inner_->compute_found(experts, a);
  }
  void add_found(const backend::RoutingView& routing, backend::RowsView x) override {
    inner_->add_found(routing, x);
  }
  void sort_pairs(const backend::ExpertsView& experts, const backend::SortView& sort,
                  const backend::RoutingView& routing, int64_t n_rows) override {
    inner_->sort_pairs(experts, sort, routing, n_rows);
  }
  void compute_sorted(const backend::ExpertsView& experts, const backend::SortedPairs& pairs,
                      const backend::ExpertInputView& a) override {
    inner_->compute_sorted(experts, pairs, a);
  }
  void add_sorted(const backend::ExpertsView& experts, const backend::RoutingView& routing,
                  const backend::LayerLogView& log, backend::RowsView x) override {
    inner_->add_sorted(experts, routing, log, x);
  }

 private:
  std::unique_ptr<backend::DeviceOps> inner_;
  OnAttend on_attend_;
};

}  // namespace sluice::engine::test
