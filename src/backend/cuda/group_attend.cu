// Attention of prompts on sm_90: see group_attend.h. Compiled for sm_90a alone
// (src/CMakeLists.txt), since code for its instructions runs on no other card.
//
// Layout   queries: [n_rows, n_heads, 2, dims] halves, as wide_heads.cu writes them for it; caches
//          as in backend/kv_page.h; out: [n_rows, n_heads head_dim] f32.
// Mapping  a pair is a row and one of a kv head's query heads; a group of four warps has 64 pairs,
//          which follow each other by row, a block two groups of one kv head. Tiles of keys and
//          values are copied to shared memory by all, a tile ahead of what is computed. Rows of
//          several sequences in one block are taken sequence by sequence. Blocks with the longest
//          rows begin first. A row's order of sums depends on its position alone.
// Limits   head_dim <= 128; otherwise as wide_attend.cu.
// Cost     see docs/decisions/0018 and bench/gpu_wide_trunk.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/group_attend.h"

#include "backend/cuda/async_copy.cuh"
#include "backend/cuda/group_attend_pass.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/warp.cuh"
#include "backend/cuda/wide_pairs.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {

#if defined(SLUICE_GROUP_PRODUCTS)

namespace {

struct GroupAttendArgs {
  WideAttend p;
  int per_kv;  // query heads of a kv head
  int n_tiles;
};

// Of a block: docs/decisions/0018.
constexpr int kGroups = 2;  // of four warps
constexpr int kKeys = 64;   // of a tile
constexpr int kThreads = kGroups * kGroupWarps * kWarp;
constexpr int kOfGroup = kGroupWarps * kPassRows;  // pairs
constexpr int kPairs = kGroups * kOfGroup;

template <int dims>
struct GroupShared {
  GroupTile<dims, kKeys> keys[2], values[2];
  PairRows<kPairs> rows;
};

template <int dims, bool bf16>
class GroupBlock {
 public:
  using Shared = GroupShared<dims>;
  using Tile = GroupTile<dims, kKeys>;

  __device__ __forceinline__ GroupBlock(const GroupAttendArgs& a, Shared& s)
      : a_(a), p_(a.p.of), s_(s), pairs_(p_, a.per_kv, a.n_tiles, s.rows) {
    if (p_.head_dim < dims) {  // columns that nobody copies
      for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(4 * sizeof(Tile)) / 16;
           i += kThreads) {
        reinterpret_cast<uint4*>(s.keys)[i] = {0, 0, 0, 0};
      }
    }
    pairs_.template begin<dims>(a.p, pass_);
    __syncthreads();
  }

  // All rows, sequence by sequence.
  __device__ __forceinline__ void run() {
#pragma unroll 1
    for (int row = 0; row < pairs_.n_rows();) {
      const int end = pairs_.run_end(row);
      add_rows(row, end);
      row = end;
    }
  }

  // Zeros for rows that are not live.
  __device__ __forceinline__ void write() const {
    pass_.end([&](int r, int column, PerLane<EightColumns> out) {
      const auto pair = pairs_.pair_of(r);
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
  // Keys and values of the block's kv head, of a sequence.
  struct Source {
    const int32_t* pages;
    int n_keys;
  };

  // Keys or values of tile i; zeros where they end.
  __device__ __forceinline__ void ask(const Source& from, const uint8_t* data, int i,
                                      Tile& to) const {
    if (p_.head_dim == dims) {  // no division
      ask(from, data, i, to, dims / 8);
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
          data + a_.p.page.row_at(__ldg(from.pages + (read >> p_.page_shift)), pairs_.kv_head(),
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
    const int n_keys = pairs_.position(end - 1) + 1, n = (n_keys + kKeys - 1) / kKeys;
    const Source from{
        p_.page_table + static_cast<int64_t>(pairs_.sequence(begin)) * p_.table_stride, n_keys};
    PerLane<int> limits[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) limits[r].value = pairs_.limit(r, begin, end);
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
    ask(from, p_.v, 0, s_.values[0]);
    end_group();
    await_groups<1>();
    show_copies();
    __syncthreads();
    if (n > 1) ask(from, p_.k, 1, s_.keys[1]);
    end_group();
    const int group = warp_index() / kGroupWarps;
    if (!pairs_.has_rows(group * kOfGroup, kOfGroup, begin, end)) {  // it copies for the others
#pragma unroll 1
      for (int i = 0; i < n; ++i) arrive(i);
      return;
    }
    pass_.score(s_.keys[0]);
    await_batches<0>();
    pass_.soften(0, kKeys > least, limits);
    pass_.settle();
#pragma unroll 1
    for (int i = 0; i < n - 1; ++i) {
      arrive(i);
      pass_.score(s_.keys[(i + 1) & 1]);
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

  const GroupAttendArgs& a_;
  const Attend& p_;
  Shared& s_;
  PairsOfBlock<kPairs, kThreads> pairs_;
  GroupPass<dims, bf16, kKeys> pass_;
};

template <int dims, bool bf16>
__global__ void __launch_bounds__(kThreads, 1)
    group_attend_kernel(const __grid_constant__ GroupAttendArgs a) {
  extern __shared__ __align__(kTileAlignment) uint8_t shared[];
  let_next_kernel_begin();
  wait_for_previous_kernel();
  GroupBlock<dims, bf16> block(a, *reinterpret_cast<GroupShared<dims>*>(shared));
  block.run();
  block.write();
}

template <int dims, bool bf16>
void run(const WideAttend& p, const Launch& how) {
  CHECK(sizeof(GroupShared<dims>) <= static_cast<size_t>(how.shared_bytes));
  const int per_kv = p.of.n_heads / p.of.n_kv_heads;
  const int n_tiles = (p.of.n_rows * per_kv + kPairs - 1) / kPairs;
  const dim3 grid(static_cast<unsigned>(p.of.n_kv_heads), static_cast<unsigned>(n_tiles));
  launch(group_attend_kernel<dims, bf16>, grid, kThreads, sizeof(GroupShared<dims>), how,
         GroupAttendArgs{p, per_kv, n_tiles});
}

template <int dims>
void run(const WideAttend& p, const Launch& how) {
  p.of.kv_type == quant::Type::bf16 ? run<dims, true>(p, how) : run<dims, false>(p, how);
}

}  // namespace

bool has_group_attend(const WideAttend& p, const Launch& how) {
  const bool is_long = p.of.n_rows >= p.least_group_rows || p.n_past >= kLeastGroupLength;
  return how.has_group_products && p.of.head_dim <= 128 && is_long;
}

void group_attend(const WideAttend& p, const Launch& how) {
  CHECK(p.by_groups && p.of.head_dim <= 128);
  wide_dims(p.of.head_dim) == 64 ? run<64>(p, how) : run<128>(p, how);
}

#else

bool has_group_attend(const WideAttend&, const Launch&) { return false; }
void group_attend(const WideAttend&, const Launch&) {
  check_failed("group_attend() is in this build", __FILE__, __LINE__);
}

#endif

}  // namespace sluice::backend::cuda
