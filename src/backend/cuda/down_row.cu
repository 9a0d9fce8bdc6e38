// The experts' down projections of a single row, their weighted sum in order of rank, and the
// residual.
//
// Layout   weights: stripes; h: int8 rows by slot; x: f32.
// Mapping  a block owns eight outputs, a stripe of every expert; a warp takes every eighth expert,
//          unit by unit, and reads its hidden rows straight from L2 into fragments. Outputs meet in
//          shared memory, and eight threads add them by rank. The list is read, and the first unit
//          requested, awaited and unpacked, before the wait for gate_up: who wrote the list had
//          done so before gate_up let this kernel begin.
// Limits   as down.cu.
// Cost     see bench/gpu_kernels and docs/decisions/0011 and 0017.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/combine.h"
#include "backend/cuda/expert_sizes.cuh"
#include "backend/cuda/experts_row.h"
#include "backend/cuda/host_words.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/row_room.h"
#include "backend/cuda/stage_rows.h"
#include "backend/cuda/stripe_dispatch.h"
#include "backend/cuda/weight_ring.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = kRowWarps;
constexpr int kThreads = kWarps * kWarp;
constexpr int kMostStages = 2;
constexpr int kMostGroups = kMaxUsed + 1;
constexpr int kMinShared = 60 * 1024;  // registers keep a third block off an SM

struct Chosen {  // in shared memory
  const uint8_t* down[kMostGroups];
  uint8_t* landing[kMostGroups];  // where its weights are left as well, as `down` has them; or null
  int slot[kMostGroups];
  float weight[kMostGroups];  // by slot
  float out[kMostGroups][8];  // by slot
};

// The list's groups.
__device__ __forceinline__ void read_list(const Down& p, int n_groups, Chosen& out) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= n_groups) return;
  const ExpertGroup* const group = p.list.groups + i;
  out.down[i] = reinterpret_cast<const uint8_t*>(
      __ldcg(reinterpret_cast<const unsigned long long*>(&group->down)));
  out.slot[i] = __ldcg(group->slot);
  const int place = p.landing.data ? __ldcg(&group->landing) : -1;
  out.landing[i] = place < 0 ? nullptr : p.landing.data + place * p.landing.place_bytes + p.down_at;
}

// The unit a warp is at: its groups one after the other, every eighth.
struct Place {
  int group;
  int unit;
};

// Chunks that are unpacked before the wait. (Of types of two parts some would be spilled.)
template <Type type>
constexpr int kEarly = Taken<type>::kParts == 2 ? 0 : kEarlyChunks<type>;

