// The inputs of a block's dot products in its shared memory, as int8 blocks of 32: copied where the
// kernel before quantised them, or made here of f32 rows, normalised or not.
//
// A row's sum of squares is added in one order, whatever block or warp does it and whatever rows
// are beside it: four values of a lane, the lanes of a segment of 128 as a tree, the segments as a
// tree. So a row's bytes do not depend on the other rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/int8_rows.h"
#include "backend/cuda/stripe_dot.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

constexpr int kSegment = 128;

// y = x * weight / sqrt(mean(x^2) + eps), or y = x where weight is null.
struct RowNorm {
  const float* weight = nullptr;
  float eps = 0.0f;
};

// Where rows come from: int8, or f32.
struct RowSource {
  Int8Rows int8;
  const float* x = nullptr;  // [.., n_cols]
  RowNorm norm;
  const int32_t* index = nullptr;  // row r is row index[r]; null: r
  int n_cols = 0;
  int n_rows = 0;

  __device__ __forceinline__ int64_t at(int r) const { return index ? __ldcg(index + r) : r; }
};

// Staged rows: chunks 16 bytes further apart than they are long, and rows 16 more, so that the
// loads of a warp spread over the banks; scales behind them.
struct StagedLoad {
  static constexpr int kChunkStride = kChunk + 16;
  __device__ __forceinline__ static uint32_t word(const void* p) {
    return *static_cast<const uint32_t*>(p);
  }
  __device__ __forceinline__ static void four(const float* p, float* out) {
    *reinterpret_cast<float4*>(out) = *reinterpret_cast<const float4*>(p);
  }
};
// Rows that other kernels wrote, where they stand.
struct PastL1Load {
  static constexpr int kChunkStride = kChunk;
  __device__ __forceinline__ static uint32_t word(const void* p) {
    return __ldcg(static_cast<const uint32_t*>(p));
  }
  __device__ __forceinline__ static void four(const float* p, float* out) {
    *reinterpret_cast<float4*>(out) = load_past_l1(p);
  }
};

constexpr int staged_row_bytes(int n_chunks) {
  return n_chunks * (StagedLoad::kChunkStride + 64) + 16;
}

__device__ __forceinline__ InputRow staged_row(const uint8_t* rows, int n_chunks, int r) {
  const uint8_t* const row = rows + r * staged_row_bytes(n_chunks);
  const auto* const d = reinterpret_cast<const float*>(row + n_chunks * StagedLoad::kChunkStride);
  return {reinterpret_cast<const int8_t*>(row), d, d + 8 * n_chunks};
}

// Part A for a segment, four values a lane; a block is eight lanes. Writes where the block's bytes
// and scales go; nothing where the block is none (writes false).
__device__ __forceinline__ void quantize_segment(float4 v, int lane, int8_t* q, float* d, float* y,
                                                 bool writes) {
  const auto magnitude = [](float x) { return __float_as_uint(x) & 0x7fffffffu; };
  unsigned peak_bits =
      max(max(magnitude(v.x), magnitude(v.y)), max(magnitude(v.z), magnitude(v.w)));
#pragma unroll
  for (int m = 4; m > 0; m >>= 1)
    peak_bits = max(peak_bits, __shfl_xor_sync(kAllLanes, peak_bits, m));
  const float peak = __uint_as_float(peak_bits);
  uint32_t bytes = 0;
  float step = 0.0f;
  if (peak >= 0x1p-100f) {
    const float scale = __fdiv_rn(127.0f, peak);
    const auto rounded = [&](float x) {
      return static_cast<uint32_t>(__float2int_rn(__fmul_rn(x, scale)));
    };
    bytes = pick_bytes(pick_bytes(rounded(v.x), rounded(v.y), 0x0040u),
                       pick_bytes(rounded(v.z), rounded(v.w), 0x0040u), 0x5410u);
    step = __fmul_rn(peak, 1.0f / 127.0f);
  }
  int sum = __dp4a(static_cast<int>(bytes), 0x01010101, 0);
#pragma unroll
  for (int m = 4; m > 0; m >>= 1) sum += __shfl_xor_sync(kAllLanes, sum, m);
  if (writes) *reinterpret_cast<uint32_t*>(q) = bytes;
  if (writes && lane % 8 == 0) {
    *d = step;
    *y = __fmul_rn(step, static_cast<float>(sum));
  }
}

