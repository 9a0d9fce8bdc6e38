// norm(x), or x itself, of one row as int8, by the warps of a block, in a kernel as in g++
// (lanes.h). In a layer every kernel starts with cold instructions, so this is kept small
// (docs/decisions/0011).
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

  // Of the rows that x is: row r.
  SLUICE_LANE_FN void choose(int r) { x_ += static_cast<int64_t>(r) * n_cols_; }

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

  // The row as int8: place(segment, lane) is where a lane's part of it goes. A barrier is to
  // follow.
  template <typename Place>
  SLUICE_LANE_FN void write(const float* squares, const Place& place) const {
    const PerLane<float> scale = row_scale(squares, n_cols_, norm_.eps);
    SLUICE_UNROLL for (int k = 0; k < kKept; ++k) write(place, warp_ + kWarps * k, k, scale);
    SLUICE_ROLLED for (int s = warp_ + kWarps * kKept; s < n_segments_; s += kWarps) {
      write(place, s, kKept, scale);
    }
  }
  // The same into a staged row.
  SLUICE_LANE_FN void stage(const float* squares, uint8_t* out) const {
    write(squares,
          [&](int segment, int lane) { return staged_place(out, n_cols_, segment, lane); });
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
    return norm_.weight ? segment_weights(norm_.weight, segment, n_cols_, lane)
                        : float4{0, 0, 0, 0};
  }
  SLUICE_LANE_FN void set_squares(float* squares, int segment,
                                  const PerLane<float4>& values) const {
    const PerLane<float> sum = segment_squares(values);
    EACH_LANE(lane) {
      if (lane == 0 && segment < n_segments_) squares[segment] = sum[lane];
    }
  }
  template <typename Place>
  SLUICE_LANE_FN void write(const Place& place, int segment, int k,
                            const PerLane<float>& scale) const {
    PerLane<float4> values;
    PerLane<Int8Place> to;
    EACH_LANE(lane) {
      values[lane] = value(segment, k, lane);
      if (norm_.weight) {
        values[lane] = normalized(values[lane], scale[lane], weight(segment, k, lane));
      }
      to[lane] = place(segment, lane);
    }
    quantize_segment(values, to);
  }

  const float* x_;
  RowNorm norm_;
  int n_cols_, n_segments_, warp_;
  PerLane<float4> values_[kKept], weights_[kKept];
};

}  // namespace sluice::backend::cuda
