// Gate, up, SwiGLU and the quantisation of the hidden row, for the experts of a single row.
//
// Layout   weights: stripes; a and h: int8 rows (int8_rows.h).
// Mapping  a block makes 32 hidden values of one expert: four stripes of gate and four of up, one
//          to a warp, unit by unit. Its expert is that of a rank, which the block finds
//          among the router's scores; or the list names it. Where there is no list, one more block,
//          the first, writes it before it lets down begin, which reads it at once; and where
//          experts may be missing, that block asks the host for what nobody else brings, and writes
//          the log. Where project_add has added the scores up, each block makes them of the sums,
//          and the row's int8 while its weights are on their way. What comes over the link is left
//          in the device's memory as well; it is asked for when the host has its request, which
//          would else stand behind megabytes of reads.
// Limits   as gate_up.cu. Not more than two blocks fit an SM, on purpose: a dependent launch packs
//          blocks where the kernel before ends first. 80 registers (kRoomForDown), so that a block
//          of down fits beside one of these and has its weights when the hidden rows are there.
// Cost     see bench/gpu_kernels and docs/decisions/0011 and 0017.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/ask_host.cuh"
#include "backend/cuda/expert_sizes.cuh"
#include "backend/cuda/experts_row.h"
#include "backend/cuda/find_row.h"
#include "backend/cuda/hidden.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/rank.h"
#include "backend/cuda/router_products.h"
#include "backend/cuda/row_room.h"
#include "backend/cuda/stage_row.h"
#include "backend/cuda/stripe_dispatch.h"
#include "backend/cuda/weight_ring.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = kRowWarps;
constexpr int kThreads = kWarps * kWarp;
constexpr int kMostSlots = 2;
constexpr int kMinShared = 78 * 1024;  // keeps a third block off an SM of 228 KB

// Whether 80 registers suffice: of these types some would be spilled.
template <Type type>
constexpr bool kRoomForDown =
    !(type == Type::q2_k || type == Type::q5_1 || Taken<type>::kParts == 2);

struct RowArgs : GateUpSizes {
  FindMissing missing;  // where ranking.missing is not null
  int n_slots;          // of a warp's ring
};

// Scores of a row's experts in shared memory, and what is made of them.
struct Scored {
  alignas(16) uint32_t keys[kMostRanked];
  float scores[kMostRanked];
  float shared;          // of the shared expert's gate
  float best[kMaxUsed];  // by rank, as the next two
  int experts[kMaxUsed];
  const uint8_t* at[kMaxUsed];
};

// What a block computes.
struct Own {
  const uint8_t* gate;
  const uint8_t* up;
  uint8_t* landing;  // where its weights are left as well, as far from there as from `gate`
  int slot;
  bool waits;  // for the request to the host
};

// Lane k of a warp: the expert of rank k, and where it is.
struct RowExperts {
  PerLane<int> experts;
  RowFound found;
};

// Who is taken instead of rank `lane`'s, and where it is. Known since the step's head, so read
// before the wait.
struct Forced {
  int expert = -1;  // nobody
  const uint8_t* at = nullptr;
};
__device__ __forceinline__ Forced read_forced(const RowArgs& a, int lane) {
  const Ranking& r = a.p.ranking;
  Forced out;
  if (r.forced && lane < a.p.shape.n_used) out.expert = __ldcg(r.forced + lane);
  if (out.expert >= 0) {
    out.at = reinterpret_cast<const uint8_t*>(
        __ldcg(reinterpret_cast<const unsigned long long*>(r.table + out.expert)));
  }
  return out;
}

// By a warp, behind a barrier.
__device__ __forceinline__ RowExperts find_experts(const RowArgs& a, const Scored& scored,
                                                   const Forced& forced, int n_landed) {
  const Ranking& r = a.p.ranking;
  const int lane = lane_index(), n = a.p.shape.n_used;
  const bool is_forced = forced.expert >= 0;
  RowExperts out{{is_forced ? forced.expert : lane < n ? scored.experts[lane] : 0}, {}};
  const PerLane<const uint8_t*> at{is_forced ? forced.at : lane < n ? scored.at[lane] : nullptr};
  RowPlaces places;
  if (r.missing) {
    places = {a.missing.host, a.missing.stride, __ldcg(a.missing.link_share), n_landed,
              a.p.landing.data ? a.missing.landing.n_places : 0};
  }
  out.found = find_row(places, at, out.experts, n);
  return out;
}

