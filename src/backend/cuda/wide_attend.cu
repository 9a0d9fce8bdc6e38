// Flash attention of a step of many rows over a paged KV cache: see wide_attend.h.
//
// Layout   queries: [n_rows, n_heads, 2, dims] halves, of wide_heads.cu; caches as in
//          backend/kv_page.h; out: [n_rows, n_heads head_dim] f32.
// Mapping  a pair is a row and one of a kv head's query heads; a block has 64 pairs, which follow
//          each other by row, and their kv head; a warp has 16 of them (wide_attend_pass.h). Tiles
//          of keys and values are copied to shared memory by all, one ahead of what is computed.
//          Two blocks share an SM, so that one multiplies while the other weighs. Rows of several
//          sequences in one block are taken sequence by sequence. Blocks with the longest rows
//          begin first. A row's order of sums depends on its position alone.
// Limits   head_dim % 32 == 0, <= 256; pages of 16 positions and more.
// Cost     see bench/results/gpu_wide.md and docs/decisions/0018.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/wide_attend.h"

#include "backend/cuda/async_copy.cuh"
#include "backend/cuda/group_attend.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/warp.cuh"
#include "backend/cuda/wide_attend_pass.h"
#include "backend/cuda/wide_heads.h"
#include "backend/cuda/wide_pairs.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

using quant::Type;

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kPairs = kWarps * kPassRows;

struct WideAttendArgs {
  WideAttend p;
  int per_kv;  // query heads of a kv head
  int n_tiles;
  int n_stages;  // 1 or 2
};

template <int dims>
struct SharedTiles {
  PairRows<kPairs> rows;
  alignas(16) KvTile<dims> tiles[1];  // n_stages

  static constexpr size_t bytes(int n_stages) {
    return sizeof(SharedTiles) + static_cast<size_t>(n_stages - 1) * sizeof(KvTile<dims>);
  }
};

// Keys or values of one kv head of a sequence.
struct KvSource {
  const KvPage& page;
  const uint8_t* data;
  const int32_t* pages;
  int kv_head, page_shift;

  __device__ __forceinline__ const uint8_t* row(int key) const {
    return data +
           page.row_at(__ldg(pages + (key >> page_shift)), kv_head, key & ((1 << page_shift) - 1));
  }
};

// Keys first .. first + n - 1 to rows that are `stride` apart; zeros where keys end at n_keys.
// per_row: of 16 bytes.
template <int n>
__device__ __forceinline__ void copy_tile(const KvSource& from, int first, int n_keys, int per_row,
                                          uint8_t* to, int stride) {
  const int last = (n_keys - 1) / kPiece * kPiece;
#pragma unroll
  for (int piece = 0; piece < n; piece += kPiece) {
    const int key = first + piece;
    const uint8_t* const rows = from.row(min(key, last));
#pragma unroll 2
    for (int i = static_cast<int>(threadIdx.x); i < kPiece * per_row; i += kThreads) {
      const int row = i / per_row;
      uint8_t* const at = to + (piece + row) * stride + 16 * (i - row * per_row);
      if (key + row < n_keys) {
        copy_16(at, rows + 16 * i);
      } else {
        *reinterpret_cast<uint4*>(at) = {0, 0, 0, 0};
      }
    }
  }
}

template <int dims>
__device__ __forceinline__ void ask(const KvSource& k, const KvSource& v, int head_dim, int first,
                                    int n_keys, KvTile<dims>& tile) {
  constexpr int kKeys = KvTile<dims>::kKeys;
  const auto copy = [&](const KvSource& from, uint8_t* to, int stride) {
    if (head_dim == dims) {  // no division
      copy_tile<kKeys>(from, first, n_keys, dims / 8, to, stride);
    } else {
      copy_tile<kKeys>(from, first, n_keys, head_dim / 8, to, stride);
    }
  };
  copy(k, tile.keys[0], KvTile<dims>::kKeyStride);
  copy(v, tile.values[0], KvTile<dims>::kValueStride);
  end_group();
}

template <int dims, bool bf16>
class WideBlock {
 public:
  using Shared = SharedTiles<dims>;
  static constexpr int kKeys = KvTile<dims>::kKeys;

