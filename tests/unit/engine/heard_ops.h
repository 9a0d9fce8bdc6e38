// Operations of a device that somebody hears of, and that are otherwise the ones they were given.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "backend/device_ops.h"
#include "unit/engine/forwarded_ops.h"

namespace sluice::engine::test {

// Told of each layer's attention when it is enqueued or recorded.
using OnAttend = std::function<void(const backend::StepView&)>;

class HeardOps final : public ForwardedOps<backend::DeviceOps> {
 public:
  HeardOps(std::unique_ptr<backend::DeviceOps> inner, OnAttend on_attend)
      : ForwardedOps(std::move(inner)), on_attend_(std::move(on_attend)) {}

  void attend(backend::RowsView qkv, const backend::AttentionView& attention,
              const backend::StepView& step, const backend::KvLayerView& kv,
              backend::RowsView out) override {
    on_attend_(step);
    ForwardedOps::attend(qkv, attention, step, kv, out);
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
  OnAttend on_attend_;
};

}  // namespace sluice::engine::test
