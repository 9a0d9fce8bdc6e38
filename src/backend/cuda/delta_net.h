// A gated DeltaNet on the device (Ops::delta_net): convolution, delta rule and gated norm of all
// rows of a step, in one launch; steps of many rows have three (wide_delta.h). Pointers are device
// memory; nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "backend/cuda/int8_rows.h"
#include "backend/gpu_limits.h"

namespace sluice::backend::cuda {

struct Launch;

// Heads are at most so long.
constexpr int kDeltaDims = kGpuMostStateDim;
// Convolutions of more taps than this go row by row, a block to a head.
constexpr int kDeltaMostTaps = 4;

struct DeltaNetStep {
  const float* in = nullptr;  // [n_rows, in_cols]: q k v, z, then b and a
  int n_rows = 0;
  int n_taps = 0;
  int n_key_heads = 0;
  int n_value_heads = 0;
  int head_dim = 0;           // a multiple of 8
  bool by_remainder = false;  // value head h reads key head h % n_key_heads; else neighbours share
  bool gates_by_key_head =
      false;  // for each key head b of its value heads, then a; else all b first

  const float* conv = nullptr;       // [conv_cols, n_taps], the oldest tap first
  const float* decay = nullptr;      // [n_value_heads]
  const float* time_bias = nullptr;  // [n_value_heads]
  const float* norm = nullptr;       // [head_dim]
  float eps = 0.0f;

  // Rows of one sequence stand side by side, in order; rows from *n_live on give zeros.
  const int32_t* sequences = nullptr;  // [n_rows]
  const int32_t* positions = nullptr;  // [n_rows]; read where updates are left
  const int32_t* n_live = nullptr;     // [1]

  // As StateLayerView: [n_taps - 1, conv_cols] inputs, then [n_value_heads, value dims, key dims].
  float* states = nullptr;
  int64_t state_stride = 0;
  const int32_t* from = nullptr;  // [n_sequences]; -1: zeros
  const int32_t* to = nullptr;    // [n_sequences]
  int n_sequences = 0;

  // Of a sequence with no more than so many rows, each row's update (DeltaNetView), in turn.
  float* updates = nullptr;  // [n_sequences, n_places]; null: none
  int64_t update_stride = 0;
  int n_places = 0;
  int max_logged_rows = 0;

  float* out = nullptr;  // [n_rows, n_value_heads head_dim]
  Int8Rows out_int8;     // the same, quantised, where heads are whole blocks of 32; or empty
};
// Steps of few rows are cut into quarters of heads where the card can (delta_part.h, and
// delta_row.h for a single row).
void delta_net(const DeltaNetStep& p, const Launch& how);

// Ops::delta_replay: of the step's parameters those of the layer, its states and its updates.
struct DeltaReplay {
  DeltaNetStep of;
  int sequence = 0;
  int begin = 0, end = 0;
  int from = -1, to = -1;
};
void delta_replay(const DeltaReplay& p, const Launch& how);

}  // namespace sluice::backend::cuda