__device__ __forceinline__ uint8_t* place_of(const Landing& landing, int place) {
  return place < 0 ? nullptr : landing.data + place * landing.place_bytes;
}

__device__ __forceinline__ bool has_shared(const RowArgs& a) { return a.p.shape.shared_d_ff > 0; }

// The group of rank `lane`'s expert, for down; the shared expert's behind them.
__device__ __forceinline__ void write_group(const RowArgs& a, const RowExperts& row, int lane) {
  const Ranking& r = a.p.ranking;
  const int n_used = a.p.shape.n_used;
  ExpertGroup& group = a.p.list.groups[lane];
  const bool is_shared = lane == n_used;
  const uint8_t* const at = is_shared ? r.shared[0] : row.found.at.value;
  group.gate = at;
  group.up = is_shared ? r.shared[1] : at ? at + r.up_at : nullptr;
  group.down = is_shared ? r.shared[2] : at ? at + r.down_at : nullptr;
  group.n_pairs = 1;
  group.landing = is_shared ? -1 : row.found.landing.value;
  group.row[0] = 0, group.slot[0] = static_cast<int16_t>(lane);
  if (lane == 0) *a.p.list.n_groups = n_used + has_shared(a);
  if (!is_shared) r.experts[lane] = row.experts.value;
}

// By the first warp: what was found where, and what is left as a copy.
__device__ __forceinline__ void write_log(const FindMissing& p, const RowExperts& row, int n_landed,
                                          float weight, int lane) {
  const int n_link = count_bits(row.found.link), n_cpu = count_bits(row.found.cpu);
  if (row.found.landing.value >= 0) {
    p.landing.landed[row.found.landing.value] = static_cast<uint64_t>(__ldcg(p.step)) << 32 |
                                                (p.number & 0xffff0000u) |
                                                (row.experts.value & 0xffff);
  }
  if (lane < p.n_used) p.log.routed[lane] = {ExpertId(row.experts.value), weight};
  if (lane != 0) return;
  if (p.landing.data) p.landing.n_taken[1] = min(n_landed + n_link, p.landing.n_places);
  LayerLog& log = *p.log.counts;
  log = {};
  log.n_rows = 1;
  log.n_hits = p.n_used - n_link - n_cpu;
  log.n_link = n_link;
  log.n_cpu = n_cpu;
  log.link_bytes = static_cast<uint64_t>(n_link) * p.expert_bytes;
}

// The request for what the CPU computes, by all threads of the block.
__device__ __forceinline__ void ask_for_ranks(const FindMissing& p, const RowExperts& row,
                                              int lane) {
  const uint32_t cpu = row.found.cpu;
  if (cpu == 0) return;
  const bool asks = __syncthreads_and(threadIdx.x != 0 || !is_aborted(p)) != 0;
  if (asks && warp_index() == 0 && (cpu >> lane & 1u)) {
    p.mailbox.pairs[count_bits(cpu & ((1u << lane) - 1))] = {row.experts.value, 0, lane};
  }
  ask_host(p, 1, count_bits(cpu), asks);
  if (threadIdx.x == 0) release_here(&p.relay->asked, request_of(p.step, p.number));
}

// By one warp; lane k gets rank k's.
__device__ __forceinline__ float write_weights(const RowArgs& a, const Scored& scored, int lane) {
  const Ranking& r = a.p.ranking;
  const int n = a.p.shape.n_used;
  const float weight = expert_weights({r.score, r.renormalize, n, r.n_experts},
                                      {lane < n ? scored.best[lane] : 0.0f}, scored.scores)
                           .value;
  if (lane < n) r.weights[lane] = weight;
  if (lane == 0 && r.shared_weights) {
    *r.shared_weights = r.has_shared_gate ? sigmoid(scored.shared) : 1.0f;
  }
  return weight;
}

