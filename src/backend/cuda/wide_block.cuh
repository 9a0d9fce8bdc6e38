// The kernel of wide products whose sums stand in registers: see wide_block.cu. Here so that
// bench/gpu_wide.cu can measure it with other tiles than those that are used.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/wide_block_body.h"
#include "backend/cuda/wide_items.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {

// A block's tile: 16 pairs * down rows of weights times 8 groups * across inputs. A warp has
// `pairs` pairs of stripes and up to `groups` groups of eight inputs; warps are `down` times
// `across`. stages: chunks in shared memory. at_once: as add_block_chunk()'s. blocks: of an SM.
template <int pairs, int groups, int down, int across, int stages, int at_once, int blocks = 1>
struct BlockTile {
  static constexpr int kPairs = pairs, kGroups = groups, kDown = down, kAcross = across;
  static constexpr int kStages = stages, kAtOnce = at_once, kBlocks = blocks;
  static constexpr int kStripes = 2 * pairs * down, kOwnStripes = kStripes / kTileWarps;
  static constexpr int kHidden = 4 * kStripes;
  static constexpr int kHeight = 8 * groups * across;  // inputs, at most
  // Items whose rows are known: the one that is computed, those that are copied meanwhile, and one.
  static constexpr int kNamed = stages + 1;
  static_assert(down * across == kTileWarps && kStripes % kTileWarps == 0 && stages >= 2);
  static_assert(4 * kHiddenStride<kHidden> <= kTileInputBytes);
};

// What all warps know of an item, in shared memory: where its stripes are, how many inputs it has
// (0 behind the last item), its number and which of its tile's items it is.
template <typename Tile>
struct BlockItem {
  const uint8_t* stripes[Tile::kStripes];
  int32_t n, number, across;
};

// Of a warp, at most. Before sm_90 shared memory has room for no more than four, two warps across.
constexpr int kFewGroups = 4;
constexpr int most_groups(int from_sm_90) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return from_sm_90 < kFewGroups ? from_sm_90 : kFewGroups;
#else
  return from_sm_90;
#endif
}

// Groups of eight that each warp computes for n inputs: not all numbers have code of their own.
template <typename Tile>
__host__ __device__ constexpr int groups_of(int n) {
  const int groups = (n + 8 * Tile::kAcross - 1) / (8 * Tile::kAcross);
  return groups <= 4 ? groups : groups <= 6 ? 6 : 8;
}
template <typename Tile>
__host__ __device__ constexpr int computed_inputs(int n) {
  return 8 * Tile::kAcross * groups_of<Tile>(n);
}

struct BlockPlan {
  int inputs_at, rows_at, items_at, barriers_at, n_bytes;
};
template <typename Tile>
__host__ __device__ inline BlockPlan block_plan(const RingSize& ring, int height) {
  BlockPlan s;
  s.inputs_at = ring.slots_bytes(kTileWarps);
  s.rows_at = s.inputs_at + Tile::kStages * computed_inputs<Tile>(height) * kTileInputBytes;
  s.items_at = s.rows_at + Tile::kNamed * 2 * height * 4;
  s.barriers_at = s.items_at + Tile::kNamed * static_cast<int>(sizeof(BlockItem<Tile>));
  s.n_bytes = s.barriers_at + ring.barriers_bytes(kTileWarps);
  return s;
}

// Stripe j of an item's: the matrix's one after the other; or of gate and up, for each warp down
// first gate's, then the same of up. The last one stands for those that are not there.
template <typename Tile>
__device__ __forceinline__ const uint8_t* item_stripe(const WideArgs& a, const WideTile& tile,
                                                      int across, int j) {
  const int last = a.n_out / 8 - 1;
  if (!a.p.h) return stripe_at(a, tile, 0, min(across * Tile::kStripes + j, last));
  constexpr int kHalf = Tile::kPairs;  // stripes of gate, of a warp
  const int down = j / (2 * kHalf), k = j % (2 * kHalf);
  const int stripe = across * (Tile::kStripes / 2) + down * kHalf + k % kHalf;
  return stripe_at(a, tile, k / kHalf, min(stripe, last));
}

// The same number, which the compiler takes for another one each time: so it makes anew what is
// made of it, instead of keeping that in registers beside the sums.
template <typename T>
__device__ __forceinline__ T anew(T n) {
  asm volatile("" : "+r"(n));
  return n;
}

