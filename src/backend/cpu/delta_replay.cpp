// Ops::delta_replay on the CPU: S_j = fma(entered_j, k, d * S_j), as delta_net.cpp has it, for
// every token of the way; no sum and no product of the model.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cpu/attend_lanes.h"
#include "backend/cpu/cpu_ops.h"
#include "base/check.h"

namespace sluice::backend::cpu {
namespace {

// The convolution's last inputs: of the tokens on the way, and before them those of `from`.
void replay_inputs(const DeltaNetView& net, const StateLayerView& state, const StateReplay& way) {
  const int n_kept = net.n_taps - 1;
  const float* const before = state.state(way.from);
  for (int i = 0; i < n_kept; ++i) {
    const int position = way.end - n_kept + i;
    const int in_before = n_kept + position - way.begin;
    const float* const input = position >= way.begin ? state.update(way.sequence, position)
                               : before              ? before + in_before * net.conv_cols()
                                                     : nullptr;
    float* const kept = state.data + way.to * state.stride + i * net.conv_cols();
    input ? std::copy_n(input, net.conv_cols(), kept) : std::fill_n(kept, net.conv_cols(), 0.0f);
  }
}

void replay_columns(const DeltaNetView& net, const StateLayerView& state, const StateReplay& way,
                    int head, int first) {
  const int64_t dim = net.head_dim;
  const int n_columns = std::min(kDeltaColumns, net.head_dim - first);
  const int64_t matrix = net.conv_state() + (head * dim + first) * dim;
  const float* const before = state.state(way.from);
  float* const after = state.data + way.to * state.stride + matrix;
  const float* from = before ? before + matrix : nullptr;
  for (int position = way.begin; position < way.end; ++position, from = after) {
    const float* const update = state.update(way.sequence, position);
    const float* const k = update + net.k_update() + net.key_head(head) * dim;
    const float* const entered = update + net.entered_update() + head * dim + first;
    const Float8 decay = in_all_lanes(update[net.decay_update() + head]);
    for (int j = 0; j < n_columns; ++j) {
      const Float8 enters = in_all_lanes(entered[j]);
      for (int64_t i = 0; i < dim; i += 8) {
        const Float8 stays = from ? product(load(from + j * dim + i), decay) : Float8{};
        store(fma(enters, load(k + i), stays), after + j * dim + i);
      }
    }
  }
}

}  // namespace

void CpuOps::delta_replay(const DeltaNetView& net, const StateLayerView& state,
                          const StateReplay& replay) {
  CHECK(replay.begin < replay.end && replay.end - replay.begin <= state.n_places);
  CHECK(replay.from != replay.to);
  replay_inputs(net, state, replay);
  const int n_parts = (net.head_dim + kDeltaColumns - 1) / kDeltaColumns;
  pool_.parallel_for(int64_t{net.n_value_heads} * n_parts, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      replay_columns(net, state, replay, static_cast<int>(i / n_parts),
                     static_cast<int>(i % n_parts) * kDeltaColumns);
    }
  });
}

}  // namespace sluice::backend::cpu
