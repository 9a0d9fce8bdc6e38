// The inputs of a block's dot products in its shared memory, as the kernel before quantised them.
// By all warps of a block, in a kernel as in g++ (lanes.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/int8_rows.h"
#include "backend/cuda/segment.h"
#include "backend/cuda/stripe_dot.h"

namespace sluice::backend::cuda {

// Staged rows: chunks 16 bytes further apart than they are long, and rows 16 more, so that the
// loads of a warp spread over the banks; scales behind them.
struct StagedLoad {
  static constexpr bool kWhole = true;  // as PlainLoad's
  static constexpr int kChunkStride = kChunk + 16;
  SLUICE_LANE_FN static uint32_t word(const void* p) { return *static_cast<const uint32_t*>(p); }
  SLUICE_LANE_FN static void four(const float* p, float* out) {
    *reinterpret_cast<float4*>(out) = *reinterpret_cast<const float4*>(p);
  }
};
// Rows that other kernels wrote, where they stand.
struct PastL1Load {
  static constexpr bool kWhole = true;
  static constexpr int kChunkStride = kChunk;
  SLUICE_LANE_FN static uint32_t word(const void* p) {
    return word_past_l1(static_cast<const uint32_t*>(p));
  }
  SLUICE_LANE_FN static void four(const float* p, float* out) {
    *reinterpret_cast<float4*>(out) = load_past_l1(p);
  }
};

constexpr int staged_row_bytes(int n_chunks) {
  return n_chunks * (StagedLoad::kChunkStride + 64) + 16;
}

SLUICE_LANE_FN InputRow staged_row(const uint8_t* rows, int n_chunks, int r) {
  const uint8_t* const row = rows + r * staged_row_bytes(n_chunks);
  const auto* const d = reinterpret_cast<const float*>(row + n_chunks * StagedLoad::kChunkStride);
  return {reinterpret_cast<const int8_t*>(row), d, d + 8 * n_chunks};
}

// Where a lane's part of a segment goes in a staged row of n_cols columns.
SLUICE_LANE_FN Int8Place staged_place(uint8_t* row, int n_cols, int segment, int lane) {
  const int n_chunks = (n_cols + kChunk - 1) / kChunk;
  auto* const d =
      reinterpret_cast<float*>(row + n_chunks * StagedLoad::kChunkStride) + 4 * segment + lane / 8;
  return {reinterpret_cast<int8_t*>(row) + segment / 2 * StagedLoad::kChunkStride +
              segment % 2 * kSegment + 4 * lane,
          d, d + 8 * n_chunks, kSegment * segment + 4 * lane < n_cols};
}

// Row r as it stands in the device's memory.
SLUICE_LANE_FN InputRow input_row(const Int8Rows& a, int r) {
  const int64_t at = static_cast<int64_t>(r) * a.n_chunks;
  return {a.q + kChunk * at, a.d + 8 * at, a.y + 8 * at};
}

// n_rows int8 rows into staged ones, by all warps: 16 bytes a lane, of a row's q, then of its d,
// then of its y. copy(to, from) may go on beside the work (async_copy.cuh): with a wait for some at
// a time, eight rows of 4,096 columns were six trips to L2, one after the other.
template <typename Copy>
SLUICE_LANE_FN void copy_rows(const Int8Rows& a, int n_rows, int n_chunks, uint8_t* out, int warp,
                              int n_warps, const Copy& copy) {
  // Divisions are dear: a lane goes on by so many rows and pieces of a row.
  const int per_row = 20 * n_chunks, step = kWarp * n_warps;
  const int row_step = step / per_row, piece_step = step - row_step * per_row;
  EACH_LANE(lane) {
    const int start = kWarp * warp + lane;
    int r = start / per_row, piece = start - r * per_row;
    SLUICE_UNROLL_4 while (r < n_rows) {
      const int scale = piece - 16 * n_chunks, chunk = n_chunks * r;
      const void* const from =
          scale < 0              ? static_cast<const void*>(a.q + kChunk * chunk + 16 * piece)
          : scale < 2 * n_chunks ? a.d + 8 * chunk + 4 * scale
                                 : a.y + 8 * chunk + 4 * (scale - 2 * n_chunks);
      copy(out + r * staged_row_bytes(n_chunks) +
               (scale < 0 ? piece / 16 * StagedLoad::kChunkStride + piece % 16 * 16
                          : n_chunks * StagedLoad::kChunkStride + 16 * scale),
           from);
      r += row_step, piece += piece_step;
      if (piece >= per_row) piece -= per_row, ++r;
    }
  }
}
SLUICE_LANE_FN void copy_row(const Int8Rows& a, int n_chunks, uint8_t* out, int warp, int n_warps) {
  copy_rows(a, 1, n_chunks, out, warp, n_warps, [](uint8_t* to, const void* from) {
    *reinterpret_cast<uint4*>(to) = load_16_past_l1(from);
  });
}

}  // namespace sluice::backend::cuda
