// The kernel of group_attend.cu, for tiles of any size, which benchmarks compare.
//
// Layout   queries: [n_rows, n_heads, 2, dims] halves, of wide_heads.cu; caches as in
//          backend/kv_page.h; out: [n_rows, n_heads head_dim] f32.
// Mapping  a pair is a row and one of a kv head's query heads; a group of four warps has 64 pairs,
//          which follow each other by row, a block one or more groups of one kv head. Tiles of keys
//          and values are copied to shared memory by all, a tile ahead of what is computed. Rows of
//          several sequences in one block are taken sequence by sequence. Blocks with the longest
//          rows begin first. A row's order of sums depends on its position alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/async_copy.cuh"
#include "backend/cuda/group_attend_pass.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/warp.cuh"
#include "backend/cuda/wide_attend.h"

namespace sluice::backend::cuda {

struct GroupAttendArgs {
  WideAttend p;
  int per_kv;  // query heads of a kv head
  int n_tiles;
};

struct GroupOptions {
  int groups = 2;  // of four warps
  int keys = 64;   // of a tile
  int parts = 2;   // of a weight
  bool shared_queries = false;
  bool early = false;
  int blocks = 1;  // on an SM
};

template <int dims_, bool bf16_, GroupOptions o_>
struct GroupShape {
  static constexpr GroupOptions o = o_;
  static constexpr int dims = dims_, keys = o.keys;
  static constexpr bool bf16 = bf16_;
  static constexpr int kThreads = o.groups * kGroupWarps * kWarp;
  static constexpr int kPairs = o.groups * kGroupWarps * kPassRows;

  using Tile = GroupTile<dims, keys>;
  using Queries = GroupTile<dims, 64>;
  struct Shared {
    Tile keys[2], values[2];
    Queries queries[o.shared_queries ? o.groups : 1][o.shared_queries ? 2 : 1];
    int32_t sequences[kPairs], positions[kPairs];  // of the block's rows
  };
};

template <typename Shape>
class GroupBlock {
 public:
  using Shared = typename Shape::Shared;
  using Tile = typename Shape::Tile;
  static constexpr int kThreads = Shape::kThreads, kPairs = Shape::kPairs, kKeys = Shape::keys;

  __device__ __forceinline__ GroupBlock(const GroupAttendArgs& a, Shared& s)
      : a_(a),
        p_(a.p.of),
        s_(s),
        kv_head_(static_cast<int>(blockIdx.x)),
        first_pair_((a.n_tiles - 1 - static_cast<int>(blockIdx.y)) * kPairs),
        first_row_(first_pair_ / a.per_kv) {
    const int n_live = p_.n_live ? min(__ldcg(p_.n_live), p_.n_rows) : p_.n_rows;
    n_rows_ = min((first_pair_ + kPairs - 1) / a.per_kv + 1, n_live) - first_row_;
    for (int i = static_cast<int>(threadIdx.x); i < n_rows_; i += kThreads) {
      s.sequences[i] = __ldcg(p_.sequences + first_row_ + i);
      s.positions[i] = __ldcg(p_.positions + first_row_ + i);
    }
    if (p_.head_dim < Shape::dims) {  // columns that nobody copies
      for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(4 * sizeof(Tile)) / 16;
           i += kThreads) {
        reinterpret_cast<uint4*>(s.keys)[i] = {0, 0, 0, 0};
      }
    }
    PerLane<const uint16_t*> queries[2];
    PerLane<float> scales[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      // Pairs that there are not read another's query, and see nothing.
      const Pair pair = pair_of(r);
      const int row = max(min(pair.row, n_live - 1), 0);
      const int64_t at = static_cast<int64_t>(row) * p_.n_heads + pair.head;
      queries[r].value = a.p.queries + at * kQueryParts * Shape::dims;
      scales[r].value = __ldcg(a.p.scales + at);
    }
    pass_.begin(queries, scales);
    if constexpr (Shape::o.shared_queries) copy_queries(n_live);
    __syncthreads();
  }

