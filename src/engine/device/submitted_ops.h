// Operations that are handed to a stream one by one, so that the host goes through a model's layers
// ahead of the device and may stop in between.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/device_ops.h"

namespace sluice::engine {

class SubmittedOps final : public backend::Ops {
 public:
  SubmittedOps(backend::DeviceOps& ops, backend::Stream& stream) : ops_(ops), stream_(stream) {}

  backend::Buffer allocate(uint64_t n_bytes) override { return ops_.allocate(n_bytes); }
  void embed(const backend::WeightView& table, const backend::StepView& step,
             backend::RowsView x) override {
    stream_.run([=, this] { ops_.embed(table, step, x); });
  }
  void project_in(backend::ConstRowsView x, const backend::NormView& norm,
                  std::span<const backend::Projection> projections,
                  backend::RowsView out) override {
    stream_.run([=, this] { ops_.project_in(x, norm, projections, out); });
  }
  void attend(backend::RowsView qkv, const backend::AttentionView& attention,
              const backend::StepView& step, const backend::KvLayerView& kv,
              backend::RowsView out) override {
    stream_.run([=, this] { ops_.attend(qkv, attention, step, kv, out); });
  }
  void project_add(backend::ConstRowsView in, const backend::Projection& projection,
                   backend::RowsView x) override {
    stream_.run([=, this] { ops_.project_add(in, projection, x); });
  }
  void route(backend::ConstRowsView x, const backend::NormView& norm,
             const backend::RouterView& router, const backend::ExpertInputView& a,
             const backend::RoutingView& routing) override {
    stream_.run([=, this] { ops_.route(x, norm, router, a, routing); });
  }
  void experts(const backend::ExpertsView& experts, const backend::ExpertInputView& a,
               const backend::RoutingView& routing, backend::RowsView x) override {
    stream_.run([=, this] { ops_.experts(experts, a, routing, x); });
  }
  void logits(backend::ConstRowsView x, std::span<const int32_t> rows,
              const backend::NormView& norm, const backend::WeightView& output,
              backend::RowsView logits) override {
    stream_.run([=, this] { ops_.logits(x, rows, norm, output, logits); });
  }

 private:
  backend::DeviceOps& ops_;
  backend::Stream& stream_;
};

}  // namespace sluice::engine