template <Type type, typename Tile>
class BlockProducts {
 public:
  // plan: in shared memory, so that it takes no registers beside the sums.
  __device__ __forceinline__ BlockProducts(const WideArgs& a, uint8_t* shared, BlockPlan& plan)
      : a_(a), shared_(shared), plan_(plan) {
    const BlockPlan own = block_plan<Tile>(a.ring, a.p.height);
    WeightRing(shared, shared + own.barriers_at, a.ring, warp_index());  // makes its barriers
    if (threadIdx.x == 0) plan = own;
    __syncthreads();
  }

  __device__ __forceinline__ void run() {
    begin_products_of(a_.p);
    for (int k = 0; k < Tile::kStages; ++k) {
      name(static_cast<int>(blockIdx.x + k * gridDim.x), k);
    }
    __syncthreads();
    for (int k = 0; k < Tile::kStages - 1; ++k) copy(0, k, static_cast<uint32_t>(k));
    const ProductStart start = product_start();
#pragma unroll 1
    for (int named = 0; items()[named].n > 0; named = behind(named)) {
      switch (groups_of<Tile>(items()[named].n)) {
        case 1:
          multiply<1>(named, start);
          break;
        case 2:
          multiply<2>(named, start);
          break;
        case 3:
          multiply<3>(named, start);
          break;
        case 4:
          multiply<4>(named, start);
          break;
        case 6:
          multiply<6>(named, start);
          break;
        default:
          multiply<8>(named, start);
      }
    }
  }

 private:
  static __device__ __forceinline__ int behind(int named) {
    return named + 1 == Tile::kNamed ? 0 : named + 1;
  }
  __device__ __forceinline__ BlockItem<Tile>* items() const {
    return reinterpret_cast<BlockItem<Tile>*>(shared_ + plan_.items_at);
  }
  __device__ __forceinline__ int32_t* rows(int named) const {
    return reinterpret_cast<int32_t*>(shared_ + plan_.rows_at) + named * 2 * a_.p.height;
  }
  __device__ __forceinline__ uint8_t* inputs(int stage) const {
    return shared_ + plan_.inputs_at + stage * computed_inputs<Tile>(a_.p.height) * kTileInputBytes;
  }

  __device__ __forceinline__ void name(int number, int named) {
    BlockItem<Tile>& item = items()[named];
    const int thread = anew(static_cast<int>(threadIdx.x)), n_across = anew(a_.n_across);
    const int across = number % n_across;
    const bool is_there = number < count_items(a_);
    const WideTile tile = is_there ? tile_at(a_, number / n_across) : WideTile{};
    name_rows(a_, tile, rows(named), thread);
    if (is_there && thread < Tile::kStripes) {
      item.stripes[thread] = item_stripe<Tile>(a_, tile, across, thread);
    }
    if (thread == 0) item.n = tile.n, item.number = number, item.across = across;
  }

  static __device__ __forceinline__ int stage_of(uint32_t step) {
    return static_cast<int>(step % Tile::kStages);
  }
  // As it is at a step.
  __device__ __forceinline__ WeightRing ring(int warp, uint32_t step) const {
    return {shared_, shared_ + plan_.barriers_at, {Tile::kStages, a_.ring.slot_size}, warp, step};
  }

  // A chunk of an item, or if it has fewer, of an item behind it: for a step to come.
  __device__ __forceinline__ void copy(int named, int chunk, uint32_t step) {
    while (chunk >= a_.shape.n_chunks && items()[named].n > 0) {
      chunk -= a_.shape.n_chunks;
      named = behind(named);
    }
    if (items()[named].n > 0) {
      const int warp = anew(warp_index()), lane = anew(lane_index());
      const BlockItem<Tile>& of = items()[named];
      const uint8_t* own[Tile::kOwnStripes];
#pragma unroll
      for (int k = 0; k < Tile::kOwnStripes; ++k) {
        own[k] = of.stripes[warp * Tile::kOwnStripes + k] + chunk_offset<type>(chunk);
      }
      copy_inputs(a_, rows(named), of.n, chunk, inputs(stage_of(step)), warp, lane);
      ring(warp, step).request(own, Stripe<type>::chunk_bytes(blocks_of<type>(a_.shape, chunk)));
    }
    end_group();
  }

