// Addresses of the RAM device's own memory. As handed out they lead nowhere: a bit is set that no
// address of a process has, so whoever follows one on the host crashes, as with a real device. The
// device's work takes the bit off what it is given; addresses of mapped memory stay as they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "backend/device_ops.h"
#include "base/check.h"

namespace sluice::backend {

constexpr uintptr_t kDeviceBit = uintptr_t{1} << 50;  // x86-64 and AArch64 fault on it

template <typename T>
T* device_address(T* p) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): not to be followed
  return p ? reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(p) | kDeviceBit) : nullptr;
}

template <typename T>
T* host_address(T* p) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): there is no other way to take the bit off
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(p) & ~kDeviceBit);
}

// The same for all addresses in a view. Numbers, and what the host made for the device's work
// alone, are as they are.
inline int64_t host_address(int64_t n) { return n; }
inline StateReplay host_address(const StateReplay& v) { return v; }
inline LayerLogView host_address(LayerLogView v) { return v; }

template <typename View, typename... Members>
View with_host_addresses(View v, Members View::*... members) {
  ((v.*members = host_address(v.*members)), ...);
  return v;
}

inline RowsView host_address(RowsView v) { return with_host_addresses(v, &RowsView::data); }
inline ConstRowsView host_address(ConstRowsView v) {
  return with_host_addresses(v, &ConstRowsView::data);
}
inline WeightView host_address(WeightView v) { return with_host_addresses(v, &WeightView::data); }
inline NormView host_address(NormView v) { return with_host_addresses(v, &NormView::weight); }
inline Projection host_address(const Projection& v) {
  return with_host_addresses(v, &Projection::weight, &Projection::bias);
}
inline AttentionView host_address(const AttentionView& v) {
  return with_host_addresses(v, &AttentionView::q_norm, &AttentionView::k_norm);
}
inline DeltaNetView host_address(const DeltaNetView& v) {
  return with_host_addresses(v, &DeltaNetView::conv, &DeltaNetView::decay, &DeltaNetView::time_bias,
                             &DeltaNetView::norm);
}
inline StateLayerView host_address(StateLayerView v) {
  return with_host_addresses(v, &StateLayerView::data, &StateLayerView::from, &StateLayerView::to,
                             &StateLayerView::updates);
}
inline KvLayerView host_address(KvLayerView v) {
  return with_host_addresses(v, &KvLayerView::k, &KvLayerView::v);
}
inline RouterView host_address(const RouterView& v) {
  return with_host_addresses(v, &RouterView::weight, &RouterView::shared_gate);
}
inline RoutingView host_address(RoutingView v) {
  return with_host_addresses(v, &RoutingView::experts, &RoutingView::weights,
                             &RoutingView::shared_weights, &RoutingView::forced);
}
inline ExpertInputView host_address(ExpertInputView v) {
  return with_host_addresses(v, &ExpertInputView::f32, &ExpertInputView::q, &ExpertInputView::d,
                             &ExpertInputView::y);
}
inline StepView host_address(const StepView& v) {
  return with_host_addresses(v, &StepView::n_live, &StepView::tokens, &StepView::positions,
                             &StepView::sequences, &StepView::angles, &StepView::page_table,
                             &StepView::n_logits, &StepView::logit_rows, &StepView::n_best,
                             &StepView::forced);
}
// But not what stands in the table: those are addresses again.
inline ExpertsView host_address(const ExpertsView& v) {
  return with_host_addresses(v, &ExpertsView::gate, &ExpertsView::up, &ExpertsView::down,
                             &ExpertsView::shared_gate, &ExpertsView::shared_up,
                             &ExpertsView::shared_down, &ExpertsView::table, &ExpertsView::slots);
}
inline TableChangesView host_address(TableChangesView v) {
  return with_host_addresses(v, &TableChangesView::n, &TableChangesView::changes,
                             &TableChangesView::table);
}
inline SortedPairs host_address(SortedPairs v) {
  return with_host_addresses(v, &SortedPairs::first, &SortedPairs::slots);
}
inline SortView host_address(const SortView& v) {
  return with_host_addresses(v, &SortView::step, &SortView::pairs);
}
inline ForeseeView host_address(ForeseeView v) {
  return with_host_addresses(v, &ForeseeView::step);
}
inline LandingView host_address(LandingView v) {
  return with_host_addresses(v, &LandingView::data, &LandingView::n_taken);
}
inline LookupView host_address(const LookupView& v) {
  return with_host_addresses(v, &LookupView::step, &LookupView::n_live, &LookupView::table,
                             &LookupView::host, &LookupView::link_share, &LookupView::landing);
}

// Kept by value, as many side by side as GPUs take.
struct KeptProjections {
  std::array<Projection, 4> all;
  size_t n = 0;
  operator std::span<const Projection>() const { return {all.data(), n}; }  // NOLINT
};

inline KeptProjections host_address(std::span<const Projection> v) {
  KeptProjections kept;
  CHECK(v.size() <= kept.all.size());
  for (const Projection& p : v) kept.all[kept.n++] = host_address(p);
  return kept;
}

}  // namespace sluice::backend