  __device__ __forceinline__ WideBlock(const WideAttendArgs& a, Shared& s)
      : a_(a), p_(a.p.of), s_(s), pairs_(p_, a.per_kv, a.n_tiles, s.rows) {
    if (p_.head_dim < dims) {  // columns that nobody copies
      for (int i = static_cast<int>(threadIdx.x);
           i < a.n_stages * static_cast<int>(sizeof(KvTile<dims>)) / 16; i += kThreads) {
        reinterpret_cast<uint4*>(s.tiles)[i] = {0, 0, 0, 0};
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
    pass_.end([&](int r, int first, PerLane<SixteenColumns> out) {
      const auto pair = pairs_.pair_of(r);
      const int at = first + lane_index() % 4 * 16, column = pair.head * p_.head_dim + at;
      const bool exists = pair.row < p_.n_rows && at < p_.head_dim;
      if (p_.is_gated && exists) {
        const float* const gate = p_.qkv + p_.gate_at(pair.row, pair.head) + at;
#pragma unroll
        for (int j = 0; j < 16; ++j) out.value.v[j] *= sigmoid(__ldcg(gate + j));
      }
      if (exists) {
        float* const to =
            p_.out + static_cast<int64_t>(pair.row) * p_.n_heads * p_.head_dim + column;
#pragma unroll
        for (int j = 0; j < 16; j += 4) {
          const float* const v = out.value.v + j;
          *reinterpret_cast<float4*>(to + j) = {v[0], v[1], v[2], v[3]};
        }
      }
      if (!p_.out_int8) return;
      const int64_t block = static_cast<int64_t>(pair.row) * p_.out_int8.n_chunks * 8 + column / 32;
      quantize_columns(out, {{p_.out_int8.q + 32 * block + column % 32, p_.out_int8.d + block,
                              p_.out_int8.y + block, exists}});
    });
  }

 private:
  // Rows of one sequence.
  __device__ __forceinline__ void add_rows(int begin, int end) {
    const int n_keys = pairs_.position(end - 1) + 1, n = (n_keys + kKeys - 1) / kKeys;
    const int32_t* const pages =
        p_.page_table + static_cast<int64_t>(pairs_.sequence(begin)) * p_.table_stride;
    const KvSource k{a_.p.page, p_.k, pages, pairs_.kv_head(), p_.page_shift};
    const KvSource v{a_.p.page, p_.v, pages, pairs_.kv_head(), p_.page_shift};
    PerLane<int> limits[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) limits[r].value = pairs_.limit(r, begin, end);
    const int most = most_of_warp(max(limits[0].value, limits[1].value));
    const int least = least_of_warp(min(limits[0].value, limits[1].value));
    const auto tile = [&](int i) -> KvTile<dims>& { return s_.tiles[i & (a_.n_stages - 1)]; };
    const bool is_ahead = a_.n_stages > 1;
    __syncthreads();  // nobody reads what the rows before left
    if (is_ahead) ask(k, v, p_.head_dim, 0, n_keys, tile(0));
#pragma unroll 1
    for (int i = 0; i < n; ++i) {
      if (!is_ahead) {
        if (i > 0) __syncthreads();
        ask(k, v, p_.head_dim, i * kKeys, n_keys, tile(i));
      }
      await_groups<0>();
      __syncthreads();
      if (is_ahead && i + 1 < n) ask(k, v, p_.head_dim, (i + 1) * kKeys, n_keys, tile(i + 1));
      if (i * kKeys < most) pass_.add(tile(i), i * kKeys, (i + 1) * kKeys > least, limits);
    }
  }

  const WideAttendArgs& a_;
  const Attend& p_;
  Shared& s_;
  PairsOfBlock<kPairs, kThreads> pairs_;
  WidePass<dims, bf16> pass_;
};

template <int dims, bool bf16>
__global__ void __launch_bounds__(kThreads, 2)
    wide_attend_kernel(const __grid_constant__ WideAttendArgs a) {
  extern __shared__ __align__(16) uint8_t shared[];
  let_next_kernel_begin();
  wait_for_previous_kernel();
  WideBlock<dims, bf16> block(a, *reinterpret_cast<SharedTiles<dims>*>(shared));
  block.run();
  block.write();
}

template <int dims, bool bf16>
void run(const WideAttend& p, const Launch& how) {
  using Shared = SharedTiles<dims>;
  const int n_stages = Shared::bytes(2) <= static_cast<size_t>(how.shared_bytes) ? 2 : 1;
  CHECK(Shared::bytes(n_stages) <= static_cast<size_t>(how.shared_bytes));
  const int per_kv = p.of.n_heads / p.of.n_kv_heads;
  const int n_tiles = (p.of.n_rows * per_kv + kPairs - 1) / kPairs;
  const dim3 grid(static_cast<unsigned>(p.of.n_kv_heads), static_cast<unsigned>(n_tiles));
  launch(wide_attend_kernel<dims, bf16>, grid, kThreads, Shared::bytes(n_stages), how,
         WideAttendArgs{p, per_kv, n_tiles, n_stages});
}

template <int dims>
void run(const WideAttend& p, const Launch& how) {
  p.of.kv_type == Type::bf16 ? run<dims, true>(p, how) : run<dims, false>(p, how);
}

}  // namespace

void wide_attend(const WideAttend& given, const Launch& how) {
  WideAttend p = given;
  p.by_groups = has_group_attend(p, how);
  const Attend& of = p.of;
  CHECK(of.n_rows >= 1 && of.n_kv_heads > 0 && of.n_heads % of.n_kv_heads == 0 && of.out);
  CHECK(of.head_dim > 0 && of.head_dim % 32 == 0 && of.head_dim <= 256);
  CHECK(2 * of.n_pairs <= of.head_dim && (1 << of.page_shift) >= kPiece);
  CHECK(of.kv_type == Type::f16 || of.kv_type == Type::bf16);
  wide_heads(p, how);
  if (p.by_groups) return group_attend(p, how);
  switch (wide_dims(of.head_dim)) {
    case 64:
      return run<64>(p, how);
    case 128:
      return run<128>(p, how);
    default:
      return run<256>(p, how);
  }
}

}  // namespace sluice::backend::cuda