  // The weights and inputs of this step, for all warps.
  __device__ __forceinline__ void await() {
    await_groups<Tile::kStages - 2>();
    ring(anew(warp_index()), step_).wait(nullptr);
    __syncthreads();
  }

  // groups: of each warp. Rows behind the tile's are computed, from what stands there, and left.
  template <int groups>
  __device__ __forceinline__ void multiply(int named, const ProductStart& start) {
    if constexpr (groups <= most_groups(Tile::kGroups)) {
      PerLane<BlockSums<Tile::kPairs, groups>> sums;
      clear_sums(sums);
#pragma unroll 1
      for (int c = 0; c < a_.shape.n_chunks; ++c) {
        await();
        copy(named, c + Tile::kStages - 1, step_ + Tile::kStages - 1);
        if (c == 0) {
          name(items()[named].number + Tile::kStages * static_cast<int>(gridDim.x),
               named == 0 ? Tile::kNamed - 1 : named - 1);
        }
        const int warp = anew(warp_index()), down = warp % Tile::kDown;
        const int first = warp / Tile::kDown * 8 * groups;
        const int stage = anew(stage_of(anew(step_)));
        const uint8_t* chunks[2 * Tile::kPairs];
#pragma unroll
        for (int s = 0; s < 2 * Tile::kPairs; ++s) chunks[s] = chunk_at(named, down, s, c, stage);
        add_block_chunk<type, Tile::kPairs, groups, Tile::kAtOnce>(
            chunks, blocks_of<type>(a_.shape, c), inputs(stage) + first * kTileInputBytes, start,
            sums);
        ++step_;
      }
      const int32_t* const to = rows(named) + a_.p.height;
      const int n = items()[named].n, across = items()[named].across;
      a_.p.h ? write_hidden(sums, to, n, across) : write_out(sums, to, n, across);
    }
  }

  // Chunk c of a warp's stripe s.
  __device__ __forceinline__ const uint8_t* chunk_at(int named, int down, int s, int c,
                                                     int stage) const {
    const int j = down * 2 * Tile::kPairs + s, size = a_.ring.slot_size;
    const auto from = static_cast<uint32_t>(
        reinterpret_cast<uintptr_t>(items()[named].stripes[j] + chunk_offset<type>(c)));
    return shared_ + (j / Tile::kOwnStripes * Tile::kStages + stage) * size +
           j % Tile::kOwnStripes * (size / Tile::kOwnStripes) + from % kLine;
  }

  // Through the inputs that were used last: copies to them begin behind the next chunk's barrier.
  template <int groups>
  __device__ __forceinline__ void write_hidden(const PerLane<BlockSums<Tile::kPairs, groups>>& sums,
                                               const int32_t* to, int n, int across) {
    constexpr int kHidden = Tile::kHidden, kBlocks = kHidden / 32;
    auto* const hidden = reinterpret_cast<float*>(inputs(stage_of(step_ - 1)));
    const int warp = anew(warp_index()), first = warp / Tile::kDown * 8 * groups;
    __syncthreads();
    if (first < n) {
      stage_hidden<kHidden>(sums, hidden + first * kHiddenStride<kHidden>,
                            warp % Tile::kDown * 8 * Tile::kPairs);
    }
    __syncthreads();
#pragma unroll 1
    for (int i = 4 * warp; i < kBlocks * n; i += 4 * kTileWarps) {
      write_staged_hidden<kHidden>(hidden, to, i, kBlocks * n, kBlocks * across, a_.p.n_out / 32,
                                   a_.p.h);
    }
  }

  template <int groups>
  __device__ __forceinline__ void write_out(const PerLane<BlockSums<Tile::kPairs, groups>>& sums,
                                            const int32_t* to, int n, int across) {
    const int thread = anew(static_cast<int>(threadIdx.x)), warp = thread / kWarp;
    const int row = thread % kWarp / 4, i = thread % 4;
    const int down = warp % Tile::kDown, first = warp / Tile::kDown * 8 * groups;
#pragma unroll
    for (int s = 0; s < 2 * Tile::kPairs; ++s) {
      const int column = 8 * (across * Tile::kStripes + down * 2 * Tile::kPairs + s) + row;
      if (column - row >= a_.n_out) break;
      const MatrixRow of = matrix_row(a_.p, column);
      const float bias = of.bias ? __ldg(of.bias + of.row) : 0.0f;
#pragma unroll
      for (int g = 0; g < 2 * groups; ++g) {
        const int k = first + g / 2 * 8 + 2 * i + g % 2;
        if (k >= n) continue;
        const float dot = __fadd_rn(sums.value.of[s / 2][g / 2][s % 2 * 2 + g % 2], bias);
        float* const out = a_.p.out + static_cast<int64_t>(to[k]) * a_.p.out_stride + column;
        *out = a_.p.adds ? __fadd_rn(*out, dot) : dot;
      }
    }
  }

