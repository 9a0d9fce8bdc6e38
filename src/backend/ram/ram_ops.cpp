// See ram_ops.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/ram/ram_ops.h"

#include "backend/ram/ram_address.h"

namespace sluice::backend {

// Keeps the views, with addresses that the device's work can follow.
template <typename... Params, typename... Views>
void RamOps::enqueue(void (RamKernels::*kernel)(Params...), const Views&... views) {
  stream_.enqueue([this, kernel, ... kept = host_address(views)] { (kernels_.*kernel)(kept...); });
}

Buffer RamOps::allocate(uint64_t n_bytes) { return device_.allocate(MemoryKind::device, n_bytes); }

void RamOps::embed(const WeightView& table, const StepView& step, RowsView x) {
  enqueue(&RamKernels::embed, table, step, x);
}

void RamOps::project_in(ConstRowsView x, const NormView& norm,
                        std::span<const Projection> projections, RowsView out) {
  enqueue(&RamKernels::project_in, x, norm, projections, out);
}

void RamOps::attend(RowsView qkv, const AttentionView& attention, const StepView& step,
                    const KvLayerView& kv, RowsView out) {
  enqueue(&RamKernels::attend, qkv, attention, step, kv, out);
}

void RamOps::delta_net(ConstRowsView in, const DeltaNetView& net, const StepView& step,
                       const StateLayerView& state, RowsView out) {
  enqueue(&RamKernels::delta_net, in, net, step, state, out);
}

void RamOps::delta_replay(const DeltaNetView& net, const StateLayerView& state,
                          const StateReplay& replay) {
  enqueue(&RamKernels::delta_replay, net, state, replay);
}

void RamOps::project_add(ConstRowsView in, const Projection& projection, RowsView x) {
  enqueue(&RamKernels::project_add, in, projection, x);
}

void RamOps::route(ConstRowsView x, const NormView& norm, const RouterView& router,
                   const ExpertInputView& a, const RoutingView& routing) {
  enqueue(&RamKernels::route, x, norm, router, a, routing);
}

void RamOps::experts(const ExpertsView& experts, const ExpertInputView& a,
                     const RoutingView& routing, RowsView x) {
  enqueue(&RamKernels::experts, experts, a, routing, x);
}

void RamOps::logits(ConstRowsView x, const StepView& step, int64_t first, const NormView& norm,
                    const WeightView& output, RowsView logits) {
  enqueue(&RamKernels::logits, x, step, first, norm, output, logits);
}

void RamOps::pick(ConstRowsView logits, const StepView& step, int64_t first, PickedRow* picks) {
  enqueue(&RamKernels::pick, logits, step, first, picks);
}

void RamOps::change_table(const TableChangesView& changes) {
  enqueue(&RamKernels::change_table, changes);
}

void RamOps::foresee(const ForeseeView& foresee, ConstRowsView x, const NormView& norm,
                     const RouterView& router, const RoutingView& prediction) {
  enqueue(&RamKernels::foresee, foresee, x, norm, router, prediction);
}

void RamOps::find_experts(const ExpertsView& experts, const LookupView& lookup,
                          const ExpertInputView& a, const RoutingView& routing) {
  enqueue(&RamKernels::find_experts, experts, lookup, a, routing);
}

void RamOps::compute_found(const ExpertsView& experts, const ExpertInputView& a) {
  enqueue(&RamKernels::compute_found, experts, a);
}

void RamOps::add_found(const RoutingView& routing, RowsView x) {
  enqueue(&RamKernels::add_found, routing, x);
}

void RamOps::sort_pairs(const ExpertsView& experts, const SortView& sort,
                        const RoutingView& routing, int64_t n_rows) {
  enqueue(&RamKernels::sort_pairs, experts, sort, routing, n_rows);
}

void RamOps::compute_sorted(const ExpertsView& experts, const SortedPairs& pairs,
                            const ExpertInputView& a) {
  enqueue(&RamKernels::compute_sorted, experts, pairs, a);
}

void RamOps::add_sorted(const ExpertsView& experts, const RoutingView& routing,
                        const LayerLogView& log, RowsView x) {
  enqueue(&RamKernels::add_sorted, experts, routing, log, x);
}

}  // namespace sluice::backend
