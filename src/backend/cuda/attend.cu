// Split flash decoding over a paged cache of f16 or bf16, with all that stands between the input
// projections and the output projection.
//
// Layout   as in attend.h; a key or value row is head_dim numbers of 2 bytes.
// Mapping  a block is (split, a kv head and one or four of its query heads, row). Eight dimensions
//          a lane, so a key takes dims / 8 lanes, and a warp has several keys at once. Each such
//          group of lanes has an online softmax of its own over its positions, a tile of them at a
//          time; they are merged at the end, within a warp by shuffles, then between warps. The
//          block that ends last adds the splits in their order. Neither the heads of a block nor
//          the other rows change a head's order of sums.
//          Keys and values of earlier steps are copied to shared memory before the wait for the
//          kernel before, two tiles ahead; a thread copies what it will read, so there is no
//          barrier. Those of this step's own rows are not read from the cache: whoever needs them
//          makes them again from qkv, rounded as they are stored.
// Limits   head_dim % 32 == 0, <= 256; a sequence's rows of a step have consecutive positions.
// Cost     see bench/gpu_kernels and docs/decisions/0011. A split has 128 positions at least, and
//          their number depends on the row's length alone.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/attend.h"
#include "backend/cuda/attend_heads.h"
#include "backend/cuda/attend_parts.h"
#include "backend/cuda/contract.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/stage_rows.h"
#include "backend/cuda/warp.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kSplitLeast = 128;  // positions
constexpr int kNewMost = 16;      // rows of one sequence in a step
constexpr int kKeys = 4;          // of a lane in a tile
constexpr int kStages = 2;        // tiles in shared memory
// Up to so many positions of all rows together a block has one head: more blocks, less work each.
constexpr int kOneHeadPositions = 2048;

// What part of a row's positions a block sees.
struct Split {
  int n, index, first, end;
};
// Of rows that are not longer than this.
constexpr int most_splits(int length) {
  const int wanted = (length + kSplitLeast - 1) / kSplitLeast;
  return wanted < kMaxSplits ? wanted : kMaxSplits;
}
__device__ __forceinline__ Split split_of(int length, int index) {
  const int wanted = most_splits(length);
  const int size = ((length + wanted - 1) / wanted + 7) / 8 * 8;
  return {(length + size - 1) / size, index, index * size, min(length, (index + 1) * size)};
}

template <int dims, int heads>
struct SharedData {
  uint4 tiles[kStages][2][kKeys][kThreads];  // keys, values
  float q[heads][dims];
  float turned[kWarps][dims];          // a warp's head, before it is rounded
  uint4 fresh[kNewMost][2][dims / 8];  // keys and values of this step, as they are stored
  float merged[kWarps][heads][dims];
  float peak[kWarps][heads], sum[kWarps][heads];
  bool is_last;
};

// 16 bytes to shared memory, later. All that was asked for before the last commit but `pending`
// ones is there behind the wait.
__device__ __forceinline__ void copy_16(uint4* to, const uint8_t* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
#else
  *to = __ldcg(reinterpret_cast<const uint4*>(from));
#endif
}
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int pending>
__device__ __forceinline__ void await_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

// A split's sums for others to add: head_dim sums of a head, then its peak and its sum.
__device__ __forceinline__ float* partial_of(const Attend& p, int row, int head, int split) {
  return p.partials +
         ((static_cast<int64_t>(row) * p.n_heads + head) * kMaxSplits + split) * (p.head_dim + 4);
}

template <int dims, int heads, bool bf16>
class Block {
 public:
  static constexpr int kLanes = dims / 8;         // of a key
  static constexpr int kAtOnce = kWarp / kLanes;  // keys of a warp
  static constexpr int kTile = kKeys * kWarps * kAtOnce;
  using Shared = SharedData<dims, heads>;