  const WideArgs& a_;
  uint8_t* shared_;
  const BlockPlan& plan_;
  uint32_t step_ = 0;  // chunks that were computed, of all items
};

template <Type type, typename Tile>
__global__ void __launch_bounds__(kWideThreads, Tile::kBlocks)
    wide_block_kernel(const __grid_constant__ WideArgs a) {
#if __CUDA_ARCH__ < 900
  if constexpr (Tile::kBlocks > 1) return;  // block_height() is 0
#endif
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ BlockPlan plan;
  BlockProducts<type, Tile>(a, shared, plan).run();
  end_products_of(a.p);
}

template <Type type, typename Tile>
RingSize block_ring() {
  return {Tile::kStages,
          Tile::kOwnStripes * slot_bytes(static_cast<int>(Stripe<type>::chunk_bytes(8)))};
}

// That each of an SM's blocks can have: the driver takes a kilobyte for every block, and the plan
// stands there too.
template <typename Tile>
int shared_of(const Launch& how) {
  constexpr int kDrivers = 1024, kPlan = 128;
  return (how.shared_bytes + kDrivers) / Tile::kBlocks - kDrivers - kPlan;
}

constexpr int kBlockHeights[] = {128, 96, 64, 48, 32, 16};
constexpr int kLeastBlockHeight = 48;  // of a tile that is full, to be worth it

// The most inputs of a tile that shared memory has room for; 0 where they would be too few.
template <Type type, typename Tile>
int block_height(const Launch& how) {
  const bool is_sm_90 = how.shared_bytes > 200 * 1024;  // others may have code for few groups
  if (!is_sm_90 && Tile::kBlocks > 1) return 0;
  const int most = is_sm_90 ? Tile::kHeight : 8 * kFewGroups * Tile::kAcross;
  for (const int height : kBlockHeights) {
    const bool fits =
        block_plan<Tile>(block_ring<type, Tile>(), height).n_bytes <= shared_of<Tile>(how);
    if (height <= std::min(most, Tile::kHeight) && height >= kLeastBlockHeight && fits) {
      return height;
    }
  }
  return 0;
}

// Without a list a tile may be lower than p.height, so that all SMs have as much to do.
template <typename Tile>
int dense_height(const WideGemm& p, int n_places) {
  int best = p.height;
  int64_t least = 0;
  for (const int height : kBlockHeights) {
    if (height > p.height) continue;
    WideGemm of = p;
    of.height = height;
    const int64_t n_items = most_items(wide_args(of, {}, Tile::kStripes));
    const int64_t rounds = (n_items + n_places - 1) / n_places;
    const int64_t cost = rounds * (height + 24);  // taking weights apart is like 24 rows more
    if (least == 0 || cost < least) best = height, least = cost;
  }
  return best;
}

template <Type type, typename Tile>
void run_block(WideGemm p, const Launch& how) {
  const int most = block_height<type, Tile>(how);
  CHECK(p.height >= 1 && p.height <= most && p.n_cols % 64 == 0);
  const RingSize ring = block_ring<type, Tile>();
  const int n_places = Tile::kBlocks * how.n_sms;
  if (!p.rows.tiles) p.height = dense_height<Tile>(p, n_places);
  const WideArgs args = wide_args(p, ring, Tile::kStripes);
  if (most_items(args) == 0) return;
  const auto n_blocks = static_cast<unsigned>(std::min<int64_t>(most_items(args), n_places));
  launch(wide_block_kernel<type, Tile>, dim3(n_blocks), kWideThreads,
         static_cast<size_t>(block_plan<Tile>(ring, p.height).n_bytes), how, args);
}

}  // namespace sluice::backend::cuda
