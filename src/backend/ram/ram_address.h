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
inline std::span<const ExpertPair> host_address(std::span<const ExpertPair> v) { return v; }
inline LayerLogView host_address(LayerLogView v) { return v; }

inline RowsView host_address(RowsView v) {
  v.data = host_address(v.data);
  return v;
}

inline ConstRowsView host_address(ConstRowsView v) {
  v.data = host_address(v.data);
  return v;
}

inline WeightView host_address(WeightView v) {
  v.data = host_address(v.data);
  return v;
}

inline NormView host_address(NormView v) {
  v.weight = host_address(v.weight);
  return v;
}

inline Projection host_address(const Projection& v) {
  return {host_address(v.weight), host_address(v.bias)};
}

// Kept by value, as many as a layer has side by side.
struct KeptProjections {
  std::array<Projection, 8> all;
  size_t n = 0;
  operator std::span<const Projection>() const { return {all.data(), n}; }  // NOLINT
};

inline KeptProjections host_address(std::span<const Projection> v) {
  KeptProjections kept;
  CHECK(v.size() <= kept.all.size());
  for (const Projection& p : v) kept.all[kept.n++] = host_address(p);
  return kept;
}

inline AttentionView host_address(AttentionView v) {
  v.q_norm = host_address(v.q_norm);
  v.k_norm = host_address(v.k_norm);
  return v;
}

inline StepView host_address(StepView v) {
  v.n_live = host_address(v.n_live);
  v.tokens = host_address(v.tokens);
  v.positions = host_address(v.positions);
  v.sequences = host_address(v.sequences);
  v.angles = host_address(v.angles);
  v.page_table = host_address(v.page_table);
  v.n_logits = host_address(v.n_logits);
  v.logit_rows = host_address(v.logit_rows);
  v.n_best = host_address(v.n_best);
  v.forced = host_address(v.forced);
  return v;
}

inline KvLayerView host_address(KvLayerView v) {
  v.k = host_address(v.k);
  v.v = host_address(v.v);
  return v;
}

inline RouterView host_address(RouterView v) {
  v.weight = host_address(v.weight);
  v.shared_gate = host_address(v.shared_gate);
  return v;
}

inline RoutingView host_address(RoutingView v) {
  v.experts = host_address(v.experts);
  v.weights = host_address(v.weights);
  v.shared_weights = host_address(v.shared_weights);
  v.forced = host_address(v.forced);
  return v;
}

inline ExpertInputView host_address(ExpertInputView v) {
  v.f32 = host_address(v.f32);
  v.q = host_address(v.q);
  v.d = host_address(v.d);
  v.y = host_address(v.y);
  return v;
}

// But not what stands in the table: those are addresses again.
inline ExpertsView host_address(ExpertsView v) {
  for (WeightView* w : {&v.gate, &v.up, &v.down, &v.shared_gate, &v.shared_up, &v.shared_down}) {
    *w = host_address(*w);
  }
  v.table = host_address(v.table);
  v.slots = host_address(v.slots);
  return v;
}

inline ForeseeView host_address(ForeseeView v) {
  v.step = host_address(v.step);
  return v;
}

inline LookupView host_address(LookupView v) {
  v.step = host_address(v.step);
  v.n_live = host_address(v.n_live);
  v.table = host_address(v.table);
  v.host = host_address(v.host);
  v.link_share = host_address(v.link_share);
  return v;
}

}  // namespace sluice::backend