  __device__ __forceinline__ Block(const Attend& p, Shared& s, int first_head, int kv_head, int row)
      : p_(p),
        s_(s),
        first_head_(first_head),
        kv_head_(kv_head),
        row_(row),
        warp_(warp_index()),
        lane_(lane_index()),
        position_(__ldcg(p.positions + row)) {
    const int sequence = __ldcg(p.sequences + row);
    pages_ = p.page_table + static_cast<int64_t>(sequence) * p.table_stride;
#pragma unroll 1
    while (n_new_ < kNewMost && row_ >= n_new_ &&
           __ldcg(p_.sequences + row_ - n_new_) == sequence) {
      ++n_new_;
    }
  }

  __device__ __forceinline__ int length() const { return position_ + 1; }

  // Asks for a tile's keys and values of earlier steps: may be before the wait. What there is none
  // of is zero.
  __device__ __forceinline__ void ask(const Split& split, int tile) {
    const int at = lane_ % kLanes * 8;
#pragma unroll
    for (int k = 0; k < kKeys; ++k) {
      const int position = position_of(split, tile, k);
      uint4* const to = &s_.tiles[tile % kStages][0][k][threadIdx.x];
      if (position >= split.end || at >= p_.head_dim) {
        to[0] = to[kKeys * kThreads] = {0, 0, 0, 0};
      } else if (!is_new(position)) {
        const int64_t from = row_at(position) + 2 * at;
        copy_16(to, p_.k + from);
        copy_16(to + kKeys * kThreads, p_.v + from);
      }
    }
    commit_copies();
  }

  // The query heads, scaled; and the keys and values of this step that the split holds.
  __device__ __forceinline__ void prepare(const Split& split) {
    const float scale = __fdiv_rn(1.0f, __fsqrt_rn(static_cast<float>(p_.head_dim)));
    const int per_kv = p_.n_heads / p_.n_kv_heads;
#pragma unroll 1
    for (int item = warp_; item < heads + 2 * n_new_; item += kWarps) {
      const int back = item < heads ? 0 : (item - heads) / 2, at = position_ - back;
      const HeadKind kind = item < heads              ? HeadKind::query
                            : (item - heads) % 2 == 0 ? HeadKind::key
                                                      : HeadKind::value;
      if (kind != HeadKind::query && (at < split.first || at >= split.end)) continue;
      const int wanted = first_head_ + item;
      const int head = kind != HeadKind::query            ? kv_head_
                       : wanted < (kv_head_ + 1) * per_kv ? wanted
                                                          : first_head_;
      float* const out = kind == HeadKind::query ? s_.q[item] : s_.turned[warp_];
      make_head<dims>(p_, row_ - back, kind, head, out);
      if (kind == HeadKind::query) {
#pragma unroll
        for (int i = 0; i < dims; i += kWarp) out[i + lane_] = __fmul_rn(out[i + lane_], scale);
      } else {
        const bool stores = back == 0 && first_head_ == kv_head_ * per_kv;
        const int which = kind == HeadKind::value;
        round_and_store(out, s_.fresh[back][which], stores ? (which ? p_.v : p_.k) : nullptr, at);
      }
    }
    __syncthreads();
  }

  // Before the first tile.
  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      const auto* const q = reinterpret_cast<const float4*>(s_.q[h] + lane_ % kLanes * 8);
      *reinterpret_cast<float4*>(q_[h]) = q[0];
      *reinterpret_cast<float4*>(q_[h] + 4) = q[1];
      peak_[h] = kNoPeak, sum_[h] = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i) acc_[h][i] = 0.0f;
    }
  }

  __device__ __forceinline__ void add_tile(const Split& split, int tile) {
    float scores[heads][kKeys], key[8], value[8];
#pragma unroll
    for (int k = 0; k < kKeys; ++k) {
      widen(split, tile, k, 0, key);
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        float dot = __fmul_rn(q_[h][0], key[0]);
#pragma unroll
        for (int i = 1; i < 8; ++i) dot = __fmaf_rn(q_[h][i], key[i], dot);
#pragma unroll
        for (int m = kLanes / 2; m > 0; m >>= 1) {
          dot = __fadd_rn(dot, __shfl_xor_sync(kAllLanes, dot, m));
        }
        scores[h][k] = position_of(split, tile, k) < split.end ? dot : kNoPeak;
      }
    }