// is_roomy: a block has the shared memory for whole units (row_room.h).
template <Type type, bool is_roomy>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(type == Type::q2_k ? 1 : 2))
    down_row_kernel(const __grid_constant__ DownSizes a) {
  extern __shared__ __align__(128) uint8_t shared[];
  constexpr int kChunks = kChunksOfUnit<is_roomy>;
  __shared__ Chosen chosen;
  __shared__ HostTimes times;
  __shared__ uint64_t barriers[kWarps * kMostStages];
  const int warp = warp_index(), lane = lane_index();
  const int n_groups = a.p.shape.n_used + (a.p.shape.shared_d_ff > 0 ? 1 : 0);
  WeightRing ring(shared + warp * a.ring.n_slots * a.ring.slot_size, a.ring.slot_size,
                  barriers + warp * kMostStages, a.ring.n_slots);
  let_next_kernel_begin();
  read_list(a.p, n_groups, chosen);
  if (threadIdx.x == 0) times = {};
  __syncthreads();

  const auto shape_of = [&](int group) {
    return a.p.shape.shared_d_ff > 0 && group == n_groups - 1 ? a.shared_shape : a.shape;
  };
  const auto source_of = [&](const Place& at) -> const uint8_t* {
    const bool is_shared = a.p.shape.shared_d_ff > 0 && at.group == n_groups - 1;
    const uint8_t* const down = chosen.down[at.group];
    if (down == nullptr) return nullptr;
    return down + blockIdx.x * (is_shared ? a.shared_stripe_bytes : a.stripe_bytes) +
           chunk_offset<type>(kChunks * at.unit);
  };
  const auto n_units_of = [](const RowShape& shape) {
    return (shape.n_chunks + kChunks - 1) / kChunks;
  };
  const auto advance = [&](Place& at) {
    if (chosen.down[at.group] == nullptr || ++at.unit == n_units_of(shape_of(at.group))) {
      at.unit = 0, at.group += kWarps;
    }
  };
  Place asked{warp, 0}, at{warp, 0};
  const auto request = [&] {
    const uint8_t* const src = source_of(asked);
    const RowShape shape = shape_of(asked.group);
    const int first = kChunks * asked.unit, n = min(kChunks, shape.n_chunks - first);
    ring.request(src, src ? unit_bytes<type>(shape, first, n) : 0);
    advance(asked);
  };
#pragma unroll 1
  for (int i = 0; i < a.ring.n_slots && asked.group < n_groups; ++i) request();
  PerLane<float> acc = {};
  // Of threads of the first warp, which has a group: read behind its wait.
  float x = 0.0f, weight = 0.0f;
  bool waited = false;
#pragma unroll 1
  for (; at.group < n_groups; advance(at)) {
    const uint8_t* const src = source_of(at);
    const RowShape shape = shape_of(at.group);
    const int slot = chosen.slot[at.group];
    Unit unit{ring.wait(src), kChunks * at.unit, 0};
    unit.n = min(kChunks, shape.n_chunks - unit.first);
    if (src && chosen.landing[at.group]) {
      leave_copy(chosen.landing[at.group] + (src - chosen.down[at.group]), unit.data,
                 unit_bytes<type>(shape, unit.first, unit.n), lane);
    }
    UnitWeights weights;
    if (src) unpack_unit<type, kEarly<type>>(unit, shape, weights);
    if (!waited) {
      wait_for_previous_kernel();
      waited = true;
      const int own = static_cast<int>(threadIdx.x), n_used = a.p.shape.n_used;
      if (own == 0 && blockIdx.x == 0) begin_times(a.p.host, times);
      if (own < 8) x = __ldcg(a.p.x + 8 * blockIdx.x + lane);
      if (own < n_groups) {
        weight = __ldcg(own < n_used ? a.p.weights + own : a.p.shared_weights + own - n_used);
      }
    }
    if (src) {
      const int64_t first = static_cast<int64_t>(slot) * a.p.h.n_chunks;
      const InputRow hidden{a.p.h.q + kChunk * first, a.p.h.d + 8 * first, a.p.h.y + 8 * first};
      PerLane<float> got;
      dot_unit<type, PastL1Load, kEarly<type>>(unit, shape, weights, hidden, got);
      add_in_order(got, unit.n, acc);
      if (at.unit == n_units_of(shape) - 1) {
        if (lane % 4 == 0) chosen.out[slot][lane / 4] = acc.value;
        acc.value = 0.0f;
      }
    } else {
      await_answer(a.p.host, times);
      if (lane < 8) {
        chosen.out[slot][lane] = __ldcv(
            a.p.outside + static_cast<int64_t>(slot) * a.p.shape.d_model + 8 * blockIdx.x + lane);
      }
    }
    __syncwarp();
    if (asked.group < n_groups) request();
  }
  if (!waited) wait_for_previous_kernel();
  if (static_cast<int>(threadIdx.x) < n_groups) chosen.weight[threadIdx.x] = weight;
  __syncthreads();
  if (threadIdx.x < 8) {
    a.p.x[8 * blockIdx.x + lane] =
        __fadd_rn(x, sum_by_rank(chosen.weight, chosen.out[0] + lane, n_groups, 8));
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) write_times(a.p.host, times);
  if (blockIdx.x == gridDim.x - 1) {
    for (int i = static_cast<int>(threadIdx.x); i < a.p.n_sums; i += kThreads) a.p.sums[i] = 0;
  }
}

template <Type type>
void run(const Down& p, const Launch& how) {
  DownSizes args = down_sizes<type>(p, kWarps, kMostStages);
  const int most_chunks = std::max(args.shape.n_chunks, args.shared_shape.n_chunks);
  const int room = row_room(how.shared_bytes);
  const RowRing ring = row_ring<type>(most_chunks, args.ring.n_slots, room);
  CHECK(ring.n_bytes() <= room);
  args.ring = ring.size;
  const auto bytes = static_cast<size_t>(std::max(ring.n_bytes(), std::min(kMinShared, room)));
  const dim3 grid(static_cast<unsigned>(p.shape.d_model / 8));
  const auto kernel = ring.is_roomy() ? down_row_kernel<type, true> : down_row_kernel<type, false>;
  launch(kernel, grid, kThreads, bytes, how, args);
}

}  // namespace

void down_row(const Down& p, const Launch& how) {
  CHECK(p.n_rows == 1);
  with_stripe_type(p.shape.down_type, [&]<Type type>() { run<type>(p, how); });
}

}  // namespace sluice::backend::cuda