  __device__ __forceinline__ void copy_queries(int n_live) {
    constexpr int kPerPart = Shape::dims / 8, kPerPair = kQueryParts * kPerPart;
    for (int i = static_cast<int>(threadIdx.x); i < kPairs * kPerPair; i += kThreads) {
      const int pair = i / kPerPair, piece = i % kPerPair;
      const int row = (first_pair_ + pair) / a_.per_kv;
      const int head = kv_head_ * a_.per_kv + first_pair_ + pair - row * a_.per_kv;
      const int64_t from = static_cast<int64_t>(max(min(row, n_live - 1), 0)) * p_.n_heads + head;
      auto& tile = s_.queries[pair / 64][piece / kPerPart];
      copy_16(tile.bytes[0] + Shape::Queries::offset(pair % 64, piece % kPerPart * 16),
              a_.p.queries + (from * kPerPair + piece) * 8);
    }
  }

  // All rows, sequence by sequence.
  __device__ __forceinline__ void run() {
#pragma unroll 1
    for (int row = 0; row < n_rows_;) {
      const int end = run_end(row);
      add_rows(row, end);
      row = end;
    }
  }

  // Zeros for rows that are not live.
  __device__ __forceinline__ void write() const {
    pass_.end([&](int r, int column, PerLane<EightColumns> out) {
      const Pair pair = pair_of(r);
      const bool exists = pair.row < p_.n_rows && column < p_.head_dim;
      const int own = column + lane_index() % 4 * 2;
      float* const v = out.value.v;
      if (p_.is_gated && exists) {
        const float* const gate = p_.qkv + p_.gate_at(pair.row, pair.head) + own;
#pragma unroll
        for (int j = 0; j < 8; ++j) v[j] *= sigmoid(__ldcg(gate + j / 2 * 8 + j % 2));
      }
      if (exists && p_.out) {
        float* const to = p_.out + static_cast<int64_t>(pair.row) * p_.n_heads * p_.head_dim +
                          pair.head * p_.head_dim + own;
#pragma unroll
        for (int j = 0; j < 8; j += 2) *reinterpret_cast<float2*>(to + 4 * j) = {v[j], v[j + 1]};
      }
      if (!p_.out_int8) return;
      const int64_t block = static_cast<int64_t>(pair.row) * p_.out_int8.n_chunks * 8 +
                            (pair.head * p_.head_dim + column) / 32;
      quantize_block(out, {{p_.out_int8.q + 32 * block, p_.out_int8.d + block,
                            p_.out_int8.y + block, exists}});
    });
  }

 private:
  static constexpr int kPiece = 16;  // positions that stand side by side in a page, at least
  struct Pair {
    int row, head;
  };
  __device__ __forceinline__ Pair pair_of(int r) const {
    const int pair = first_pair_ + kPassRows * warp_index() + lane_index() / 4 + 8 * r;
    const int row = pair / a_.per_kv;
    return {row, kv_head_ * a_.per_kv + pair - row * a_.per_kv};
  }

  // Behind the rows of the same sequence, which stand side by side.
  __device__ __forceinline__ int run_end(int row) const {
    const int sequence = s_.sequences[row];
    if (s_.sequences[n_rows_ - 1] == sequence) return n_rows_;
    int end = row + 1;
    while (s_.sequences[end] == sequence) ++end;
    return end;
  }

  // Keys and values of the block's kv head, of a sequence.
  struct Source {
    const int32_t* pages;
    int n_keys;
  };

  // Keys or values of tile i; zeros where they end.
  __device__ __forceinline__ void ask(const Source& from, const uint8_t* data, int i,
                                      Tile& to) const {
    if (p_.head_dim == Shape::dims) {  // no division
      ask(from, data, i, to, Shape::dims / 8);
    } else {
      ask(from, data, i, to, p_.head_dim / 8);
    }
  }
  __device__ __forceinline__ void ask(const Source& from, const uint8_t* data, int i, Tile& to,
                                      int per_row) const {
    const int last = (from.n_keys - 1) / kPiece * kPiece;
#pragma unroll
    for (int piece = 0; piece < kKeys; piece += kPiece) {
      const int key = i * kKeys + piece, read = min(key, last);
      const uint8_t* const rows =
          data + a_.p.page.row_at(__ldg(from.pages + (read >> p_.page_shift)), kv_head_,
                                  read & ((1 << p_.page_shift) - 1));
#pragma unroll 2
      for (int j = static_cast<int>(threadIdx.x); j < kPiece * per_row; j += kThreads) {
        const int row = j / per_row;
        uint8_t* const at = to.bytes[0] + Tile::offset(piece + row, 16 * (j - row * per_row));
        if (key + row < from.n_keys) {
          copy_16(at, rows + 16 * j);
        } else {
          *reinterpret_cast<uint4*>(at) = {0, 0, 0, 0};
        }
      }
    }
  }

