// The end of gate_up: SwiGLU and the quantisation of a block of hidden values, by one warp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/contract.h"
#include "backend/cuda/int8_rows.h"

namespace sluice::backend::cuda {

// Hidden values 32 * block .. of a pair. dot(is_up, lane): of gate and up.
template <typename Dot>
SLUICE_LANE_FN void write_hidden_of(const Int8Rows& h, int slot, int block, const Dot& dot) {
  PerLane<float> values;
  EACH_LANE(lane) { values[lane] = swiglu(dot(0, lane), dot(1, lane)); }
  const int64_t at = static_cast<int64_t>(slot) * h.n_chunks * 8 + block;
  quantize_block(values, h.q + 32 * at, h.d + at, h.y + at);
}
// dots: [gate, up][32].
SLUICE_LANE_FN void write_hidden(const Int8Rows& h, int slot, int block, const float* dots) {
  write_hidden_of(h, slot, block, [&](int is_up, int lane) { return dots[32 * is_up + lane]; });
}

}  // namespace sluice::backend::cuda
