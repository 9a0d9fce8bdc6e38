// Split flash decoding over a paged cache of f16 or bf16, with all that stands between the input
// projections and the output projection.
//
// Layout   as in attend.h; a key or value row is head_dim numbers of 2 bytes.
// Mapping  a block is (split, kv head and up to four of its query heads, row). Eight dimensions a
//          lane, so a key takes dims / 8 lanes and a warp has several at once. First the scores of
//          a tile of positions, then their softmax, then the values; tiles by online softmax. The
//          block that ends last adds the splits in their order.
//          Keys and values of this step's own rows are not read from the cache: whoever needs them
//          makes them again from qkv, rounded as they are stored.
// Limits   head_dim % 32 == 0, <= 256; a sequence's rows of a step have consecutive positions.
// Cost     see bench/gpu_kernels and docs/decisions/0011. A split has 128 positions at least, and
//          their number depends on the row's length alone.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/attend.h"
#include "backend/cuda/attend_heads.cuh"
#include "backend/cuda/contract.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/stage_rows.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kTile = 256;        // positions whose scores are kept at once
constexpr int kSplitLeast = 128;  // positions
constexpr int kNewMost = 16;      // rows of one sequence in a step

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
  float q[heads][dims];
  float new_k[kNewMost][dims];
  float new_v[kNewMost][dims];
  float scores[kTile][heads];  // then their exponentials
  float rescale[heads], sum[heads], peak[heads];
  float merged[kWarps][heads][dims];
  bool is_last;
};

// Adds the lanes of a key: afterwards lane l of them has head `owned_head`, if it has one.
template <int lanes, int heads>
struct ScoreSums {
  float v[heads];

  __device__ __forceinline__ int owned_head(int lane) const {
    int head = 0, n = heads;
#pragma unroll
    for (int m = lanes / 2; m > 0; m >>= 1) {
      if (n > 1) n /= 2, head += lane & m ? n : 0;
    }
    return head;
  }
  __device__ __forceinline__ bool owns(int lane) const {
    return lane % (lanes > heads ? lanes / heads : 1) == 0;
  }
  __device__ __forceinline__ float total(int lane) {
    int n = heads;
#pragma unroll
    for (int m = lanes / 2; m > 0; m >>= 1) {
      if (n > 1) {
        n /= 2;
#pragma unroll
        for (int i = 0; i < heads / 2; ++i) {
          if (i < n) {
            const float lower = v[i], upper = v[i + n];
            const float other = __shfl_xor_sync(kAllLanes, lane & m ? lower : upper, m);
            v[i] = __fadd_rn(lane & m ? upper : lower, other);
          }
        }
      } else {
        v[0] = __fadd_rn(v[0], __shfl_xor_sync(kAllLanes, v[0], m));
      }
    }
    return v[0];
  }
};

template <int dims, int heads, bool bf16>
class Block {
 public:
  static constexpr int kLanes = dims / 8;         // of a key
  static constexpr int kAtOnce = kWarp / kLanes;  // keys of a warp
  static constexpr int kAhead = 4;                // loads in flight
  using Shared = SharedData<dims, heads>;

  __device__ __forceinline__ Block(const Attend& p, Shared& s, int first_head, int kv_head, int row)
      : p_(p),
        s_(s),
        first_head_(first_head),
        kv_head_(kv_head),
        row_(row),
        warp_(static_cast<int>(threadIdx.x) / kWarp),
        lane_(static_cast<int>(threadIdx.x) % kWarp),
        position_(__ldcg(p.positions + row)),
        pages_(p.page_table + static_cast<int64_t>(__ldcg(p.sequences + row)) * p.table_stride) {
    while (n_new_ < kNewMost && row_ >= n_new_ &&
           __ldcg(p_.sequences + row_ - n_new_) == __ldcg(p_.sequences + row_)) {
      ++n_new_;
    }
  }

  __device__ __forceinline__ int length() const { return position_ + 1; }

  // The query heads, scaled; and the keys and values of this step that the split holds.
  __device__ __forceinline__ void prepare(const Split& split) {
    const float scale = __fdiv_rn(1.0f, __fsqrt_rn(static_cast<float>(p_.head_dim)));
    for (int item = warp_; item < heads + 2 * n_new_; item += kWarps) {
      if (item < heads) {
        make_query(item, scale);
      } else {
        make_new((item - heads) / 2, item % 2 != heads % 2, split);
      }
    }
    __syncthreads();
  }

  // Asks for the split's first keys and values: they are of earlier steps, so this may be before
  // the wait for the kernel before.
  __device__ __forceinline__ void load_first(const Split& split) {
    load_batch(p_.k, split.first, min(kTile, split.end - split.first), 0, keys_);
    load_batch(p_.v, split.first, min(kTile, split.end - split.first), 0, values_);
  }