  // Rows of one sequence. While tile i is multiplied, keys of i + 2 and values of i + 1 arrive.
  __device__ __forceinline__ void add_rows(int begin, int end) {
    const int n_keys = s_.positions[end - 1] + 1, n = (n_keys + kKeys - 1) / kKeys;
    const Source from{p_.page_table + static_cast<int64_t>(s_.sequences[begin]) * p_.table_stride,
                      n_keys};
    PerLane<int> limits[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = pair_of(r).row - first_row_;
      limits[r].value = row >= begin && row < end ? s_.positions[row] + 1 : 0;
    }
    const int least = least_of_warp(min(limits[0].value, limits[1].value));
    const auto arrive = [&](int i) {
      await_groups<0>();
      show_copies();
      __syncthreads();
      if (i + 2 < n) ask(from, p_.k, i + 2, s_.keys[i & 1]);
      if (i + 1 < n) ask(from, p_.v, i + 1, s_.values[(i + 1) & 1]);
      end_group();
    };
    __syncthreads();  // nobody reads what the rows before left
    ask(from, p_.k, 0, s_.keys[0]);
    end_group();
    await_groups<0>();
    show_copies();
    __syncthreads();
    if (n > 1) ask(from, p_.k, 1, s_.keys[1]);
    ask(from, p_.v, 0, s_.values[0]);
    end_group();
    if (!group_has(begin, end)) {  // it copies for the others
#pragma unroll 1
      for (int i = 0; i < n; ++i) arrive(i);
      return;
    }
    pass_.score(s_.keys[0], own_queries());
    await_batches<0>();
    pass_.soften(0, kKeys > least, limits);
    pass_.settle();
#pragma unroll 1
    for (int i = 0; i < n - 1; ++i) {
      arrive(i);
      pass_.score(s_.keys[(i + 1) & 1], own_queries());
      pass_.add_values(s_.values[i & 1]);
      await_batches<1>();
      pass_.soften((i + 1) * kKeys, (i + 2) * kKeys > least, limits);
      await_batches<0>();
      pass_.settle();
    }
    arrive(n - 1);
    pass_.add_values(s_.values[(n - 1) & 1]);
    await_batches<0>();
    pass_.finish();
  }

  // Whether any of these rows is the group's.
  __device__ __forceinline__ bool group_has(int begin, int end) const {
    constexpr int kOwn = kGroupWarps * kPassRows;
    const int pair = first_pair_ + warp_index() / kGroupWarps * kOwn;
    return pair / a_.per_kv - first_row_ < end &&
           (pair + kOwn - 1) / a_.per_kv - first_row_ >= begin;
  }

  __device__ __forceinline__ const typename Shape::Queries* own_queries() const {
    return s_.queries[Shape::o.shared_queries ? warp_index() / kGroupWarps : 0];
  }

  static __device__ __forceinline__ int least_of_warp(int v) {
    return static_cast<int>(~most_of_lanes(PerLane<uint32_t>{~static_cast<uint32_t>(v)}).value);
  }

  const GroupAttendArgs& a_;
  const Attend& p_;
  Shared& s_;
  int kv_head_, first_pair_, first_row_, n_rows_;
  GroupPass<Shape::dims, Shape::bf16, kKeys, Shape::o.parts, Shape::o.shared_queries,
            Shape::o.early>
      pass_;
};

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::o.blocks)
    group_attend_kernel(const __grid_constant__ GroupAttendArgs a) {
  extern __shared__ __align__(1024) uint8_t shared[];
  let_next_kernel_begin();
  wait_for_previous_kernel();
  GroupBlock<Shape> block(a, *reinterpret_cast<typename Shape::Shared*>(shared));
  block.run();
  block.write();
}

template <typename Shape>
void run_group_attend(const WideAttend& p, const Launch& how) {
  const int per_kv = p.of.n_heads / p.of.n_kv_heads;
  const int n_tiles = (p.of.n_rows * per_kv + Shape::kPairs - 1) / Shape::kPairs;
  const dim3 grid(static_cast<unsigned>(p.of.n_kv_heads), static_cast<unsigned>(n_tiles));
  launch(group_attend_kernel<Shape>, grid, Shape::kThreads, sizeof(typename Shape::Shared), how,
         GroupAttendArgs{p, per_kv, n_tiles});
}

}  // namespace sluice::backend::cuda
