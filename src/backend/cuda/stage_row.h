// norm(x) of a single row as int8 in a block's shared memory: what stage_rows.h does for several,
// with the same bits, in a tenth of the code. In a layer every kernel starts with cold
// instructions, so a kernel for one row is kept small (docs/decisions/0011).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/stage_rows.h"

namespace sluice::backend::cuda {

// By blocks of eight warps, one of these to each. Segments warp and warp + 8 stay in registers;
// those of rows over 2,048 columns are read twice.
class NormedRow {
 public:
  static constexpr int kWarps = 8;
  static constexpr int kKept = 2;
  static constexpr int kMostSegments = 64;  // 8,192 columns

  // Before the wait for the kernel before: reads the norm's weights alone.
  SLUICE_LANE_FN NormedRow(const float* x, const RowNorm& norm, int n_cols, int warp)
      : x_(x),
        norm_(norm),
        n_cols_(n_cols),
        n_segments_((n_cols + kSegment - 1) / kSegment),
        warp_(warp) {
    SLUICE_UNROLL for (int k = 0; k < kKept; ++k) {
      EACH_LANE(lane) { weights_[k][lane] = weight_of(warp_ + kWarps * k, lane); }
    }
  }

  // squares: [n_segments] in shared memory; a barrier is to follow.
  SLUICE_LANE_FN void add_squares(float* squares) {
    SLUICE_UNROLL for (int k = 0; k < kKept; ++k) {
      EACH_LANE(lane) { values_[k][lane] = value_of(warp_ + kWarps * k, lane); }
    }
    SLUICE_UNROLL for (int k = 0; k < kKept; ++k) {
      set_squares(squares, warp_ + kWarps * k, values_[k]);
    }
    SLUICE_ROLLED for (int s = warp_ + kWarps * kKept; s < n_segments_; s += kWarps) {
      PerLane<float4> values;
      EACH_LANE(lane) { values[lane] = value_of(s, lane); }
      set_squares(squares, s, values);
    }
  }

  // The row at `out` (staged_row); a barrier is to follow.
  SLUICE_LANE_FN void stage(const float* squares, uint8_t* out) const {
    const PerLane<float> scale = row_scale(squares, n_cols_, norm_.eps);
    SLUICE_UNROLL for (int k = 0; k < kKept; ++k) write(out, warp_ + kWarps * k, k, scale);
    SLUICE_ROLLED for (int s = warp_ + kWarps * kKept; s < n_segments_; s += kWarps) {
      write(out, s, kKept, scale);
    }
  }

  // Of the warp's k-th segment.
  SLUICE_LANE_FN float4 value(int segment, int k, int lane) const {
    return k < kKept ? (k == 0 ? values_[0][lane] : values_[1][lane]) : value_of(segment, lane);
  }
  SLUICE_LANE_FN float4 weight(int segment, int k, int lane) const {
    return k < kKept ? (k == 0 ? weights_[0][lane] : weights_[1][lane]) : weight_of(segment, lane);
  }

 private:
  SLUICE_LANE_FN float4 value_of(int segment, int lane) const {
    return segment_values(x_, segment, n_cols_, lane);
  }
  SLUICE_LANE_FN float4 weight_of(int segment, int lane) const {
    return segment_weights(norm_.weight, segment, n_cols_, lane);
  }
  SLUICE_LANE_FN void set_squares(float* squares, int segment,
                                  const PerLane<float4>& values) const {
    const PerLane<float> sum = segment_squares(values);
    EACH_LANE(lane) {
      if (lane == 0 && segment < n_segments_) squares[segment] = sum[lane];
    }
  }
  SLUICE_LANE_FN void write(uint8_t* out, int segment, int k, const PerLane<float>& scale) const {
    PerLane<float4> values;
    PerLane<Int8Place> to;
    EACH_LANE(lane) {
      values[lane] = normalized(value(segment, k, lane), scale[lane], weight(segment, k, lane));
      to[lane] = staged_place(out, n_cols_, segment, lane);
    }
    quantize_segment(values, to);
  }

  const float* x_;
  RowNorm norm_;
  int n_cols_, n_segments_, warp_;
  PerLane<float4> values_[kKept], weights_[kKept];
};

// An int8 row into a staged one, by all warps: 16 bytes a lane, of q, then of d, then of y. A
// barrier is to follow.
SLUICE_LANE_FN void copy_row(const Int8Rows& a, int n_chunks, uint8_t* out, int warp, int n_warps) {
  EACH_LANE(lane) {
    SLUICE_ROLLED for (int i = kWarp * warp + lane; i < 20 * n_chunks; i += kWarp * n_warps) {
      const int scale = i - 16 * n_chunks;
      const void* const from = scale < 0              ? static_cast<const void*>(a.q + 16 * i)
                               : scale < 2 * n_chunks ? a.d + 4 * scale
                                                      : a.y + 4 * (scale - 2 * n_chunks);
      const int to = scale < 0 ? i / 16 * StagedLoad::kChunkStride + i % 16 * 16
                               : n_chunks * StagedLoad::kChunkStride + 16 * scale;
      copy_16_past_l1(out + to, from);
    }
  }
}

}  // namespace sluice::backend::cuda