// Four values of a row, zero behind its end.
__device__ __forceinline__ float4 segment_values(const float* row, int segment, int n_cols,
                                                 int lane) {
  const int at = kSegment * segment + 4 * lane;
  return at < n_cols ? load_past_l1(row + at) : float4{0, 0, 0, 0};
}

__device__ __forceinline__ float segment_squares(float4 v) {
  return warp_sum(
      __fmaf_rn(v.w, v.w, __fmaf_rn(v.z, v.z, __fmaf_rn(v.y, v.y, __fmul_rn(v.x, v.x)))));
}

// 1 / sqrt(mean + eps) of a row, of the squares of its segments.
__device__ __forceinline__ float row_scale(const float* squares, int n_cols, float eps, int lane) {
  float sum = 0.0f;
#pragma unroll 1
  for (int s = lane; s * kSegment < n_cols; s += kWarp) sum = __fadd_rn(sum, squares[s]);
  sum = warp_sum(sum);
  return __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(__fdiv_rn(sum, static_cast<float>(n_cols)), eps)));
}

__device__ __forceinline__ float4 normalized(float4 v, float scale, float4 w) {
  return {__fmul_rn(__fmul_rn(v.x, scale), w.x), __fmul_rn(__fmul_rn(v.y, scale), w.y),
          __fmul_rn(__fmul_rn(v.z, scale), w.z), __fmul_rn(__fmul_rn(v.w, scale), w.w)};
}

// Items of a block's warps: (row, segment). The first kKept of a warp stay in registers between
// the sums and the quantisation; the others are read again, from L2.
class RowStager {
 public:
  static constexpr int kKept = 2;

  // squares: [n_rows, n_segments] in shared memory.
  __device__ __forceinline__ RowStager(const RowSource& source, uint8_t* rows, float* squares)
      : source_(source),
        rows_(rows),
        squares_(squares),
        n_chunks_((source.n_cols + kChunk - 1) / kChunk),
        n_segments_((source.n_cols + kSegment - 1) / kSegment) {
    if (source_.norm.weight && !source_.int8) {
#pragma unroll
      for (int k = 0; k < kKept; ++k) weights_[k] = weight_of(item(k));
    }
  }

  // All threads of the block; ends with a barrier.
  __device__ __forceinline__ void stage() {
    if (source_.int8) {
      copy();
    } else {
      float4 kept[kKept];
#pragma unroll
      for (int k = 0; k < kKept; ++k) kept[k] = values_of(item(k));
      if (source_.norm.weight) add_squares(kept);
      quantize(kept);
    }
    __syncthreads();
  }

  // The rows of an int8 source. 16 bytes a thread: 16 of a chunk's q, 2 of its d, 2 of its y.
  __device__ __forceinline__ void copy() {
    const int per_row = 20 * n_chunks_;
    for (int i = threadIdx.x; i < source_.n_rows * per_row; i += blockDim.x) {
      const int r = i / per_row, piece = i % per_row;
      uint8_t* const row = rows_ + r * staged_row_bytes(n_chunks_);
      const int64_t from = source_.at(r) * n_chunks_;
      if (piece < 16 * n_chunks_) {
        *reinterpret_cast<uint4*>(row + piece / 16 * StagedLoad::kChunkStride + piece % 16 * 16) =
            __ldcg(reinterpret_cast<const uint4*>(source_.int8.q + kChunk * from) + piece);
      } else {
        const int scale = piece - 16 * n_chunks_;
        const bool is_y = scale >= 2 * n_chunks_;
        const float* const src = is_y ? source_.int8.y : source_.int8.d;
        *reinterpret_cast<float4*>(row + n_chunks_ * StagedLoad::kChunkStride + 16 * scale) =
            load_past_l1(src + 8 * from + 4 * (is_y ? scale - 2 * n_chunks_ : scale));
      }
    }
  }