  // Positions [first, end) of the split: scores, softmax, values.
  __device__ __forceinline__ void attend(const Split& split, float (&acc)[heads][8]) {
    if (warp_ < heads && lane_ == 0) s_.peak[warp_] = -3.0e38f, s_.sum[warp_] = 0.0f;
    for (int first = split.first; first < split.end; first += kTile) {
      const int n = min(kTile, split.end - first);
      if (first > split.first) {
        load_batch(p_.k, first, n, 0, keys_);
        load_batch(p_.v, first, n, 0, values_);
      }
      score(first, n);
      __syncthreads();
      for (int h = warp_; h < heads; h += kWarps) soften(h, n);
      __syncthreads();
#pragma unroll
      for (int h = 0; h < heads; ++h) {
#pragma unroll
        for (int i = 0; i < 8; ++i) acc[h][i] = __fmul_rn(acc[h][i], s_.rescale[h]);
      }
      add_values(first, n, acc);
      __syncthreads();
    }
  }

  // The block's sums of all warps, in their order; out[h][i] in shared memory (merged[0]).
  __device__ __forceinline__ void merge(float (&acc)[heads][8]) {
#pragma unroll
    for (int h = 0; h < heads; ++h) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int m = kLanes; m < kWarp; m <<= 1) {
          acc[h][i] = __fadd_rn(acc[h][i], __shfl_xor_sync(kAllLanes, acc[h][i], m));
        }
      }
      if (lane_ < kLanes) {
#pragma unroll
        for (int i = 0; i < 8; ++i) s_.merged[warp_][h][8 * lane_ + i] = acc[h][i];
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < heads * dims; i += kThreads) {
      float sum = s_.merged[0][0][i];
      for (int w = 1; w < kWarps; ++w) sum = __fadd_rn(sum, s_.merged[w][0][i]);
      s_.merged[0][0][i] = sum;
    }
    __syncthreads();
  }

 private:
  __device__ __forceinline__ void make_query(int h, float scale) {
    const bool is_real = first_head_ + h < (kv_head_ + 1) * (p_.n_heads / p_.n_kv_heads);
    make_head<dims>(p_, row_, HeadKind::query, is_real ? first_head_ + h : first_head_, s_.q[h],
                    lane_);
    for (int i = lane_; i < dims; i += kWarp) s_.q[h][i] = __fmul_rn(s_.q[h][i], scale);
  }
  // The key or value of `back` rows before.
  __device__ __forceinline__ void make_new(int back, bool is_value, const Split& split) {
    const int at = position_ - back;
    if (at < split.first || at >= split.end) return;
    float* const head = is_value ? s_.new_v[back] : s_.new_k[back];
    make_head<dims>(p_, row_ - back, is_value ? HeadKind::value : HeadKind::key, kv_head_, head,
                    lane_);
    round_and_store(head, back == 0 ? (is_value ? p_.v : p_.k) : nullptr, at);
  }

  // Rounds a head as the cache stores it, and stores it where a cache is given.
  __device__ __forceinline__ void round_and_store(float* head, uint8_t* cache, int position) {
    uint8_t* const out = cache ? cache + row_at(position) : nullptr;
    for (int i = lane_; i < p_.head_dim; i += kWarp) {
      const uint16_t bits = bf16 ? to_bf16(head[i]) : to_f16(head[i]);
      head[i] = bf16 ? __uint_as_float(static_cast<uint32_t>(bits) << 16) : half_bits(bits);
      if (out) reinterpret_cast<uint16_t*>(out)[i] = bits;
    }
    __syncwarp();
  }
  __device__ __forceinline__ int64_t row_at(int position) const {
    const int page = __ldg(pages_ + (position >> p_.page_shift));
    const int tokens = 1 << p_.page_shift;
    return (static_cast<int64_t>(page * p_.n_kv_heads + kv_head_) * tokens +
            (position & (tokens - 1))) *
           p_.head_dim * 2;
  }

  // Eight numbers of a key or value: from the cache, or of this step.
  __device__ __forceinline__ uint4 load(const uint8_t* cache, int position) const {
    const int at = lane_ % kLanes * 8;
    if (position > position_ - n_new_ || at >= p_.head_dim) return {0, 0, 0, 0};
    return __ldcg(reinterpret_cast<const uint4*>(cache + row_at(position) + 2 * at));
  }
  __device__ __forceinline__ void widen(uint4 raw, const float (*fresh)[dims], int position,
                                        float (&out)[8]) const {
    if (position > position_ - n_new_) {
#pragma unroll
      for (int i = 0; i < 8; ++i) out[i] = fresh[position_ - position][lane_ % kLanes * 8 + i];
      return;
    }
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = bf16 ? __uint_as_float(words[i] << 16) : half_bits(words[i] & 0xffffu);
      out[2 * i + 1] = bf16 ? __uint_as_float(words[i] & 0xffff0000u) : half_bits(words[i] >> 16);
    }
  }

  static constexpr int kBatch = kWarps * kAtOnce * kAhead;  // positions
  __device__ __forceinline__ void load_batch(const uint8_t* cache, int first, int n, int base,
                                             uint4 (&raw)[kAhead]) const {
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int at = base + (k * kWarps + warp_) * kAtOnce + lane_ / kLanes;
      raw[k] = at < n ? load(cache, first + at) : uint4{0, 0, 0, 0};
    }
  }

  // use(position - first, eight numbers), for the warp's positions of a tile; raw: the first batch.
  template <typename Use>
  __device__ __forceinline__ void each(const uint8_t* cache, const float (*fresh)[dims], int first,
                                       int n, uint4 (&raw)[kAhead], const Use& use) const {
    const int own = warp_ * kAtOnce + lane_ / kLanes;
    for (int base = 0; base < n; base += kBatch) {
      uint4 next[kAhead];
      load_batch(cache, first, n, base + kBatch, next);
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int start = base + k * kWarps * kAtOnce;
        if (start + warp_ * kAtOnce >= n) break;  // the whole warp
        float x[8] = {};
        const int at = start + own;
        if (at < n) widen(raw[k], fresh, first + at, x);
        use(at, x);
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) raw[k] = next[k];
    }
  }

  __device__ __forceinline__ void score(int first, int n) {
    float q[heads][8];
#pragma unroll
    for (int h = 0; h < heads; ++h) {
#pragma unroll
      for (int i = 0; i < 8; ++i) q[h][i] = s_.q[h][lane_ % kLanes * 8 + i];
    }
    each(p_.k, s_.new_k, first, n, keys_, [&](int at, const float(&k)[8]) {
      ScoreSums<kLanes, heads> sums;
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        float dot = __fmul_rn(q[h][0], k[0]);
#pragma unroll
        for (int i = 1; i < 8; ++i) dot = __fmaf_rn(q[h][i], k[i], dot);
        sums.v[h] = dot;
      }
      const float total = sums.total(lane_);
      if (at < n && sums.owns(lane_)) s_.scores[at][sums.owned_head(lane_)] = total;
    });
  }

  // Scores of head h to exponentials; what was added so far is to be scaled by rescale.
  __device__ __forceinline__ void soften(int h, int n) {
    float peak = s_.peak[h];
    const float before = peak;
    for (int t = lane_; t < n; t += kWarp) peak = fmaxf(peak, s_.scores[t][h]);
    for (int m = 16; m > 0; m >>= 1) peak = fmaxf(peak, __shfl_xor_sync(kAllLanes, peak, m));
    float sum = 0.0f;
    for (int t = lane_; t < n; t += kWarp) {
      const float e = contract_exp(__fsub_rn(s_.scores[t][h], peak));
      s_.scores[t][h] = e;
      sum = __fadd_rn(sum, e);
    }
    sum = warp_sum(sum);
    __syncwarp();  // all lanes have read the peak
    if (lane_ > 0) return;
    const float rescale = contract_exp(__fsub_rn(before, peak));
    s_.rescale[h] = rescale;
    s_.peak[h] = peak;
    s_.sum[h] = __fmaf_rn(s_.sum[h], rescale, sum);
  }

  __device__ __forceinline__ void add_values(int first, int n, float (&acc)[heads][8]) {
    each(p_.v, s_.new_v, first, n, values_, [&](int at, const float(&v)[8]) {
      if (at >= n) return;
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        const float e = s_.scores[at][h];
#pragma unroll
        for (int i = 0; i < 8; ++i) acc[h][i] = __fmaf_rn(e, v[i], acc[h][i]);
      }
    });
  }

  const Attend& p_;
  Shared& s_;
  int first_head_, kv_head_, row_, warp_, lane_, position_;
  const int32_t* pages_;
  int n_new_ = 1;
  uint4 keys_[kAhead], values_[kAhead];
};

