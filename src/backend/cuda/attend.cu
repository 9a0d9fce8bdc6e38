// Split flash decoding over a paged cache of f16 or bf16, with all that stands between the input
// projections and the output projection.
//
// Layout   as in attend.h; a key or value row is head_dim numbers of 2 bytes.
// Mapping  a block is (split, a kv head and up to eight of its query heads, row). A warp takes
//          sixteen positions of a tile for all heads by tensor cores (attend_pass.h), with a
//          softmax of its own; the warps are merged at the end, and the splits are added in their
//          order: where all blocks have room on the card at once they wait for each other and
//          share that (meeting.cuh), else the block that ends last does it. A row's order of sums
//          depends on its length alone. Keys and values of earlier steps are copied to shared
//          memory before the wait for the kernel before, two tiles ahead; a warp copies what it
//          will read, so there is no barrier. Those of this step's own rows are not read from the
//          cache: whoever needs them makes them again from qkv, rounded as they are stored.
// Limits   head_dim % 32 == 0, <= 256; pages of 16 positions and more; a sequence's rows of a step
//          have consecutive positions. A split has 128 positions at least, and their number
//          depends on the row's length alone.
// Cost     see bench/gpu_kernels and docs/decisions/0017.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/async_copy.cuh"
#include "backend/cuda/attend.h"
#include "backend/cuda/attend_end.cuh"
#include "backend/cuda/attend_heads.h"
#include "backend/cuda/attend_parts.h"
#include "backend/cuda/attend_pass.h"
#include "backend/cuda/contract.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/meeting.cuh"
#include "backend/cuda/warp.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

// With ten warps eight query heads, a key and a value are made at once; but heads of 256 need more
// registers than ten warps could have. Four are for cards whose blocks have less shared memory.
template <int dims>
constexpr int kMostWarps = dims == 256 ? 8 : 10;
constexpr int kFewWarps = 4;
constexpr int kSplitLeast = 128;  // positions
constexpr int kNewMost = 16;      // rows of one sequence in a step
constexpr int kMostStages = 2;    // tiles in shared memory: 1 or 2

// What part of a row's positions a block sees.
struct Split {
  int size, index, first, end;

  __device__ __forceinline__ bool is_all(int length) const { return size >= length; }
};
// Of rows that are not longer than this.
constexpr int most_splits(int length) {
  const int wanted = (length + kSplitLeast - 1) / kSplitLeast;
  return wanted < kMaxSplits ? wanted : kMaxSplits;
}
__host__ __device__ __forceinline__ int split_size(int length) {
  const int wanted = most_splits(length);
  return ((length + wanted - 1) / wanted + kPositionsAtOnce - 1) / kPositionsAtOnce *
         kPositionsAtOnce;
}
__device__ __forceinline__ Split split_of(int length, int index) {
  const int size = split_size(length);
  return {size, index, index * size, min(length, (index + 1) * size)};
}

struct AttendArgs {
  Attend p;
  int n_stages;
  int per_kv;   // query heads of a kv head
  int n_parts;  // blocks of a kv head
  bool shares;  // there is room for all blocks at once: they add splits together
};
static_assert(kMaxSplits <= kMostMeeting);

template <int dims, bool bf16, int warps>
struct SharedData {
  Queries<dims, bf16> queries;
  float turned[warps][dims];           // a warp's head, before it is rounded
  uint4 fresh[kNewMost][2][dims / 8];  // keys and values of this step, as they are stored
  float peak[warps][kHeadsAtOnce], sum[warps][kHeadsAtOnce];
  uint32_t shares;  // splits whose share of adding is the block's, a bit each
  // Stages of tiles; behind the last tile, the warps' sums of values.
  union Tile {
    KeysAndValues<dims> of[warps];
    float merged[warps][kHeadsAtOnce * dims];
  };
  alignas(16) Tile tiles[1];

  static constexpr size_t bytes(int n_stages) {
    return sizeof(SharedData) + static_cast<size_t>(n_stages - 1) * sizeof(Tile);
  }
};