#pragma unroll
    for (int h = 0; h < heads; ++h) soften(h, scores[h]);
#pragma unroll
    for (int k = 0; k < kKeys; ++k) {
      widen(split, tile, k, 1, value);
#pragma unroll
      for (int h = 0; h < heads; ++h) {
#pragma unroll
        for (int i = 0; i < 8; ++i) acc_[h][i] = __fmaf_rn(scores[h][k], value[i], acc_[h][i]);
      }
    }
  }

  // The groups of lanes of each warp, then into shared memory. Ends with a barrier.
  __device__ __forceinline__ void merge() {
#pragma unroll
    for (int h = 0; h < heads; ++h) {
#pragma unroll
      for (int m = kLanes; m < kWarp; m <<= 1) {
        const float peak = fmaxf(peak_[h], __shfl_xor_sync(kAllLanes, peak_[h], m));
        const float scale = contract_exp(__fsub_rn(peak_[h], peak));
        const auto both = [&](float v) {
          v = __fmul_rn(v, scale);
          return __fadd_rn(v, __shfl_xor_sync(kAllLanes, v, m));
        };
        peak_[h] = peak;
        sum_[h] = both(sum_[h]);
#pragma unroll
        for (int i = 0; i < 8; ++i) acc_[h][i] = both(acc_[h][i]);
      }
      if (lane_ < kLanes) {
        auto* const out = reinterpret_cast<float4*>(s_.merged[warp_][h] + 8 * lane_);
        out[0] = {acc_[h][0], acc_[h][1], acc_[h][2], acc_[h][3]};
        out[1] = {acc_[h][4], acc_[h][5], acc_[h][6], acc_[h][7]};
      }
      if (lane_ == 0) s_.peak[warp_][h] = peak_[h], s_.sum[warp_][h] = sum_[h];
    }
    __syncthreads();
  }

 private:
  __device__ __forceinline__ int position_of(const Split& split, int tile, int k) const {
    return split.first + tile * kTile + (k * kWarps + warp_) * kAtOnce + lane_ / kLanes;
  }
  __device__ __forceinline__ bool is_new(int position) const {
    return position > position_ - n_new_;
  }
  __device__ __forceinline__ int64_t row_at(int position) const {
    const int page = __ldg(pages_ + (position >> p_.page_shift));
    const int tokens = 1 << p_.page_shift;
    return (static_cast<int64_t>(page * p_.n_kv_heads + kv_head_) * tokens +
            (position & (tokens - 1))) *
           p_.head_dim * 2;
  }

  // Rounds a head as the cache stores it, and stores it where a cache is given.
  __device__ __forceinline__ void round_and_store(const float* head, uint4* rounded, uint8_t* cache,
                                                  int position) {
    uint8_t* const out = cache ? cache + row_at(position) : nullptr;
    round_head<dims, bf16>(head, p_.head_dim, reinterpret_cast<uint16_t*>(rounded),
                           reinterpret_cast<uint16_t*>(out));
  }

  // Eight numbers of a key (0) or value (1); zero where the position is behind the split.
  __device__ __forceinline__ void widen(const Split& split, int tile, int k, int which,
                                        float (&out)[8]) const {
    const int position = position_of(split, tile, k);
    const bool is_fresh = is_new(position) && position < split.end;
    const uint4 raw = *(is_fresh ? &s_.fresh[position_ - position][which][lane_ % kLanes]
                                 : &s_.tiles[tile % kStages][which][k][threadIdx.x]);
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = bf16 ? __uint_as_float(words[i] << 16) : half_bits(words[i] & 0xffffu);
      out[2 * i + 1] = bf16 ? __uint_as_float(words[i] & 0xffff0000u) : half_bits(words[i] >> 16);
    }
  }

  // A tile's scores of head h to exponentials; what was added so far is scaled.
  __device__ __forceinline__ void soften(int h, float (&scores)[kKeys]) {
    float peak = peak_[h];
#pragma unroll
    for (int k = 0; k < kKeys; ++k) peak = fmaxf(peak, scores[k]);
    const float rescale = contract_exp(__fsub_rn(peak_[h], peak));
    peak_[h] = peak;
    sum_[h] = __fmul_rn(sum_[h], rescale);
#pragma unroll
    for (int k = 0; k < kKeys; ++k) {
      scores[k] = scores[k] == kNoPeak ? 0.0f : contract_exp(__fsub_rn(scores[k], peak));
      sum_[h] = __fadd_rn(sum_[h], scores[k]);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) acc_[h][i] = __fmul_rn(acc_[h][i], rescale);
  }

  const Attend& p_;
  Shared& s_;
  int first_head_, kv_head_, row_, warp_, lane_, position_;
  const int32_t* pages_;
  int n_new_ = 1;
  float q_[heads][8], acc_[heads][8], peak_[heads], sum_[heads];
};

