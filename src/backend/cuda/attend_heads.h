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

// One head of a row, in three steps, since the second must wait for the kernel before and memory is
// far away: what is constant is read, then the row; then the head is made.
template <int dims>
class HeadMaker {
 public:
  SLUICE_LANE_FN HeadMaker(const Attend& p, int row, HeadKind kind, int head)
      : kind_(kind), row_(row), head_(head) {
    const bool is_whole = p.head_norm == NormOfHeads::whole;
    const float* const weight =
        (kind == HeadKind::query ? p.q_norm : p.k_norm) + (is_whole ? head * p.head_dim : 0);
    const float* const angles = p.angles + static_cast<int64_t>(row) * 2 * p.n_pairs;
    SLUICE_UNROLL for (int k = 0; k < kOwn; ++k) {
      EACH_LANE(lane) {
        const int i = lane + kWarp * k;
        w_[k][lane] = has_norm(p) && i < p.head_dim ? word_constant(weight + i) : 0.0f;
      }
    }
    SLUICE_UNROLL for (int k = 0; k < kPairs; ++k) {
      EACH_LANE(lane) {
        const int j = lane + kWarp * k;
        const bool turns = kind != HeadKind::value && j < p.n_pairs;
        cos_[k][lane] = turns ? word_constant(angles + j) : 0.0f;
        sin_[k][lane] = turns ? word_constant(angles + p.n_pairs + j) : 0.0f;
      }
    }
  }

  SLUICE_LANE_FN void read(const Attend& p) {
    const float* const own =
        all_heads(p) + head_ * (kind_ == HeadKind::query ? p.q_stride() : p.head_dim);
    SLUICE_UNROLL for (int k = 0; k < kOwn; ++k) {
      EACH_LANE(lane) {
        const int i = lane + kWarp * k;
        x_[k][lane] = i < p.head_dim ? word_past_l1(own + i) : 0.0f;
      }
    }
  }

  // out: [dims], zero behind head_dim.
  SLUICE_LANE_FN void write(const Attend& p, float* out) const {
    PerLane<float> scale{};
    if (has_norm(p)) scale = norm_scale(p);
    SLUICE_UNROLL for (int k = 0; k < kOwn; ++k) {
      EACH_LANE(lane) {
        out[lane + kWarp * k] =
            has_norm(p) ? mul_rn(mul_rn(x_[k][lane], scale[lane]), w_[k][lane]) : x_[k][lane];
      }
    }
    sync_lanes();
    if (kind_ != HeadKind::value) turn<kPairs>(p, cos_, sin_, out);
  }

 private:
  static constexpr int kOwn = dims / kWarp, kPairs = (dims / 2 + kWarp - 1) / kWarp;

  SLUICE_LANE_FN bool has_norm(const Attend& p) const {
    return kind_ != HeadKind::value && p.head_norm != NormOfHeads::none;
  }
  // The row's heads of this kind.
  SLUICE_LANE_FN const float* all_heads(const Attend& p) const {
    const int n_before = kind_ == HeadKind::query ? 0
                         : kind_ == HeadKind::key
                             ? p.n_heads * p.q_stride()
                             : p.n_heads * p.q_stride() + p.n_kv_heads * p.head_dim;
    return p.qkv + static_cast<int64_t>(row_) * p.qkv_cols() + n_before;
  }
  SLUICE_LANE_FN PerLane<float> norm_scale(const Attend& p) const {
    const bool is_whole = p.head_norm == NormOfHeads::whole;
    const int n =
        is_whole ? (kind_ == HeadKind::query ? p.n_heads : p.n_kv_heads) * p.head_dim : p.head_dim;
    PerLane<float> squares{}, scale;
    SLUICE_UNROLL for (int k = 0; k < kOwn; ++k) {
      EACH_LANE(lane) { squares[lane] = fma_rn(x_[k][lane], x_[k][lane], squares[lane]); }
    }
    squares = is_whole ? sum_of_squares(all_heads(p), n) : sum_of_lanes(squares);
    EACH_LANE(lane) {
      const float mean = div_rn(squares[lane], to_float(n));
      scale[lane] = div_rn(1.0f, sqrt_rn(add_rn(mean, p.eps)));
    }
    return scale;
  }

  HeadKind kind_;
  int row_, head_;
  PerLane<float> x_[kOwn], w_[kOwn], cos_[kPairs], sin_[kPairs];
};

template <int dims>
SLUICE_LANE_FN void make_head(const Attend& p, int row, HeadKind kind, int head, float* out) {
  HeadMaker<dims> maker(p, row, kind, head);
  maker.read(p);
  maker.write(p, out);
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