template <int dims, bool bf16, int warps>
class Block {
 public:
  using Shared = SharedData<dims, bf16, warps>;

  __device__ __forceinline__ Block(const AttendArgs& a, Shared& s, int first_head, int kv_head,
                                   int row)
      : p_(a.p),
        n_stages_(a.n_stages),
        per_kv_(a.per_kv),
        s_(s),
        first_head_(first_head),
        kv_head_(kv_head),
        row_(row),
        warp_(warp_index()),
        lane_(lane_index()),
        position_(__ldcg(a.p.positions + row)) {
    const int sequence = __ldcg(p_.sequences + row);
    pages_ = p_.page_table + static_cast<int64_t>(sequence) * p_.table_stride;
#pragma unroll 1
    while (n_new_ < kNewMost && row_ >= n_new_ &&
           __ldcg(p_.sequences + row_ - n_new_) == sequence) {
      ++n_new_;
    }
    if (p_.head_dim < dims) {  // columns that nobody copies
#pragma unroll 1
      for (int i = 0; i < a.n_stages; ++i)
        clear(&s.tiles[i].of[warp_], sizeof(KeysAndValues<dims>));
      __syncwarp();
    }
  }

  __device__ __forceinline__ int length() const { return position_ + 1; }

  // Asks for a tile's keys and values of earlier steps: may be before the wait. Sixteen positions
  // stand side by side in a page. Memory of positions that there are none of is in the page too,
  // and is cleared once it is there.
  __device__ __forceinline__ void ask(const Split& split, int tile) {
    const int first = first_of(split, tile);
    if (first < split.end) {
      const int64_t at = row_at(first) + 16 * lane_;
      KeysAndValues<dims>& kv = tile_of(tile);
      const int per_row = p_.head_dim / 8, n = kPositionsAtOnce * per_row / kWarp;
      if (p_.head_dim == dims) {  // no division
        constexpr int kRow = dims / 8, kAll = kPositionsAtOnce * kRow / kWarp;
        const int row = lane_ / kRow, column = lane_ % kRow * 16;
        constexpr int kRows = kWarp / kRow;
#pragma unroll
        for (int i = 0; i < kAll; ++i) {
          copy_16(kv.keys[row + kRows * i] + column, p_.k + at + 16 * kWarp * i);
        }
#pragma unroll
        for (int i = 0; i < kAll; ++i) {
          copy_16(kv.values[row + kRows * i] + column, p_.v + at + 16 * kWarp * i);
        }
      } else {
#pragma unroll 1
        for (int i = 0; i < n; ++i) {
          const int piece = lane_ + kWarp * i, row = piece / per_row;
          const int column = 16 * (piece - row * per_row);
          copy_16(kv.keys[row] + column, p_.k + at + 16 * kWarp * i);
          copy_16(kv.values[row] + column, p_.v + at + 16 * kWarp * i);
        }
      }
    }
    end_group();
  }

  // The query heads, scaled; and the keys and values of this step that the split holds. Waits for
  // the kernel before.
  __device__ __forceinline__ void prepare(const Split& split) {
    const float scale = __fdiv_rn(1.0f, __fsqrt_rn(static_cast<float>(p_.head_dim)));
#pragma unroll 1
    for (int item = warp_; item < n_items(); item += warps) {
      HeadMaker<dims> maker = maker_of(item);
      if (item == warp_) wait_for_previous_kernel();
      maker.read(p_);
      make(split, item, scale, maker);
    }
    __syncthreads();
    pass_.begin();
  }

  __device__ __forceinline__ void add_tile(const Split& split, int tile) {
    const int first = first_of(split, tile);
    if (first >= split.end) return;
    if (n_stages_ == kMostStages) {
      await_groups<kMostStages - 1>();
    } else {
      await_groups<0>();
    }
    __syncwarp();
    if (is_new(min(first + kPositionsAtOnce, split.end) - 1)) copy_fresh(split, tile);
    if (split.end - first < kPositionsAtOnce) clear_behind(split, tile);
    pass_.add(s_.queries, tile_of(tile), split.end - first);
    __syncwarp();
  }