// Four values of a head, final: to f32, to int8, or both. By a whole warp.
__device__ __forceinline__ void write_four(const Attend& p, int row, int head, int at, float4 v) {
  const int column = head * p.head_dim + at;
  const bool is_in = at < p.head_dim;
  if (p.out && is_in) {
    *reinterpret_cast<float4*>(p.out + static_cast<int64_t>(row) * p.n_heads * p.head_dim +
                               column) = v;
  }
  if (!p.out_int8) return;
  const int64_t block = static_cast<int64_t>(row) * p.out_int8.n_chunks * 8 + column / 32;
  quantize_segment({is_in ? v : float4{0, 0, 0, 0}},
                   {{p.out_int8.q + 32 * block + column % 32, p.out_int8.d + block,
                     p.out_int8.y + block, is_in}});
}

// What the block's warps have of head h, by one warp: the result if there is one split, or a part.
template <int dims, int heads>
__device__ __forceinline__ void end_head(const Attend& p, const SharedData<dims, heads>& s, int row,
                                         int head, int h, const Split& split, int lane) {
  const int from = min(lane, kWarps - 1);
  const PartWeights all({s.peak[from][h]}, {s.sum[from][h]}, kWarps);
#pragma unroll 1
  for (int at = 4 * lane; at - 4 * lane < p.head_dim; at += kSegment) {
    const bool is_in = at < p.head_dim;
    float4 total{0, 0, 0, 0};
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float weight = from_lane(all.weight, w);
      if (is_in) add_scaled(total, weight, *reinterpret_cast<const float4*>(s.merged[w][h] + at));
    }
    if (split.n == 1) {
      write_four(p, row, head, at, divided(total, all.sum.value));
    } else if (is_in) {
      *reinterpret_cast<float4*>(partial_of(p, row, head, split.index) + at) = total;
    }
  }
  if (split.n > 1 && lane == 0) {
    float* const part = partial_of(p, row, head, split.index) + p.head_dim;
    part[0] = all.peak.value, part[1] = all.sum.value;
  }
}

// All splits of a head, in their order, by one warp.
__device__ __forceinline__ void add_splits(const Attend& p, int row, int head, int n_splits,
                                           int lane) {
  const float* const own = partial_of(p, row, head, min(lane, n_splits - 1)) + p.head_dim;
  const PartWeights all({__ldcg(own)}, {__ldcg(own + 1)}, n_splits);
  const float* const part = partial_of(p, row, head, 0);
#pragma unroll 1
  for (int at = 4 * lane; at - 4 * lane < p.head_dim; at += kSegment) {
    const int from = min(at, p.head_dim - 4);
    float4 total{0, 0, 0, 0};
#pragma unroll 8
    for (int k = 0; k < n_splits; ++k) {
      const float weight = from_lane(all.weight, k);
      add_scaled(total, weight, load_past_l1(part + k * (p.head_dim + 4) + from));
    }
    write_four(p, row, head, at, divided(total, all.sum.value));
  }
}

