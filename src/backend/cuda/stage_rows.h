// The inputs of a block's dot products in its shared memory, as int8 blocks of 32: copied where the
// kernel before quantised them, or made here of f32 rows, normalised or not. By all warps of a
// block, in a kernel as in g++ (lanes.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/int8_rows.h"
#include "backend/cuda/segment.h"
#include "backend/cuda/stripe_dot.h"

namespace sluice::backend::cuda {

// Where rows come from: int8, or f32.
struct RowSource {
  Int8Rows int8;
  const float* x = nullptr;  // [.., n_cols]
  RowNorm norm;
  const int32_t* index = nullptr;  // row r is row index[r]; null: r
  int n_cols = 0;
  int n_rows = 0;

  SLUICE_LANE_FN int64_t at(int r) const { return index ? word_past_l1(index + r) : r; }
};

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

// Items of a block's warps: (row, segment). The first kKept of a warp stay in registers between
// the sums and the quantisation; the others are read again, from L2. One of these to a warp.
class RowStager {
 public:
  static constexpr int kKept = 2;

  // squares: [n_rows, n_segments] in shared memory.
  SLUICE_LANE_FN RowStager(const RowSource& source, uint8_t* rows, float* squares, int warp,
                           int n_warps)
      : source_(source),
        rows_(rows),
        squares_(squares),
        n_chunks_((source.n_cols + kChunk - 1) / kChunk),
        n_segments_((source.n_cols + kSegment - 1) / kSegment),
        warp_(warp),
        n_warps_(n_warps) {
    if (source_.norm.weight && !source_.int8) {
      SLUICE_UNROLL for (int k = 0; k < kKept; ++k) weights_[k] = weights_of(item(k));
    }
  }

#if defined(__CUDACC__)
  // All threads of the block; ends with a barrier.
  __device__ __forceinline__ void stage() {
    if (source_.int8) {
      copy();
    } else {
      PerLane<float4> kept[kKept];
      read(kept);
      if (source_.norm.weight) {
        add_squares(kept);
        __syncthreads();
        if (source_.n_rows > 1) {
          set_scales();
          __syncthreads();
        }
      }
      quantize(kept);
    }
    __syncthreads();
  }
#endif

  // The rows of an int8 source. 16 bytes a lane: 16 of a chunk's q, 2 of its d, 2 of its y.
  SLUICE_LANE_FN void copy() {
    const int per_row = 20 * n_chunks_;
    EACH_LANE(lane) {
      for (int i = kWarp * warp_ + lane; i < source_.n_rows * per_row; i += kWarp * n_warps_) {
        const int r = i / per_row, piece = i % per_row;
        uint8_t* const row = rows_ + r * staged_row_bytes(n_chunks_);
        const int64_t from = source_.at(r) * n_chunks_;
        if (piece < 16 * n_chunks_) {
          copy_16_past_l1(row + piece / 16 * StagedLoad::kChunkStride + piece % 16 * 16,
                          source_.int8.q + kChunk * from + 16 * piece);
        } else {
          const int scale = piece - 16 * n_chunks_;
          const bool is_y = scale >= 2 * n_chunks_;
          const float* const src = is_y ? source_.int8.y : source_.int8.d;
          copy_16_past_l1(row + n_chunks_ * StagedLoad::kChunkStride + 16 * scale,
                          src + 8 * from + 4 * (is_y ? scale - 2 * n_chunks_ : scale));
        }
      }
    }
  }