  // Into shared memory, over the tiles. Ends with a barrier.
  __device__ __forceinline__ void merge() {
    await_groups<0>();
    __syncthreads();
    pass_.write(s_.tiles[0].merged[warp_], s_.peak[warp_], s_.sum[warp_]);
    __syncthreads();
  }

 private:
  // Items are the query heads, then a key and a value of each of this step's rows, the last first.
  __device__ __forceinline__ int n_items() const { return kHeadsAtOnce + 2 * n_new_; }
  static __device__ __forceinline__ HeadKind kind_of(int item) {
    return item < kHeadsAtOnce ? HeadKind::query : item % 2 ? HeadKind::value : HeadKind::key;
  }
  static __device__ __forceinline__ int back_of(int item) {
    return max(item - kHeadsAtOnce, 0) / 2;
  }
  __device__ __forceinline__ HeadMaker<dims> maker_of(int item) const {
    const HeadKind kind = kind_of(item);
    const int wanted = first_head_ + item, end = (kv_head_ + 1) * per_kv_;
    const int head = kind != HeadKind::query ? kv_head_ : min(wanted, end - 1);
    return {p_, row_ - back_of(item), kind, head};
  }
  __device__ __forceinline__ void make(const Split& split, int item, float scale,
                                       const HeadMaker<dims>& maker) {
    const HeadKind kind = kind_of(item);
    const int back = back_of(item), at = position_ - back;
    if (kind != HeadKind::query && (at < split.first || at >= split.end)) return;
    float* const out = s_.turned[warp_];
    maker.write(p_, out);
    if (kind == HeadKind::query) {
      s_.queries.set(out, scale, item);
    } else {
      const bool stores = back == 0 && first_head_ == kv_head_ * per_kv_;
      const int which = kind == HeadKind::value;
      round_and_store(out, s_.fresh[back][which], stores ? (which ? p_.v : p_.k) : nullptr, at);
    }
    __syncwarp();
  }

  // The warp's first position of a tile.
  __device__ __forceinline__ int first_of(const Split& split, int tile) const {
    return split.first + tile * warps * kPositionsAtOnce + warp_ * kPositionsAtOnce;
  }
  __device__ __forceinline__ int stage_of(int tile) const { return tile & (n_stages_ - 1); }
  // The warp's part of a tile.
  __device__ __forceinline__ KeysAndValues<dims>& tile_of(int tile) const {
    return s_.tiles[stage_of(tile)].of[warp_];
  }
  __device__ __forceinline__ void clear(void* what, size_t n_bytes) const {
    auto* const words = static_cast<uint4*>(what);
#pragma unroll 1
    for (unsigned i = lane_; i < n_bytes / 16; i += kWarp) words[i] = {0, 0, 0, 0};
  }
  // Values behind the split's end count by 0, so they must be numbers. (Keys' scores are not used.)
  __device__ __forceinline__ void clear_behind(const Split& split, int tile) const {
#pragma unroll 1
    for (int at = split.end - first_of(split, tile); at < kPositionsAtOnce; ++at) {
      clear(tile_of(tile).values[at], 2 * dims);
    }
    __syncwarp();
  }
  // This step's keys and values into the tile.
  __device__ __forceinline__ void copy_fresh(const Split& split, int tile) const {
    const int first = first_of(split, tile);
#pragma unroll 1
    for (int at = max(0, position_ - n_new_ + 1 - first);
         at < kPositionsAtOnce && first + at < split.end; ++at) {
      const auto& from = s_.fresh[position_ - first - at];
      KeysAndValues<dims>& kv = tile_of(tile);
      if (lane_ < dims / 8) {
        reinterpret_cast<uint4*>(kv.keys[at])[lane_] = from[0][lane_];
        reinterpret_cast<uint4*>(kv.values[at])[lane_] = from[1][lane_];
      }
    }
    __syncwarp();
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

  const Attend& p_;
  const int n_stages_, per_kv_;
  Shared& s_;
  int first_head_, kv_head_, row_, warp_, lane_, position_;
  const int32_t* pages_;
  int n_new_ = 1;
  AttendPass<dims, bf16> pass_;
};

// What the block's warps have of head h, by one warp: the result if there is one split, or a part.
template <int dims, bool bf16, int warps>
__device__ __forceinline__ void end_head(const Attend& p, const SharedData<dims, bf16, warps>& s,
                                         int row, int head, int h, bool is_all, int split,
                                         int lane) {
  const int from = min(lane, warps - 1);
  const PartWeights all({s.peak[from][h]}, {s.sum[from][h]}, warps);
#pragma unroll 1
  for (int at = 4 * lane; at - 4 * lane < p.head_dim; at += kSegment) {
    const bool is_in = at < p.head_dim;
    float4 total{0, 0, 0, 0};
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      const float weight = from_lane(all.weight, w);
      if (is_in) {
        add_scaled(total, weight,
                   *reinterpret_cast<const float4*>(s.tiles[0].merged[w] + merged_at<dims>(h, at)));
      }
    }
    if (is_all) {
      write_four(p, row, head, at, divided(total, all.sum.value));
    } else if (is_in) {
      *reinterpret_cast<float4*>(partial_of(p, row, head, split) + at) = total;
    }
  }
  if (!is_all && lane == 0) {
    float* const part = partial_of(p, row, head, split) + p.head_dim;
    part[0] = all.peak.value, part[1] = all.sum.value;
  }
}