// By a block of its own: the list, before down may begin; then what else is told of the row. A
// request to the host goes out before down begins: down's first reads over the link would hold it
// up (by 80 to 100 us, with four experts to read and four to ask for).
__device__ __forceinline__ void tell_of_row(const RowArgs& a, const Scored& scored,
                                            const RowExperts& row, int n_landed) {
  const int warp = warp_index(), lane = lane_index();
  const FindMissing& missing = a.missing;
  const bool looks_up = a.p.ranking.missing != nullptr;
  if (warp == 0 && lane < a.p.shape.n_used + has_shared(a)) {
    write_group(a, row, lane);
    __threadfence();
  }
  if (looks_up) {
    if (threadIdx.x == 0) *missing.began = card_time();
    ask_for_ranks(missing, row, lane);
  }
  __syncthreads();
  let_next_kernel_begin();
  if (warp != 0) return;
  const float weight = write_weights(a, scored, lane);
  if (looks_up) write_log(missing, row, n_landed, weight, lane);
}

// The score of expert `own` and, in the first thread, of the shared expert's gate. By all threads.
// squares: room for the row's, behind a barrier.
template <bool by_sums>
__device__ __forceinline__ float read_scores(const Ranking& r, NormedRow& input, int n_cols,
                                             float* squares, Scored& out) {
  const int own = static_cast<int>(threadIdx.x);
  const bool is_expert = own < r.n_experts, is_gate = own == 0 && r.has_shared_gate;
  if constexpr (!by_sums) {
    if (is_gate) out.shared = __ldcg(r.scores + r.n_experts);
    return is_expert ? __ldcg(r.scores + own) : 0.0f;
  }
  const ScoreSum sum = is_expert ? __ldcg(r.sums + own) : 0,
                 gate = is_gate ? __ldcg(r.sums + r.n_experts) : 0;
  input.add_squares(squares);
  __syncthreads();
  const float scale = row_scale(squares, n_cols, r.eps).value;
  if (is_gate) out.shared = scaled_score(gate, scale);
  return scaled_score(sum, scale);
}

// Where segments of an int8 row stand in the device's memory.
__device__ __forceinline__ Int8Place place_in(const Int8Rows& rows, int n_cols, int segment,
                                              int lane) {
  const int block = 4 * segment + lane / 8;
  return {rows.q + 32 * block + 4 * (lane % 8), rows.d + block, rows.y + block,
          kSegment * segment + 4 * lane < n_cols};
}

// Whose hidden values a block makes, by the list: its group `which`.
__device__ __forceinline__ Own read_own(const RowArgs& a, int which) {
  const ExpertGroup* const group = a.p.list.groups + which;
  const auto read = [](const uint8_t* const* p) {
    return reinterpret_cast<const uint8_t*>(__ldcg(reinterpret_cast<const unsigned long long*>(p)));
  };
  const int place = a.p.landing.data ? __ldcg(&group->landing) : -1;
  return {read(&group->gate), read(&group->up), place_of(a.p.landing, place), __ldcg(group->slot),
          false};
}

// The same by the experts that were found: rank `which`'s, or the shared one. By a warp.
__device__ __forceinline__ void choose_own(const RowArgs& a, const RowExperts& found, int which,
                                           int lane, Own& chosen) {
  const Ranking& r = a.p.ranking;
  if (which == a.p.shape.n_used) {
    if (lane == 0) chosen = {r.shared[0], r.shared[1], nullptr, which, false};
  } else if (lane == which) {
    const uint8_t* const at = found.found.at.value;
    chosen = {at, at ? at + r.up_at : nullptr, place_of(a.p.landing, found.found.landing.value),
              which, found.found.cpu != 0 && (found.found.link >> which & 1u)};
  }
}

// Waits until the host has its request.
__device__ __forceinline__ void await_request(const RowArgs& a) {
  const uint64_t number = request_of(a.missing.step, a.missing.number);
  while (acquired_here(&a.missing.relay->asked) < number) pause(50);
}

// A block among those that rank, and what its threads have read before the wait.
struct RankingBlock {
  bool writes_list;
  int which;               // the rank whose expert it computes, or n_used
  int expert;              // that the thread ranks, with others
  const uint8_t* address;  // its
  Forced forced;
};

