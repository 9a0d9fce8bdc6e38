// The operations of the RAM device, as a stream enqueues or records them; what they do is in
// ram_kernels.h, which gets addresses that it can follow.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/ram/ram_kernels.h"
#include "backend/ram/ram_stream.h"

namespace sluice::backend {

class RamOps final : public DeviceOps {
 public:
  RamOps(RamDevice& device, RamStream& stream, const MailboxView& mailbox,
         std::span<std::byte> scratch)
      : device_(device), stream_(stream), kernels_(device, mailbox, scratch) {}

  Buffer allocate(uint64_t n_bytes) override;
  void embed(const WeightView& table, const StepView& step, RowsView x) override;
  void project_in(ConstRowsView x, const NormView& norm, std::span<const Projection> projections,
                  RowsView out) override;
  void attend(RowsView qkv, const AttentionView& attention, const StepView& step,
              const KvLayerView& kv, RowsView out) override;
  void delta_net(ConstRowsView in, const DeltaNetView& net, const StepView& step,
                 const StateLayerView& state, RowsView out) override;
  void delta_replay(const DeltaNetView& net, const StateLayerView& state,
                    const StateReplay& replay) override;
  void project_add(ConstRowsView in, const Projection& projection, RowsView x) override;
  void route(ConstRowsView x, const NormView& norm, const RouterView& router,
             const ExpertInputView& a, const RoutingView& routing) override;
  void experts(const ExpertsView& experts, const ExpertInputView& a, const RoutingView& routing,
               RowsView x) override;
  void logits(ConstRowsView x, const StepView& step, int64_t first, const NormView& norm,
              const WeightView& output, RowsView logits) override;
  void pick(ConstRowsView logits, const StepView& step, int64_t first, PickedRow* picks) override;

  void change_table(const TableChangesView& changes) override;
  void foresee(const ForeseeView& foresee, ConstRowsView x, const NormView& norm,
               const RouterView& router, const RoutingView& prediction) override;
  int64_t most_found_rows() const override { return kernels_.most_found_rows(); }
  void find_experts(const ExpertsView& experts, const LookupView& lookup, const ExpertInputView& a,
                    const RoutingView& routing) override;
  void compute_found(const ExpertsView& experts, const ExpertInputView& a) override;
  void add_found(const RoutingView& routing, RowsView x) override;
  void sort_pairs(const ExpertsView& experts, const SortView& sort, const RoutingView& routing,
                  int64_t n_rows) override;
  void compute_sorted(const ExpertsView& experts, const SortedPairs& pairs,
                      const ExpertInputView& a) override;
  void add_sorted(const ExpertsView& experts, const RoutingView& routing, const LayerLogView& log,
                  RowsView x) override;

 private:
  template <typename... Params, typename... Views>
  void enqueue(void (RamKernels::*kernel)(Params...), const Views&... views);

  RamDevice& device_;
  RamStream& stream_;
  RamKernels kernels_;
};

}  // namespace sluice::backend
