// The inputs of a block's dot products in its shared memory, as the kernel before quantised them.
// By all warps of a block, in a kernel as in g++ (lanes.h). SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/int8_rows.h"
#include "backend/cuda/segment.h"
#include "backend/cuda/stripe_dot.h"

namespace sluice::backend::cuda {

// Staged rows: chunks 16 bytes further apart than they are long, and rows 16 more, so that the
// loads of a warp spread over the banks; scales behind them.
struct StagedLoad {
  static constexpr int kChunkStride = kChunk + 16;
  SLUICE_LANE_FN static uint32_t word(const void* p) { return *static_cast<const uint32_t*>(p); }
  SLUICE_LANE_FN static void four(const float* p, float* out) {
    *reinterpret_cast<float4*>(out) = *reinterpret_cast<const float4*>(p);
  }
};
// Rows that other kernels wrote, where they stand.
struct PastL1Load {
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

// n_rows int8 rows into staged ones, by all warps: 16 bytes a lane, of a row's q, then of its d,
// then of its y, so many at once. A barrier is to follow.
template <int at_once>
SLUICE_LANE_FN void copy_rows(const Int8Rows& a, int n_rows, int n_chunks, uint8_t* out, int warp,
                              int n_warps) {
  const int per_row = 20 * n_chunks, n = n_rows * per_row, step = kWarp * n_warps;
  EACH_LANE(lane) {
    SLUICE_ROLLED for (int i = kWarp * warp + lane; i < n; i += at_once * step) {
      uint4 got[at_once];
      int to[at_once];
      SLUICE_UNROLL for (int k = 0; k < at_once; ++k) {
        const int piece = i + k * step;
        if (piece >= n) break;
        const int r = n_rows == 1 ? 0 : piece / per_row, in_row = piece - r * per_row;
        const int scale = in_row - 16 * n_chunks;
        const void* const from =
            scale < 0 ? static_cast<const void*>(a.q + kChunk * n_chunks * r + 16 * in_row)
            : scale < 2 * n_chunks ? a.d + 8 * n_chunks * r + 4 * scale
                                   : a.y + 8 * n_chunks * r + 4 * (scale - 2 * n_chunks);
        got[k] = load_16_past_l1(from);
        to[k] = r * staged_row_bytes(n_chunks) +
                (scale < 0 ? in_row / 16 * StagedLoad::kChunkStride + in_row % 16 * 16
                           : n_chunks * StagedLoad::kChunkStride + 16 * scale);
      }
      SLUICE_UNROLL for (int k = 0; k < at_once; ++k) {
        if (i + k * step < n) *reinterpret_cast<uint4*>(out + to[k]) = got[k];
      }
    }
  }
}
SLUICE_LANE_FN void copy_row(const Int8Rows& a, int n_chunks, uint8_t* out, int warp, int n_warps) {
  copy_rows<1>(a, 1, n_chunks, out, warp, n_warps);
}

}  // namespace sluice::backend::cuda