// By all threads: ranks the experts and finds the block's own, or else writes the list; false
// there. row: where the input goes, staged, unless it is made of sums. A barrier is to follow.
template <int most, bool by_sums>
__device__ __forceinline__ bool choose_by_rank(const RowArgs& a, const RankingBlock& block,
                                               NormedRow& input, float* squares, uint8_t* row,
                                               Scored& scored, Own& chosen) {
  const Ranking& r = a.p.ranking;
  const int own = static_cast<int>(threadIdx.x), warp = warp_index(), lane = lane_index();
  const float score = read_scores<by_sums>(r, input, a.p.shape.d_model, squares, scored);
  const int n_landed = a.p.landing.data ? __ldcg(a.missing.landing.n_taken) : 0;
  const Ranks<most> all({score}, r.n_experts, scored.keys, warp);
  if (own < most) scored.scores[own] = score;
  if (!by_sums && !block.writes_list) copy_row(a.p.a, a.shape.n_chunks, row, warp, kWarps);
  if (by_sums && block.writes_list) {
    input.write(squares, [&](int segment, int lane_of) {
      return place_in(a.p.a, a.p.shape.d_model, segment, lane_of);
    });
  }
  __syncthreads();
  const int rank = all.rank().value;
  if (rank < a.p.shape.n_used && Ranks<most>::is_first_lane(lane)) {
    scored.experts[rank] = block.expert, scored.at[rank] = block.address;
    scored.best[rank] = all.score(lane);
  }
  __syncthreads();
  if (warp != 0 && !block.writes_list) return true;
  const RowExperts found = find_experts(a, scored, block.forced, n_landed);
  if (block.writes_list) {
    tell_of_row(a, scored, found, n_landed);
    return false;
  }
  choose_own(a, found, block.which, lane, chosen);
  return true;
}

// most: of the experts that are ranked; 0: the list says who was chosen. by_sums: of their scores.
// is_roomy: a block has the shared memory for whole units, two to a warp (row_room.h).
template <Type type, int most, bool by_sums, bool is_roomy>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(kRoomForDown<type> ? 3 : 2))
    gate_up_row_kernel(const __grid_constant__ RowArgs a) {
  constexpr bool ranks = most > 0;
  using RanksOf = Ranks<ranks ? most : kMostRanked>;
  constexpr int kChunks = kChunksOfUnit<is_roomy>, kSlot = unit_slot_bytes<type>(kChunks);
  const int n_slots = is_roomy ? kMostSlots : a.n_slots;
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ Scored scored;
  __shared__ Own chosen;
  __shared__ float squares[by_sums ? NormedRow::kMostSegments : 1];
  __shared__ float dots[2 * 32];  // gate, up
  __shared__ uint64_t barriers[kWarps * kMostSlots];
  const int warp = warp_index(), lane = lane_index();
  const int per_expert = max(a.p.shape.d_ff, a.p.shape.shared_d_ff) / 32;
  const bool writes_list = ranks && blockIdx.x == 0;  // and computes nothing
  const int item = static_cast<int>(blockIdx.x) - (ranks && !writes_list ? 1 : 0);
  const int which = item / per_expert;
  const int block = item - which * per_expert;
  uint8_t* const row = shared + kWarps * n_slots * kSlot;
  WeightRing ring(shared + warp * n_slots * kSlot, kSlot, barriers + warp * kMostSlots, n_slots);
  const Ranking& r = a.p.ranking;
  RankingBlock ranking{writes_list, which, RanksOf::expert(warp, lane), nullptr, {}};
  // The table is cold memory.
  if (ranks && ranking.expert < r.n_experts) ranking.address = r.table[ranking.expert];
  if (ranks && (warp == 0 || writes_list)) ranking.forced = read_forced(a, lane);
  NormedRow input(r.x, {r.norm, r.eps}, by_sums ? a.p.shape.d_model : 0, warp);
  wait_for_previous_kernel();
  if (!writes_list) let_next_kernel_begin();

  if constexpr (ranks) {
    if (!choose_by_rank<most, by_sums>(a, ranking, input, squares, row, scored, chosen)) return;
  } else {
    copy_row(a.p.a, a.shape.n_chunks, row, warp, kWarps);
    if (threadIdx.x == 0) chosen = read_own(a, which);
  }
  __syncthreads();
  const bool is_shared = a.p.shape.shared_d_ff > 0 && which == a.p.shape.n_used;
  if (chosen.gate == nullptr ||
      32 * block >= (is_shared ? a.p.shape.shared_d_ff : a.p.shape.d_ff)) {
    return;
  }
  if (chosen.waits) await_request(a);
  const uint8_t* const stripe =
      (warp < 4 ? chosen.gate : chosen.up) + (4 * block + warp % 4) * a.stripe_bytes;
  const int n_units = (a.shape.n_chunks + kChunks - 1) / kChunks;
  const auto unit_at = [&](int u) {
    return Unit{stripe + chunk_offset<type>(kChunks * u), kChunks * u,
                min(kChunks, a.shape.n_chunks - kChunks * u)};
  };
  const auto request = [&](int u) {
    const Unit unit = unit_at(u);
    ring.request(unit.data, unit_bytes<type>(a.shape, unit.first, unit.n));
  };
#pragma unroll 1
  for (int u = 0; u < min(n_slots, n_units); ++u) request(u);
  if constexpr (by_sums) {
    input.stage(squares, row);
    __syncthreads();
  }

  PerLane<float> acc = {};
#pragma unroll 1
  for (int u = 0; u < n_units; ++u) {
    Unit unit = unit_at(u);
    const uint8_t* const src = unit.data;
    unit.data = ring.wait(src);
    if (chosen.landing) {
      leave_copy(chosen.landing + (src - chosen.gate), unit.data,
                 unit_bytes<type>(a.shape, unit.first, unit.n), lane);
    }
    UnitWeights weights;
    PerLane<float> sums;
    dot_unit<type, StagedLoad, 0>(unit, a.shape, weights, staged_row(row, a.shape.n_chunks, 0),
                                  sums);
    add_in_order(sums, unit.n, acc);
    __syncwarp();
    if (u + n_slots < n_units) request(u + n_slots);
  }
  if (lane % 4 == 0) dots[8 * warp + lane / 4] = acc.value;
  __syncthreads();
  if (warp == 0) write_hidden(a.p.h, chosen.slot, block, dots);
}

