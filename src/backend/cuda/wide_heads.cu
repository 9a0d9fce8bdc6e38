// The heads of a step of many rows: norm, rope, append to the KV cache; and queries as
// wide_attend.cu or group_attend.cu reads them.
//
// Layout   queries: [n_rows, n_heads, 2, dims] halves; caches as in backend/kv_page.h.
// Mapping  a warp has a head of a row, in shared memory.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/wide_heads.h"

#include "backend/cuda/kv_rows.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/wide_attend_pass.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = 8;

template <int dims, bool bf16>
__global__ void __launch_bounds__(kWarps* kWarp)
    wide_heads_kernel(const __grid_constant__ WideAttend p) {
  __shared__ float heads[kWarps][dims];
  const Attend& of = p.of;
  const int r = static_cast<int>(blockIdx.y), lane = lane_index();
  const int h = static_cast<int>(blockIdx.x) * kWarps + warp_index();
  let_next_kernel_begin();
  wait_for_previous_kernel();
  if (h >= of.n_heads + 2 * of.n_kv_heads || (of.n_live && r >= __ldcg(of.n_live))) return;
  const HeadKind kind = h < of.n_heads                   ? HeadKind::query
                        : h < of.n_heads + of.n_kv_heads ? HeadKind::key
                                                         : HeadKind::value;
  const int own = kind == HeadKind::query ? h
                  : kind == HeadKind::key ? h - of.n_heads
                                          : h - of.n_heads - of.n_kv_heads;
  Attend shape = of;
  shape.eps = kind == HeadKind::query ? p.q_eps : p.k_eps;
  float* const head = heads[warp_index()];
  make_head<dims>(shape, r, kind, own, head);
  if (kind == HeadKind::query) {
    const int64_t at = static_cast<int64_t>(r) * of.n_heads + own;
    const float scale =
        write_query<dims, bf16>(head, of.head_dim, p.by_groups, p.queries + at * kQueryParts * dims)
            .value;
    if (lane == 0) p.scales[at] = scale;
    return;
  }
  const int position = __ldcg(of.positions + r);
  const int64_t sequence = __ldcg(of.sequences + r);
  const int id = __ldcg(of.page_table + sequence * of.table_stride + (position >> of.page_shift));
  const int token = position & ((1 << of.page_shift) - 1);
  store_row(of.kv_type, head, of.head_dim, lane,
            row_at(kind == HeadKind::key ? of.k : of.v, p.page, id, own, token));
}

template <int dims>
void run(const WideAttend& p, const Launch& how) {
  const int n = p.of.n_heads + 2 * p.of.n_kv_heads;
  const dim3 grid(static_cast<unsigned>((n + kWarps - 1) / kWarps),
                  static_cast<unsigned>(p.of.n_rows));
  launch(
      p.of.kv_type == Type::bf16 ? wide_heads_kernel<dims, true> : wide_heads_kernel<dims, false>,
      grid, kWarps * kWarp, 0, how, p);
}

}  // namespace

void wide_heads(const WideAttend& p, const Launch& how) {
  switch (wide_dims(p.of.head_dim)) {
    case 64:
      return run<64>(p, how);
    case 128:
      return run<128>(p, how);
    default:
      return run<256>(p, how);
  }
}

}  // namespace sluice::backend::cuda