 private:
  __device__ __forceinline__ int lane() const { return threadIdx.x % kWarp; }
  __device__ __forceinline__ int item(int k) const {
    return threadIdx.x / kWarp + k * (blockDim.x / kWarp);
  }
  __device__ __forceinline__ int n_items() const { return source_.n_rows * n_segments_; }
  __device__ __forceinline__ float4 values_of(int i) const {
    if (i >= n_items()) return {0, 0, 0, 0};
    return segment_values(source_.x + source_.at(i / n_segments_) * source_.n_cols, i % n_segments_,
                          source_.n_cols, lane());
  }
  __device__ __forceinline__ float4 weight_of(int i) const {
    const int at = kSegment * (i % n_segments_) + 4 * lane();
    return at < source_.n_cols ? __ldg(reinterpret_cast<const float4*>(source_.norm.weight + at))
                               : float4{0, 0, 0, 0};
  }

  // Of the items that are not kept, some at a time: use(item, values).
  template <typename Use>
  __device__ __forceinline__ void each_other(const Use& use) const {
    constexpr int kAtOnce = 4;
    for (int k = kKept; item(k) < n_items(); k += kAtOnce) {
      float4 v[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) v[j] = values_of(item(k + j));
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (item(k + j) < n_items()) use(item(k + j), v[j]);
      }
    }
  }

  __device__ __forceinline__ void add_squares(const float4 (&kept)[kKept]) {
    const auto set = [&](int i, float4 v) {
      const float sum = segment_squares(v);
      if (lane() == 0) squares_[i] = sum;
    };
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      if (item(k) < n_items()) set(item(k), kept[k]);
    }
    each_other(set);
    __syncthreads();
    if (source_.n_rows == 1) return;  // every warp makes the scale for itself
    for (int r = threadIdx.x / kWarp; r < source_.n_rows; r += blockDim.x / kWarp) {
      const float scale = scale_of(r);
      if (lane() == 0) squares_[r * n_segments_] = scale;
    }
    __syncthreads();
  }
  __device__ __forceinline__ float scale_of(int r) const {
    const float scale =
        row_scale(squares_ + r * n_segments_, source_.n_cols, source_.norm.eps, lane());
    __syncwarp();
    return scale;
  }

  __device__ __forceinline__ void quantize(const float4 (&kept)[kKept]) {
    const bool has_norm = source_.norm.weight != nullptr;
    const float scale = has_norm && source_.n_rows == 1 ? scale_of(0) : 1.0f;
    const auto use = [&](int i, float4 v, float4 weight) {
      const int r = i / n_segments_;
      if (has_norm) {
        v = normalized(v, source_.n_rows == 1 ? scale : squares_[r * n_segments_], weight);
      }
      write_item(r, i % n_segments_, v);
    };
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      if (item(k) < n_items()) use(item(k), kept[k], weights_[k]);
    }
    each_other([&](int i, float4 v) { use(i, v, has_norm ? weight_of(i) : float4{}); });
  }
  __device__ __forceinline__ void write_item(int r, int segment, float4 v) {
    uint8_t* const row = rows_ + r * staged_row_bytes(n_chunks_);
    auto* const d = reinterpret_cast<float*>(row + n_chunks_ * StagedLoad::kChunkStride) +
                    4 * segment + lane() / 8;
    quantize_segment(v, lane(),
                     reinterpret_cast<int8_t*>(row) + segment / 2 * StagedLoad::kChunkStride +
                         segment % 2 * kSegment + 4 * lane(),
                     d, d + 8 * n_chunks_, kSegment * segment + 4 * lane() < source_.n_cols);
  }

  const RowSource& source_;
  uint8_t* rows_;
  float* squares_;
  int n_chunks_;
  int n_segments_;
  float4 weights_[kKept] = {};
};

}  // namespace sluice::backend::cuda