template <int dims, bool bf16, int warps>
__global__ void __launch_bounds__(warps* kWarp, 1)
    attend_kernel(const __grid_constant__ AttendArgs a) {
  extern __shared__ __align__(16) uint8_t shared[];
  auto& s = *reinterpret_cast<SharedData<dims, bf16, warps>*>(shared);
  const Attend& p = a.p;
  const int warp = warp_index(), lane = lane_index();
  const int row = static_cast<int>(blockIdx.z);
  const int kv_head =
      a.n_parts == 1 ? static_cast<int>(blockIdx.y) : static_cast<int>(blockIdx.y) / a.n_parts;
  const int part = static_cast<int>(blockIdx.y) - kv_head * a.n_parts;
  const int first_head = kv_head * a.per_kv + part * kHeadsAtOnce;
  const int n_heads = min(kHeadsAtOnce, a.per_kv - part * kHeadsAtOnce);
  let_next_kernel_begin();
  if (p.n_live && row >= __ldcg(p.n_live)) {
    wait_for_previous_kernel();
    if (blockIdx.x == 0) write_zeros(p, row, first_head, n_heads);
    return;
  }
  Block<dims, bf16, warps> block(a, s, first_head, kv_head, row);
  const Split split = split_of(block.length(), static_cast<int>(blockIdx.x));
  // Tile i is asked for, and tile i - n_stages added. (One loop, so that there is one copy of the
  // code: it is cold.)
#pragma unroll 1
  for (int i = 0;
       i < a.n_stages || split.first + (i - a.n_stages) * warps * kPositionsAtOnce < split.end;
       ++i) {
    if (i == a.n_stages) block.prepare(split);
    if (i >= a.n_stages) block.add_tile(split, i - a.n_stages);
    block.ask(split, i);
  }
  if (split.first >= split.end) {
    wait_for_previous_kernel();
    return;
  }
  const bool is_all = split.is_all(block.length());
  block.merge();
#pragma unroll 1
  for (int h = warp; h < n_heads; h += warps) {
    end_head(p, s, row, first_head + h, h, is_all, split.index, lane);
  }
  if (is_all) return;
  const int n_splits = (block.length() + split.size - 1) / split.size;
  // The barriers hand the block's writes to one thread's fence, and what it saw to the others.
  __syncthreads();
  if (threadIdx.x == 0) {
    s.shares = meet_blocks(p.met + row * p.n_heads + first_head, split.index, n_splits,
                           a.shares ? p.most_polls : -1);
  }
  __syncthreads();
  uint32_t shares = s.shares;
  if (!a.shares) {
    if (shares == 0) return;
#pragma unroll 1
    for (int h = warp; h < n_heads; h += warps) add_splits(p, row, first_head + h, n_splits, lane);
    return;
  }
  // Few splits leave each block several heads, many of them not one.
  const int per_head = n_splits > kFewSplits ? p.head_dim / kBlockColumns : 1;
#pragma unroll 1
  for (; shares != 0; shares &= shares - 1) {
    const int own = first_bit(shares);
#pragma unroll 1
    for (int i = own + n_splits * warp; i < n_heads * per_head; i += n_splits * warps) {
      const int h = i / per_head, head = first_head + h;
      if (n_splits > kFewSplits) {
        add_block_of_splits(p, row, head, (i - h * per_head) * kBlockColumns, n_splits, lane);
      } else {
        add_few_splits(p, row, head, n_splits, lane);
      }
    }
  }
}