  // What stage() does of f32 rows, with barriers between: read, add_squares, set_scales (of several
  // rows; a single one's scale every warp makes for itself), quantize.
  SLUICE_LANE_FN void read(PerLane<float4> (&kept)[kKept]) const {
    SLUICE_UNROLL for (int k = 0; k < kKept; ++k) kept[k] = values_of(item(k));
  }
  SLUICE_LANE_FN void add_squares(const PerLane<float4> (&kept)[kKept]) {
    const auto set = [&](int i, const PerLane<float4>& values) {
      const PerLane<float> sum = segment_squares(values);
      EACH_LANE(lane) {
        if (lane == 0) squares_[i] = sum[lane];
      }
    };
    SLUICE_UNROLL for (int k = 0; k < kKept; ++k) {
      if (item(k) < n_items()) set(item(k), kept[k]);
    }
    each_other(set);
  }
  SLUICE_LANE_FN void set_scales() {
    for (int r = warp_; r < source_.n_rows; r += n_warps_) {
      const PerLane<float> scale = scale_of(r);
      EACH_LANE(lane) {
        if (lane == 0) squares_[r * n_segments_] = scale[lane];
      }
    }
  }
  SLUICE_LANE_FN void quantize(const PerLane<float4> (&kept)[kKept]) {
    const bool has_norm = source_.norm.weight != nullptr;
    PerLane<float> scale{};
    if (has_norm && source_.n_rows == 1) scale = scale_of(0);
    const auto use = [&](int i, PerLane<float4> values, const PerLane<float4>& weights) {
      const int r = i / n_segments_;
      if (has_norm) {
        EACH_LANE(lane) {
          values[lane] = normalized(values[lane],
                                    source_.n_rows == 1 ? scale[lane] : squares_[r * n_segments_],
                                    weights[lane]);
        }
      }
      write_item(r, i % n_segments_, values);
    };
    SLUICE_UNROLL for (int k = 0; k < kKept; ++k) {
      if (item(k) < n_items()) use(item(k), kept[k], weights_[k]);
    }
    each_other([&](int i, const PerLane<float4>& values) {
      use(i, values, has_norm ? weights_of(i) : PerLane<float4>{});
    });
  }

 private:
  SLUICE_LANE_FN int item(int k) const { return warp_ + k * n_warps_; }
  SLUICE_LANE_FN int n_items() const { return source_.n_rows * n_segments_; }
  SLUICE_LANE_FN PerLane<float4> values_of(int i) const {
    PerLane<float4> values{};
    if (i >= n_items()) return values;
    const float* const row = source_.x + source_.at(i / n_segments_) * source_.n_cols;
    EACH_LANE(lane) { values[lane] = segment_values(row, i % n_segments_, source_.n_cols, lane); }
    return values;
  }
  SLUICE_LANE_FN PerLane<float4> weights_of(int i) const {
    PerLane<float4> weights;
    EACH_LANE(lane) {
      weights[lane] = segment_weights(source_.norm.weight, i % n_segments_, source_.n_cols, lane);
    }
    return weights;
  }

  // Of the items that are not kept, some at a time: use(item, values).
  template <typename Use>
  SLUICE_LANE_FN void each_other(const Use& use) const {
    constexpr int kAtOnce = 4;
    for (int k = kKept; item(k) < n_items(); k += kAtOnce) {
      PerLane<float4> v[kAtOnce];
      SLUICE_UNROLL for (int j = 0; j < kAtOnce; ++j) v[j] = values_of(item(k + j));
      SLUICE_UNROLL for (int j = 0; j < kAtOnce; ++j) {
        if (item(k + j) < n_items()) use(item(k + j), v[j]);
      }
    }
  }
  SLUICE_LANE_FN PerLane<float> scale_of(int r) const {
    const PerLane<float> scale =
        row_scale(squares_ + r * n_segments_, source_.n_cols, source_.norm.eps);
    sync_lanes();
    return scale;
  }
  SLUICE_LANE_FN void write_item(int r, int segment, const PerLane<float4>& values) {
    PerLane<Int8Place> to;
    EACH_LANE(lane) {
      to[lane] =
          staged_place(rows_ + r * staged_row_bytes(n_chunks_), source_.n_cols, segment, lane);
    }
    quantize_segment(values, to);
  }

  const RowSource& source_;
  uint8_t* rows_;
  float* squares_;
  int n_chunks_;
  int n_segments_;
  int warp_, n_warps_;
  PerLane<float4> weights_[kKept] = {};
};

}  // namespace sluice::backend::cuda
