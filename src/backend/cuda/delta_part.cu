// The gated delta rule of steps of few rows, a head on four SMs (delta_part_body.h).
//
// Layout   as in delta_net.h.
// Mapping  a cluster of four blocks is a value head of a sequence. Each makes q, k and its gates
//          for itself and takes its 32 columns of S through the rows; o goes to the block that
//          finishes the row, into its shared memory. All that does not come from the kernel before
//          is asked for before the wait: S, the convolution's weights and earlier inputs, norms.
// Limits   those of delta_net(); n_rows <= 16 and n_taps <= 4; clusters.
// Cost     registers and shared memory leave room beside two blocks of project_row on an SM, so
//          that it begins there while these still work. See docs/decisions/0024.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/delta_part.h"

#include "backend/cuda/delta_part_body.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/warp.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Where blocks of the cluster send a row's o, and the barrier that counts its bytes.
class SentRows {
 public:
  __device__ __forceinline__ SentRows(float (&o)[kFinishRows][kDeltaDims], uint64_t& barrier)
      : o_(address(&o[0][0])), barrier_(address(&barrier)) {}

  // By one thread, before the cluster's barrier.
  __device__ __forceinline__ void open(int n_bytes) const {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier_) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier_),
                 "r"(n_bytes)
                 : "memory");
  }
  __device__ __forceinline__ void send(int t, int column, float value) const {
    const unsigned to = t % kDeltaParts;
    const unsigned at = o_ + 4 * (t / kDeltaParts * kDeltaDims + column);
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                     in_block(at, to)),
                 "r"(__float_as_uint(value)), "r"(in_block(barrier_, to))
                 : "memory");
  }
  __device__ __forceinline__ void await() const {
    unsigned done = 0;
    while (!done) {
      asm volatile(
          "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; "
          "selp.u32 %0, 1, 0, p;}"
          : "=r"(done)
          : "r"(barrier_)
          : "memory");
    }
  }

 private:
  static __device__ __forceinline__ unsigned address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
  }
  static __device__ __forceinline__ unsigned in_block(unsigned own, unsigned block) {
    unsigned other;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(own), "r"(block));
    return other;
  }

  unsigned o_, barrier_;
};

// All blocks of the cluster have begun, and opened their barriers.
__device__ __forceinline__ void arrive_in_cluster() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
__device__ __forceinline__ void await_cluster() {
  asm volatile("barrier.cluster.wait;" ::: "memory");
}

__device__ __forceinline__ void write_padding(const DeltaNetStep& p, int head) {
#pragma unroll 1
  for (int row = __ldcg(p.n_live) + warp_index(); row < p.n_rows; row += kDeltaPartWarps) {
    write_delta_row(p, row, head, {float4{0, 0, 0, 0}});
  }
}

#endif

// 80 registers: as many as two blocks of project_row leave for 256 threads.
__global__ void __launch_bounds__(kDeltaPartWarps* kWarp, 3)
    delta_part_kernel(const __grid_constant__ DeltaNetStep p) {
#if __CUDA_ARCH__ >= 900
  __shared__ DeltaPartTile tile;
  __shared__ uint64_t arrived;
  const int part = static_cast<int>(blockIdx.x) % kDeltaParts;
  const int head = static_cast<int>(blockIdx.x) / kDeltaParts;
  const int sequence = static_cast<int>(blockIdx.y), warp = warp_index();
  let_next_kernel_begin();
  const DeltaRows rows = find_part_rows(p, sequence);
  if (rows.n == 0) {
    wait_for_previous_kernel();
    if (sequence == 0 && part == 0) write_padding(p, head);
    return;
  }
  const DeltaHead own(p, head, sequence, rows);
  DeltaPartColumns columns;
  columns.load(p, own.column_before(p, 0), part * kDeltaPartColumns + warp * kDeltaPartOfWarp);
  const SentRows sent(tile.o, arrived);
  if (threadIdx.x == 0) {
    const int n_finished = (rows.n - part + kDeltaParts - 1) / kDeltaParts;
    sent.open(n_finished * p.head_dim * static_cast<int>(sizeof(float)));
  }
  arrive_in_cluster();
  const auto await_others = [] {
    await_cluster();
    wait_for_previous_kernel();
  };

  PerLane<float4> norm{}, gate{};
  const int finished = kDeltaParts * (warp - kFinishWarp) + part;
  const bool finishes = warp >= kFinishWarp && finished < rows.n;
  if (warp < kGateWarp) {
    DeltaPartMaker maker(p, own, warp, part);
    maker.leave_earlier(tile);
    await_others();
    maker.make(p, rows, tile);
  } else if (warp == kGateWarp) {
    const DeltaGateWeights weights(p, head);
    if (own.logs()) read_part_positions(p, rows, tile);
    await_others();
    make_part_gates(p, weights, head, rows, tile);
  } else {
    norm = delta_norm_weights(p);
    await_others();
    if (finishes) gate = delta_out_gate(p, rows.first + finished, head);
  }
  __syncthreads();
#pragma unroll 1
  for (int t = 0; t < rows.n; ++t) {
    columns.step(p, tile.rows[t], [&](int column, float o) { sent.send(t, column, o); });
  }
  columns.store(p, own.column_after(p, 0));
  if (warp < kGateWarp) keep_part_inputs(p, own, part, rows, tile, warp);
  if (own.logs()) {
    __syncthreads();
    log_part_rows(p, own, head, part, sequence, rows, tile, warp);
  }
  if (finishes) {
    sent.await();
    PerLane<float4> v = sent_row(p, tile, warp - kFinishWarp);
    finish_delta_row(p, rows.first + finished, head, norm, gate, v);
  }
  if (sequence == 0 && part == 0) write_padding(p, head);
#endif
}

}  // namespace

bool can_part_delta(const DeltaNetStep& p, const Launch& how) {
  return how.clusters && p.n_rows <= kDeltaPartRows && p.n_taps <= kDeltaMostTaps;
}

void part_delta_net(const DeltaNetStep& p, const Launch& how) {
  CHECK(p.head_dim <= kDeltaDims && p.n_rows <= kDeltaPartRows && p.n_taps <= kDeltaMostTaps);
  const dim3 grid(static_cast<unsigned>(kDeltaParts * p.n_value_heads),
                  static_cast<unsigned>(p.n_sequences));
  launch(delta_part_kernel, grid, kDeltaPartWarps * kWarp, 0, how, p, kDeltaParts);
}

}  // namespace sluice::backend::cuda