// Whether there is shared memory for it.
template <int dims, bool bf16, int warps>
bool run(const Attend& p, const Launch& how) {
  using Shared = SharedData<dims, bf16, warps>;
  const auto fits = [&](int n) {
    return Shared::bytes(n) <= static_cast<size_t>(how.shared_bytes);
  };
  if (!fits(1)) return false;
  // Two stages where a split can have two tiles, and they fit.
  const int n_stages = split_size(p.max_length) > warps * kPositionsAtOnce && fits(2) ? 2 : 1;
  const int per_kv = p.n_heads / p.n_kv_heads;
  const int n_parts = (per_kv + kHeadsAtOnce - 1) / kHeadsAtOnce;
  const dim3 grid(static_cast<unsigned>(most_splits(p.max_length)),
                  static_cast<unsigned>(p.n_kv_heads * n_parts), static_cast<unsigned>(p.n_rows));
  const bool shares = grid.x * grid.y * grid.z <= static_cast<unsigned>(how.n_sms);
  const AttendArgs args{p, n_stages, per_kv, n_parts, shares};
  launch(attend_kernel<dims, bf16, warps>, grid, warps * kWarp, Shared::bytes(n_stages), how, args);
  return true;
}

template <int dims, bool bf16>
void run(const Attend& p, const Launch& how) {
  bool runs = run<dims, bf16, kMostWarps<dims>>(p, how) || run<dims, bf16, kFewWarps>(p, how);
  // Of the longest heads 4 warps take 97 KB, and 105 with bf16; 1 warp takes 43 and 51.
  if constexpr (dims == 256) runs = runs || run<dims, bf16, 1>(p, how);
  CHECK(runs);
}

template <int dims>
void run(const Attend& p, const Launch& how) {
  p.kv_type == quant::Type::bf16 ? run<dims, true>(p, how) : run<dims, false>(p, how);
}

}  // namespace

void attend(const Attend& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_rows <= 16 && p.n_kv_heads > 0 && p.n_heads % p.n_kv_heads == 0);
  CHECK(p.head_dim % 32 == 0 && p.head_dim > 0 && p.head_dim <= 256);
  CHECK(2 * p.n_pairs <= p.head_dim && (1 << p.page_shift) >= kPositionsAtOnce);
  CHECK(p.kv_type == quant::Type::f16 || p.kv_type == quant::Type::bf16);
  CHECK(p.out || p.out_int8);
  CHECK(p.max_length > 0);
  if (p.head_dim <= 64) {
    run<64>(p, how);
  } else if (p.head_dim <= 128) {
    run<128>(p, how);
  } else {
    run<256>(p, how);
  }
}

}  // namespace sluice::backend::cuda