template <int dims, int heads, bool bf16>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(dims == 256 && heads > 1 ? 1 : 2))
    attend_kernel(const __grid_constant__ Attend p) {
  extern __shared__ __align__(16) uint8_t shared[];
  auto& s = *reinterpret_cast<SharedData<dims, heads>*>(shared);
  const int warp = warp_index(), lane = lane_index();
  const int row = static_cast<int>(blockIdx.z), per_kv = p.n_heads / p.n_kv_heads;
  const int n_parts = (per_kv + heads - 1) / heads;  // blocks of a kv head
  const int kv_head = static_cast<int>(blockIdx.y) / n_parts;
  const int first_head = kv_head * per_kv + static_cast<int>(blockIdx.y) % n_parts * heads;
  const int n_heads = min(heads, (kv_head + 1) * per_kv - first_head);
  let_next_kernel_begin();
  Block<dims, heads, bf16> block(p, s, first_head, kv_head, row);
  const Split split = split_of(block.length(), static_cast<int>(blockIdx.x));
  // Tile i is asked for, and tile i - kStages added. (One loop, so that there is one copy of the
  // code: it is cold.)
#pragma unroll 1
  for (int i = 0; i < kStages || split.first + (i - kStages) * block.kTile < split.end; ++i) {
    if (i == kStages) {
      wait_for_previous_kernel();
      block.prepare(split);
      block.begin();
    }
    if (i >= kStages) {
      await_copies<kStages - 1>();
      block.add_tile(split, i - kStages);
    }
    block.ask(split, i);
  }
  if (split.index >= split.n) {
    wait_for_previous_kernel();
    return;
  }
  block.merge();
#pragma unroll 1
  for (int h = warp; h < n_heads; h += kWarps) {
    end_head(p, s, row, first_head + h, h, split, lane);
  }
  if (split.n == 1) return;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned* const n_done = p.n_done + row * p.n_heads + first_head;
    s.is_last = atomicAdd(n_done, 1u) == static_cast<unsigned>(split.n) - 1;
    if (s.is_last) *n_done = 0;
  }
  __syncthreads();
  if (!s.is_last) return;
  __threadfence();
#pragma unroll 1
  for (int h = warp; h < n_heads; h += kWarps) add_splits(p, row, first_head + h, split.n, lane);
}

template <int dims, int heads>
void run(const Attend& p, const Launch& how) {
  const int per_kv = p.n_heads / p.n_kv_heads;
  const auto n_splits = static_cast<unsigned>(most_splits(p.max_length));
  const dim3 grid(n_splits, static_cast<unsigned>(p.n_kv_heads * ((per_kv + heads - 1) / heads)),
                  static_cast<unsigned>(p.n_rows));
  constexpr size_t kBytes = sizeof(SharedData<dims, heads>);
  CHECK(kBytes <= static_cast<size_t>(how.shared_bytes));
  if (p.kv_type == quant::Type::bf16) {
    launch(attend_kernel<dims, heads, true>, grid, kThreads, kBytes, how, p);
  } else {
    launch(attend_kernel<dims, heads, false>, grid, kThreads, kBytes, how, p);
  }
}

template <int dims>
void run_heads(const Attend& p, const Launch& how) {
  if (p.n_heads == p.n_kv_heads || p.n_rows * p.max_length <= kOneHeadPositions) {
    run<dims, 1>(p, how);
  } else {
    run<dims, 4>(p, how);
  }
}

}  // namespace

void attend(const Attend& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_rows <= 16 && p.n_kv_heads > 0 && p.n_heads % p.n_kv_heads == 0);
  CHECK(p.head_dim % 32 == 0 && p.head_dim > 0 && p.head_dim <= 256);
  CHECK(2 * p.n_pairs <= p.head_dim && p.page_shift >= 0);
  CHECK(p.kv_type == quant::Type::f16 || p.kv_type == quant::Type::bf16);
  CHECK(p.out || p.out_int8);
  CHECK(p.max_length > 0);
  if (p.head_dim <= 64) {
    run_heads<64>(p, how);
  } else if (p.head_dim <= 128) {
    run_heads<128>(p, how);
  } else {
    run_heads<256>(p, how);
  }
}

}  // namespace sluice::backend::cuda