// Of cards with little shared memory one kernel ranks any number of experts.
template <Type type, bool is_roomy>
auto kernel_for(const Ranking& ranking) {
  const bool is_few = is_roomy && ranking.n_experts <= 128;  // two threads to each
  constexpr int kFew = is_roomy ? 128 : kMostRanked;
  if (ranking.sums) {
    return is_few ? gate_up_row_kernel<type, kFew, true, is_roomy>
                  : gate_up_row_kernel<type, kMostRanked, true, is_roomy>;
  }
  if (ranking.scores) {
    return is_few ? gate_up_row_kernel<type, kFew, false, is_roomy>
                  : gate_up_row_kernel<type, kMostRanked, false, is_roomy>;
  }
  return gate_up_row_kernel<type, 0, false, is_roomy>;
}

template <Type type>
void run(const GateUp& p, const Launch& how) {
  const GateUpSizes sizes = gate_up_sizes<type>(p);
  const int room = row_room(how.shared_bytes), row_bytes = staged_row_bytes(sizes.shape.n_chunks);
  const RowRing ring = row_ring<type>(kUnitChunks, kMostSlots, room - row_bytes);
  const RowArgs args{sizes, p.ranking.missing ? *p.ranking.missing : FindMissing{},
                     ring.size.n_slots};
  const int needed = ring.n_bytes() + row_bytes;
  CHECK(needed <= room);
  const auto bytes = static_cast<size_t>(std::max(needed, std::min(kMinShared, room)));
  // A block for each 32 hidden values of each expert, and one to write the list.
  const int n_blocks = std::max(p.shape.d_ff, p.shape.shared_d_ff) / 32 * most_groups(p.shape, 1);
  const dim3 grid(static_cast<unsigned>(n_blocks + (p.ranking.scores ? 1 : 0)));
  const auto kernel =
      ring.is_roomy() ? kernel_for<type, true>(p.ranking) : kernel_for<type, false>(p.ranking);
  launch(kernel, grid, kThreads, bytes, how, args);
}

}  // namespace

void gate_up_row(const GateUp& p, const Launch& how) {
  CHECK(p.n_rows == 1);
  CHECK(!p.ranking.scores ||
        (p.ranking.n_experts <= kMostRanked && (p.shape.shared_d_ff == 0 || p.ranking.shared[0])));
  CHECK(!p.ranking.scores || (p.list.groups && p.list.n_groups));
  CHECK(!p.ranking.sums || (p.ranking.scores && p.ranking.x && p.ranking.norm &&
                            p.shape.d_model <= kSegment * NormedRow::kMostSegments));
  with_stripe_type(p.shape.gate_up_type, [&]<Type type>() { run<type>(p, how); });
}

}  // namespace sluice::backend::cuda
