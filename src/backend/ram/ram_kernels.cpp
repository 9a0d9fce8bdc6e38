// See ram_kernels.h. The trunk's operations; those of experts stand in experts.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "backend/ram/ram_kernels.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::backend {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMicro = 1e-6;

}  // namespace

void RamKernels::embed(const WeightView& table, const StepView& step, RowsView x) {
  cpu_->embed(table, step, x);
}

void RamKernels::project_in(ConstRowsView x, const NormView& norm,
                            std::span<const Projection> projections, RowsView out) {
  RamDevice::spend(machine_.layer_us * kMicro);
  for (const Projection& p : projections) read(p.weight, x.n_rows);
  cpu_->project_in(x, norm, projections, out);
}

void RamKernels::attend(RowsView qkv, const AttentionView& attention, const StepView& step,
                        const KvLayerView& kv, RowsView out) {
  read_cache(attention, step, kv);
  cpu_->attend(qkv, attention, step, kv, out);
}

void RamKernels::delta_net(ConstRowsView in, const DeltaNetView& net, const StepView& step,
                           const StateLayerView& state, RowsView out) {
  read_states(net, step, state);
  cpu_->delta_net(in, net, step, state, out);
}

// Reads a state and writes another; the updates are small.
void RamKernels::delta_replay(const DeltaNetView& net, const StateLayerView& state,
                              const StateReplay& replay) {
  RamDevice::spend(2.0 * static_cast<double>(net.state_values()) * sizeof(float) /
                   (machine_.device_gbps * kGiga));
  cpu_->delta_replay(net, state, replay);
}

void RamKernels::project_add(ConstRowsView in, const Projection& projection, RowsView x) {
  read(projection.weight, x.n_rows);
  cpu_->project_add(in, projection, x);
}

void RamKernels::route(ConstRowsView x, const NormView& norm, const RouterView& router,
                       const ExpertInputView& a, const RoutingView& routing) {
  read(router.weight, x.n_rows);
  cpu_->route(x, norm, router, a, routing);
}

void RamKernels::logits(ConstRowsView x, const StepView& step, int64_t first, const NormView& norm,
                        const WeightView& output, RowsView logits) {
  if (*step.n_logits > first) read(output, std::min(*step.n_logits - first, logits.n_rows));
  cpu_->logits(x, step, first, norm, output, logits);
}

void RamKernels::pick(ConstRowsView logits, const StepView& step, int64_t first, PickedRow* picks) {
  cpu_->pick(logits, step, first, picks);
}

void RamKernels::require_own(const WeightView& w) const {
  CHECK(device_.owns({w.data, static_cast<uint64_t>(w.n_mats) * w.matrix_bytes()}));
}

double RamKernels::seconds_of(const WeightView& w, int64_t n_rows) const {
  const auto n_bytes = static_cast<double>(w.matrix_bytes());
  const double n_ops = 2.0 * static_cast<double>(w.n_cols * w.n_rows * n_rows);
  return std::max(n_bytes, n_ops / kRamOpsPerByte) / (machine_.device_gbps * kGiga);
}

void RamKernels::read(const WeightView& w, int64_t n_rows) {
  require_own(w);
  RamDevice::spend(seconds_of(w, n_rows));
}

void RamKernels::read_cache(const AttentionView& attention, const StepView& step,
                            const KvLayerView& kv) {
  const uint64_t token = static_cast<uint64_t>(attention.n_kv_heads) *
                         (quant::row_bytes(kv.k_type, attention.head_dim) +
                          quant::row_bytes(kv.v_type, attention.head_dim));
  int64_t n_tokens = 0;  // of each sequence once: rows of a chunk share what they read
  for (int32_t r = 0; r < *step.n_live; ++r) {
    const bool is_last = r + 1 == *step.n_live || step.sequences[r + 1] != step.sequences[r];
    if (is_last) n_tokens += step.positions[r] + 1;
  }
  RamDevice::spend(static_cast<double>(token) * static_cast<double>(n_tokens) /
                   (machine_.device_gbps * kGiga));
}

// Of each sequence once, and written as often.
void RamKernels::read_states(const DeltaNetView& net, const StepView& step,
                             const StateLayerView& state) {
  const uint64_t n_bytes = static_cast<uint64_t>(net.state_values()) * sizeof(float);
  const auto require = [&](const float* values) {
    if (values) CHECK(device_.owns({reinterpret_cast<const std::byte*>(values), n_bytes}));
  };
  double n_states = 0.0;
  for (int32_t r = 0; r < *step.n_live; ++r) {
    const int32_t sequence = step.sequences[r];
    const std::span before(step.sequences, static_cast<size_t>(r));
    if (std::ranges::find(before, sequence) != before.end()) continue;
    require(state.before(sequence));
    require(state.after(sequence));
    n_states += state.before(sequence) ? 2.0 : 1.0;
  }
  RamDevice::spend(n_states * static_cast<double>(n_bytes) / (machine_.device_gbps * kGiga));
}

}  // namespace sluice::backend
