// One head of a row of qkv in shared memory, by one warp: normalised and turned where it is a query
// or a key. And a head as the cache stores it. In a kernel as in g++ (lanes.h); part of attend.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/attend.h"
#include "backend/cuda/lanes.h"

namespace sluice::backend::cuda {

enum class HeadKind { query, key, value };

SLUICE_LANE_FN uint16_t to_bf16(float x) {  // nearest, ties to even
  const uint32_t bits = bits_of(x);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Sum of squares of n values, by one warp, in one order.
SLUICE_LANE_FN PerLane<float> sum_of_squares(const float* x, int n) {
  PerLane<float> sums;
  EACH_LANE(lane) {
    sums[lane] = 0.0f;
    SLUICE_UNROLL_4 for (int i = lane; i < n; i += kWarp) {
      const float v = word_past_l1(x + i);
      sums[lane] = fma_rn(v, v, sums[lane]);
    }
  }
  return sum_of_lanes(sums);
}

// (x0, x1) -> (x0 cos - x1 sin, x0 sin + x1 cos), for pairs lane, lane + 32, ...
template <int n>
SLUICE_LANE_FN void turn(const Attend& p, const PerLane<float> (&cos)[n],
                         const PerLane<float> (&sin)[n], float* head) {
  SLUICE_UNROLL for (int k = 0; k < n; ++k) {
    EACH_LANE(lane) {
      const int j = lane + kWarp * k;
      if (j < p.n_pairs) {
        float& a = head[p.pairs_are_adjacent ? 2 * j : j];
        float& b = head[p.pairs_are_adjacent ? 2 * j + 1 : j + p.n_pairs];
        const float x0 = a, x1 = b;
        a = sub_rn(mul_rn(x0, cos[k][lane]), mul_rn(x1, sin[k][lane]));
        b = add_rn(mul_rn(x0, sin[k][lane]), mul_rn(x1, cos[k][lane]));
      }
    }
  }
  sync_lanes();
}

// out: [dims], zero behind head_dim.
template <int dims>
SLUICE_LANE_FN void make_head(const Attend& p, int row, HeadKind kind, int head, float* out) {
  const int n_before = kind == HeadKind::query ? 0
                       : kind == HeadKind::key ? p.n_heads
                                               : p.n_heads + p.n_kv_heads;
  const float* const all = p.qkv +
                           static_cast<int64_t>(row) * (p.n_heads + 2 * p.n_kv_heads) * p.head_dim +
                           static_cast<int64_t>(n_before) * p.head_dim;
  const float* const own = all + head * p.head_dim;
  const float* weight = kind == HeadKind::query ? p.q_norm : p.k_norm;
  const bool is_whole = p.head_norm == NormOfHeads::whole;
  const bool has_norm = kind != HeadKind::value && p.head_norm != NormOfHeads::none;
  if (is_whole) weight += head * p.head_dim;
  // All that is read, at once.
  constexpr int kOwn = dims / kWarp, kPairs = (dims / 2 + kWarp - 1) / kWarp;
  PerLane<float> x[kOwn], w[kOwn], cos[kPairs], sin[kPairs];
  const float* const angles = p.angles + static_cast<int64_t>(row) * 2 * p.n_pairs;
  SLUICE_UNROLL for (int k = 0; k < kOwn; ++k) {
    EACH_LANE(lane) {
      const int i = lane + kWarp * k;
      x[k][lane] = i < p.head_dim ? word_past_l1(own + i) : 0.0f;
      w[k][lane] = has_norm && i < p.head_dim ? word_constant(weight + i) : 0.0f;
    }
  }
  SLUICE_UNROLL for (int k = 0; k < kPairs; ++k) {
    EACH_LANE(lane) {
      const int j = lane + kWarp * k;
      const bool turns = kind != HeadKind::value && j < p.n_pairs;
      cos[k][lane] = turns ? word_constant(angles + j) : 0.0f;
      sin[k][lane] = turns ? word_constant(angles + p.n_pairs + j) : 0.0f;
    }
  }
  PerLane<float> scale{};
  if (has_norm) {
    const int n =
        is_whole ? (kind == HeadKind::query ? p.n_heads : p.n_kv_heads) * p.head_dim : p.head_dim;
    PerLane<float> squares{};
    SLUICE_UNROLL for (int k = 0; k < kOwn; ++k) {
      EACH_LANE(lane) { squares[lane] = fma_rn(x[k][lane], x[k][lane], squares[lane]); }
    }
    squares = is_whole ? sum_of_squares(all, n) : sum_of_lanes(squares);
    EACH_LANE(lane) {
      const float mean = div_rn(squares[lane], to_float(n));
      scale[lane] = div_rn(1.0f, sqrt_rn(add_rn(mean, p.eps)));
    }
  }
  SLUICE_UNROLL for (int k = 0; k < kOwn; ++k) {
    EACH_LANE(lane) {
      out[lane + kWarp * k] =
          has_norm ? mul_rn(mul_rn(x[k][lane], scale[lane]), w[k][lane]) : x[k][lane];
    }
  }
  sync_lanes();
  if (kind != HeadKind::value) turn<kPairs>(p, cos, sin, out);
}

// Rounds a head of `dims` numbers, zero behind head_dim, as the cache stores it; and stores its
// head_dim numbers at `stored`, if that is given.
template <int dims, bool bf16>
SLUICE_LANE_FN void round_head(const float* head, int head_dim, uint16_t* rounded,
                               uint16_t* stored) {
  EACH_LANE(lane) {
    SLUICE_ROLLED for (int i = lane; i < dims; i += kWarp) {
      const uint16_t bits = bf16 ? to_bf16(head[i]) : to_f16(head[i]);
      rounded[i] = bits;
      if (stored && i < head_dim) stored[i] = bits;
    }
  }
  sync_lanes();
}

}  // namespace sluice::backend::cuda
