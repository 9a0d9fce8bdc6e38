// norm(x) of a single row as int8 in a block's shared memory: what stage_rows.cuh does for several,
// with the same bits, in a tenth of the code. In a layer every kernel starts with cold
// instructions, so a kernel for one row is kept small (docs/decisions/0011).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/stage_rows.cuh"

namespace sluice::backend::cuda {

// By blocks of eight warps. Segments warp and warp + 8 stay in registers; those of rows over 2,048
// columns are read twice.
class NormedRow {
 public:
  static constexpr int kWarps = 8;
  static constexpr int kKept = 2;
  static constexpr int kMostSegments = 64;  // 8,192 columns

  // Before the wait for the kernel before: reads the norm's weights alone.
  __device__ __forceinline__ NormedRow(const float* x, const RowNorm& norm, int n_cols)
      : x_(x),
        norm_(norm),
        n_cols_(n_cols),
        n_segments_((n_cols + kSegment - 1) / kSegment),
        warp_(warp_index()),
        lane_(lane_index()) {
#pragma unroll
    for (int k = 0; k < kKept; ++k) weights_[k] = weight_of(warp_ + kWarps * k);
  }

  // squares: [n_segments] in shared memory; a barrier is to follow.
  __device__ __forceinline__ void add_squares(float* squares) {
#pragma unroll
    for (int k = 0; k < kKept; ++k) values_[k] = values_of(warp_ + kWarps * k);
#pragma unroll
    for (int k = 0; k < kKept; ++k) set_squares(squares, warp_ + kWarps * k, values_[k]);
#pragma unroll 1
    for (int s = warp_ + kWarps * kKept; s < n_segments_; s += kWarps) {
      set_squares(squares, s, values_of(s));
    }
  }

  // The row at `out` (staged_row). Ends with a barrier.
  __device__ __forceinline__ void stage(const float* squares, uint8_t* out) const {
    const float scale = row_scale(squares, n_cols_, norm_.eps, lane_);
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      write(out, warp_ + kWarps * k, normalized(values_[k], scale, weights_[k]));
    }
#pragma unroll 1
    for (int s = warp_ + kWarps * kKept; s < n_segments_; s += kWarps) {
      write(out, s, normalized(values_of(s), scale, weight_of(s)));
    }
    __syncthreads();
  }

  // Of the warp's k-th segment.
  __device__ __forceinline__ float4 value(int segment, int k) const {
    return k < kKept ? (k == 0 ? values_[0] : values_[1]) : values_of(segment);
  }
  __device__ __forceinline__ float4 weight(int segment, int k) const {
    return k < kKept ? (k == 0 ? weights_[0] : weights_[1]) : weight_of(segment);
  }

 private:
  __device__ __forceinline__ float4 values_of(int segment) const {
    return segment_values(x_, segment, n_cols_, lane_);
  }
  __device__ __forceinline__ float4 weight_of(int segment) const {
    const int at = kSegment * segment + 4 * lane_;
    return at < n_cols_ ? __ldg(reinterpret_cast<const float4*>(norm_.weight + at))
                        : float4{0, 0, 0, 0};
  }
  __device__ __forceinline__ void set_squares(float* squares, int segment, float4 v) const {
    const float sum = segment_squares(v);
    if (lane_ == 0 && segment < n_segments_) squares[segment] = sum;
  }
  __device__ __forceinline__ void write(uint8_t* out, int segment, float4 v) const {
    const int n_chunks = (n_cols_ + kChunk - 1) / kChunk;
    auto* const d = reinterpret_cast<float*>(out + n_chunks * StagedLoad::kChunkStride) +
                    4 * segment + lane_ / 8;
    quantize_segment(v, lane_,
                     reinterpret_cast<int8_t*>(out) + segment / 2 * StagedLoad::kChunkStride +
                         segment % 2 * kSegment + 4 * lane_,
                     d, d + 8 * n_chunks, kSegment * segment + 4 * lane_ < n_cols_);
  }

  const float* x_;
  RowNorm norm_;
  int n_cols_, n_segments_, warp_, lane_;
  float4 values_[kKept], weights_[kKept];
};

// An int8 row into a staged one: 16 bytes a thread, of q, then of d, then of y. A barrier is to
// follow.
__device__ __forceinline__ void copy_row(const Int8Rows& a, int n_chunks, uint8_t* out) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < 20 * n_chunks;
       i += static_cast<int>(blockDim.x)) {
    const int scale = i - 16 * n_chunks;
    const void* const from = scale < 0              ? static_cast<const void*>(a.q + 16 * i)
                             : scale < 2 * n_chunks ? a.d + 4 * scale
                                                    : a.y + 4 * (scale - 2 * n_chunks);
    const int to = scale < 0 ? i / 16 * StagedLoad::kChunkStride + i % 16 * 16
                             : n_chunks * StagedLoad::kChunkStride + 16 * scale;
    *reinterpret_cast<uint4*>(out + to) = __ldcg(static_cast<const uint4*>(from));
  }
}

}  // namespace sluice::backend::cuda