// A split's sums for others to add: dims of each head, then its peak and its sum.
__device__ __forceinline__ float* partial_of(const Attend& p, int row, int head, int split) {
  return p.partials +
         ((static_cast<int64_t>(row) * p.n_heads + head) * kMaxSplits + split) * (p.head_dim + 2);
}

// All splits of the block's heads, in their order; the result replaces merged[0].
template <int dims, int heads>
__device__ __forceinline__ void add_splits(const Attend& p, SharedData<dims, heads>& s, int row,
                                           int first_head, int n_heads, int n_splits) {
  // Weights of the splits, a lane to a split; they stand where scores stood.
  auto* const weights = &s.scores[0][0];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int h = static_cast<int>(threadIdx.x) / kWarp; h < n_heads; h += kWarps) {
    const float* const part = partial_of(p, row, first_head + h, min(lane, n_splits - 1));
    const float own_peak = __ldcg(part + p.head_dim), own_sum = __ldcg(part + p.head_dim + 1);
    float peak = own_peak;
    for (int m = 16; m > 0; m >>= 1) peak = fmaxf(peak, __shfl_xor_sync(kAllLanes, peak, m));
    const float weight = lane < n_splits ? contract_exp(__fsub_rn(own_peak, peak)) : 0.0f;
    weights[h * kMaxSplits + lane] = weight;
    const float sum = warp_sum(__fmul_rn(weight, own_sum));
    if (lane == 0) s.sum[h] = sum;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n_heads * p.head_dim; i += kThreads) {
    const int h = i / p.head_dim, d = i % p.head_dim;
    const float* const part = partial_of(p, row, first_head + h, 0) + d;
    float total = 0.0f;
#pragma unroll 8
    for (int k = 0; k < n_splits; ++k) {
      total = __fmaf_rn(weights[h * kMaxSplits + k], __ldcg(part + k * (p.head_dim + 2)), total);
    }
    s.merged[0][h][d] = __fdiv_rn(total, s.sum[h]);
  }
  __syncthreads();
}

template <int dims, int heads>
__device__ __forceinline__ void write_heads(const Attend& p, const SharedData<dims, heads>& s,
                                            int row, int first_head, int n_heads) {
  const int n = n_heads * p.head_dim, column = first_head * p.head_dim;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const auto value = [&](int i) { return s.merged[0][i / p.head_dim][i % p.head_dim]; };
  if (p.out) {
    for (int i = threadIdx.x; i < n; i += kThreads) {
      p.out[static_cast<int64_t>(row) * p.n_heads * p.head_dim + column + i] = value(i);
    }
  }
  if (!p.out_int8) return;
  for (int first = static_cast<int>(threadIdx.x) / kWarp * kSegment; first < n;
       first += kWarps * kSegment) {
    const int at = first + 4 * lane;
    const bool is_in = at < n;
    const float4 v =
        is_in ? float4{value(at), value(at + 1), value(at + 2), value(at + 3)} : float4{0, 0, 0, 0};
    const int64_t block = static_cast<int64_t>(row) * p.out_int8.n_chunks * 8 + (column + at) / 32;
    quantize_segment(v, lane, p.out_int8.q + 32 * block + at % 32, p.out_int8.d + block,
                     p.out_int8.y + block, is_in);
  }
}

template <int dims, int heads, bool bf16>
__global__ void __launch_bounds__(kThreads, dims == 256 ? 1 : 2)
    attend_kernel(const __grid_constant__ Attend p) {
  extern __shared__ __align__(16) uint8_t shared[];
  auto& s = *reinterpret_cast<SharedData<dims, heads>*>(shared);
  const int row = static_cast<int>(blockIdx.z), per_kv = p.n_heads / p.n_kv_heads;
  const int n_parts = (per_kv + heads - 1) / heads;  // blocks of a kv head
  const int kv_head = static_cast<int>(blockIdx.y) / n_parts;
  const int first_head = kv_head * per_kv + static_cast<int>(blockIdx.y) % n_parts * heads;
  const int n_heads = min(heads, (kv_head + 1) * per_kv - first_head);
  let_next_kernel_begin();
  Block<dims, heads, bf16> block(p, s, first_head, kv_head, row);
  const Split split = split_of(block.length(), static_cast<int>(blockIdx.x));
  if (split.index < split.n) block.load_first(split);
  wait_for_previous_kernel();
  if (split.index >= split.n) return;
  block.prepare(split);
  float acc[heads][8] = {};
  block.attend(split, acc);
  block.merge(acc);
  if (split.n == 1) {
    for (int i = threadIdx.x; i < heads * dims; i += kThreads) {
      s.merged[0][0][i] = __fdiv_rn(s.merged[0][0][i], s.sum[i / dims]);
    }
    __syncthreads();
    write_heads(p, s, row, first_head, n_heads);
    return;
  }
  for (int i = threadIdx.x; i < n_heads * p.head_dim; i += kThreads) {
    const int h = i / p.head_dim;
    float* const part = partial_of(p, row, first_head + h, split.index);
    part[i % p.head_dim] = s.merged[0][h][i % p.head_dim];
    if (i % p.head_dim == 0) part[p.head_dim] = s.peak[h], part[p.head_dim + 1] = s.sum[h];
  }
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
  add_splits(p, s, row, first_head, n_heads, split.n);
  write_heads(p, s, row, first_head, n_heads);
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
  const int per_kv = p.n_heads / p.n_kv_heads;
  if (per_kv == 1) {
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
