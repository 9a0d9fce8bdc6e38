// What a warp does of a gated DeltaNet, in a kernel as in g++ (lanes.h); part of delta_net.cu.
//
// A block has a value head of a sequence, with the whole of its S in registers: a warp has eight
// columns (value dimensions), a lane four numbers of each. It goes through the sequence's rows in
// tiles of sixteen: first heads are made (a warp makes q, k or v of a row: convolution, SiLU,
// length), then every warp takes its columns through the tile's rows, then a warp normalises a row
// of the result. The order of sums is the same for every row, whatever is computed with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/contract.h"
#include "backend/cuda/delta_net.h"
#include "backend/cuda/segment.h"

#if !defined(__CUDACC__)
#include <cmath>
#endif

namespace sluice::backend::cuda {

constexpr int kDeltaTile = 16;    // rows
constexpr int kDeltaColumns = 8;  // of a warp
constexpr int kDeltaWarps = kDeltaDims / kDeltaColumns;
static_assert(kDeltaDims == 4 * kWarp);  // a lane has four numbers of a head

// What the warps of a block share: of the tile's rows.
struct DeltaTile {
  float q[kDeltaTile][kDeltaDims];
  float k[kDeltaTile][kDeltaDims];
  float v[kDeltaTile][kDeltaDims];
  float o[kDeltaTile][kDeltaDims];
  float entered[kDeltaTile][kDeltaDims];
  float decay[kDeltaTile], beta[kDeltaTile];
};

// The rows of a sequence in this step: first .. first + n - 1.
struct DeltaRows {
  int first, n;
};

// By a warp.
SLUICE_LANE_FN DeltaRows find_rows(const DeltaNetStep& p, int n_live, int sequence) {
  PerLane<int> counts;
  PerLane<uint32_t> last;  // 1 + its number; 0: there is none
  EACH_LANE(lane) {
    counts[lane] = 0, last[lane] = 0;
    SLUICE_UNROLL_4 for (int r = lane; r < n_live; r += kWarp) {
      if (word_past_l1(p.sequences + r) == sequence) {
        ++counts[lane];
        last[lane] = static_cast<uint32_t>(r + 1);
      }
    }
  }
  counts = sum_of_lanes(counts);
  last = most_of_lanes(last);
  const int n = from_lane(counts, 0);
  return {static_cast<int>(from_lane(last, 0)) - n, n};
}

SLUICE_LANE_FN float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

SLUICE_LANE_FN int64_t conv_cols_of(const DeltaNetStep& p) {
  return static_cast<int64_t>(2 * p.n_key_heads + p.n_value_heads) * p.head_dim;
}
SLUICE_LANE_FN int key_head_of(const DeltaNetStep& p, int head) {
  return p.by_remainder ? head % p.n_key_heads : head / (p.n_value_heads / p.n_key_heads);
}
// The first of those that read the same key head.
SLUICE_LANE_FN bool is_first_of_key_head(const DeltaNetStep& p, int head) {
  return p.by_remainder ? head < p.n_key_heads : head % (p.n_value_heads / p.n_key_heads) == 0;
}

// What a token did to the layer's state, as DeltaNetView has it. Its parts may stand anywhere.
class DeltaUpdate {
 public:
  SLUICE_LANE_FN DeltaUpdate(const DeltaNetStep& p, int sequence, int position)
      : at_(p.updates + (static_cast<int64_t>(sequence) * p.n_places + position % p.n_places) *
                            p.update_stride) {}

  SLUICE_LANE_FN float* inputs() const { return at_; }
  SLUICE_LANE_FN float* k(const DeltaNetStep& p, int head) const {
    return at_ + conv_cols_of(p) + static_cast<int64_t>(key_head_of(p, head)) * p.head_dim;
  }
  SLUICE_LANE_FN float* entered(const DeltaNetStep& p, int head) const {
    return at_ + conv_cols_of(p) + static_cast<int64_t>(p.n_key_heads + head) * p.head_dim;
  }
  SLUICE_LANE_FN float* decay(const DeltaNetStep& p, int head) const {
    return at_ + conv_cols_of(p) +
           static_cast<int64_t>(p.n_key_heads + p.n_value_heads) * p.head_dim + head;
  }

  static SLUICE_LANE_FN void write(float* to, const float4& v) {
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  }
  static SLUICE_LANE_FN float4 read(const float* from) {
    return {word_past_l1(from), word_past_l1(from + 1), word_past_l1(from + 2),
            word_past_l1(from + 3)};
  }

 private:
  float* at_;
};

// One value head of one sequence.
class DeltaHead {
 public:
  SLUICE_LANE_FN DeltaHead(const DeltaNetStep& p, int head, int sequence, const DeltaRows& rows)
      : head_(head),
        key_head_(key_head_of(p, head)),
        sequence_(sequence),
        is_first_(is_first_of_key_head(p, head)),
        logs_(p.updates && rows.n <= p.max_logged_rows),
        rows_(rows) {
    const int32_t from = word_past_l1(p.from + sequence), to = word_past_l1(p.to + sequence);
    before_ = from < 0 ? nullptr : p.states + from * p.state_stride;
    after_ = p.states + to * p.state_stride;
  }

  // q, k and v of row t of the sequence, which is row `at` of the tile: item 0, 1 or 2.
  SLUICE_LANE_FN void make(const DeltaNetStep& p, int item, int t, int at, DeltaTile& tile) const {
    const int column = column_of(p, item);
    PerLane<float4> x;
    EACH_LANE(lane) { x[lane] = convolved(p, column, t, lane); }
    if (item < 2) {
      const PerLane<float> squares = segment_squares(x);
      EACH_LANE(lane) {
        const float length = item == 0 ? div_rn(1.0f, sqrt_rn(to_float(p.head_dim))) : 1.0f;
        x[lane] = scaled(x[lane], div_rn(length, sqrt_rn(add_rn(squares[lane], p.eps))));
      }
    } else {
      EACH_LANE(lane) {
        if (lane == 0) make_gates(p, t, at, tile);
      }
    }
    if (logs_) log_made(p, item, column, t, at, tile, x);
    float* const out = item == 0 ? tile.q[at] : item == 1 ? tile.k[at] : tile.v[at];
    EACH_LANE(lane) {
      out[4 * lane] = x[lane].x, out[4 * lane + 1] = x[lane].y;
      out[4 * lane + 2] = x[lane].z, out[4 * lane + 3] = x[lane].w;
    }
  }

  // The last inputs of the convolution, for the next step; of q and k by the first of the heads
  // that share them.
  SLUICE_LANE_FN void keep_inputs(const DeltaNetStep& p, int item) const {
    if (item < 2 && !is_first_) return;
    const int column = column_of(p, item);
    SLUICE_ROLLED for (int i = 0; i < p.n_taps - 1; ++i) {
      EACH_LANE(lane) {
        if (4 * lane < p.head_dim) {
          const float4 x = input(p, column, rows_.n - 1, p.n_taps - 2 - i, lane);
          store(after_ + i * conv_cols(p) + column + 4 * lane, x);
        }
      }
    }
  }

  // Row t of the result, which is row `at` of the tile: norm(o) SiLU(z).
  SLUICE_LANE_FN void finish(const DeltaNetStep& p, int t, int at, const DeltaTile& tile) const {
    const float* const o = tile.o[at];
    if (logs_) {
      float* const entered = update_of(p, t).entered(p, head_);
      EACH_LANE(lane) {
        SLUICE_UNROLL for (int i = 4 * lane; i < 4 * lane + 4; ++i) {
          if (i < p.head_dim) entered[i] = tile.entered[at][i];
        }
      }
    }
    const int row = rows_.first + t, column = head_ * p.head_dim;
    const float* const z = p.in + row * in_cols(p) + conv_cols(p) + column;
    PerLane<float4> v;
    EACH_LANE(lane) { v[lane] = {o[4 * lane], o[4 * lane + 1], o[4 * lane + 2], o[4 * lane + 3]}; }
    const PerLane<float> squares = segment_squares(v);
    EACH_LANE(lane) {
      const float mean = div_rn(squares[lane], to_float(p.head_dim));
      const float scale = div_rn(1.0f, sqrt_rn(add_rn(mean, p.eps)));
      if (4 * lane < p.head_dim) {
        const float4 g = load_past_l1(z + 4 * lane);
        v[lane] = normalized(v[lane], scale, load_constant(p.norm + 4 * lane));
        v[lane] = {mul_rn(v[lane].x, silu(g.x)), mul_rn(v[lane].y, silu(g.y)),
                   mul_rn(v[lane].z, silu(g.z)), mul_rn(v[lane].w, silu(g.w))};
      }
    }
    write(p, row, head_, v);
  }

  // Four values of a lane, to f32 and int8.
  static SLUICE_LANE_FN void write(const DeltaNetStep& p, int row, int head,
                                   const PerLane<float4>& v) {
    const int column = head * p.head_dim;
    EACH_LANE(lane) {
      if (4 * lane < p.head_dim) {
        store(p.out + static_cast<int64_t>(row) * p.n_value_heads * p.head_dim + column + 4 * lane,
              v[lane]);
      }
    }
    if (!p.out_int8) return;
    PerLane<Int8Place> places;
    EACH_LANE(lane) {
      const int at = column + 4 * lane;
      const int64_t block = static_cast<int64_t>(row) * p.out_int8.n_chunks * 8 + at / 32;
      places[lane] = {p.out_int8.q + 32 * block + at % 32, p.out_int8.d + block,
                      p.out_int8.y + block, 4 * lane < p.head_dim};
    }
    quantize_segment(v, places);
  }

  // Where column j of S stands, before the step (null: zeros) and after it.
  SLUICE_LANE_FN const float* column_before(const DeltaNetStep& p, int j) const {
    return before_ ? before_ + column_at(p, j) : nullptr;
  }
  SLUICE_LANE_FN float* column_after(const DeltaNetStep& p, int j) const {
    return after_ + column_at(p, j);
  }

  static SLUICE_LANE_FN void store(float* to, const float4& v) {
#if defined(__CUDACC__)
    *reinterpret_cast<float4*>(to) = v;
#else
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
#endif
  }

 private:
  static SLUICE_LANE_FN int64_t conv_cols(const DeltaNetStep& p) { return conv_cols_of(p); }
  SLUICE_LANE_FN DeltaUpdate update_of(const DeltaNetStep& p, int t) const {
    return {p, sequence_, word_past_l1(p.positions + rows_.first + t)};
  }
  // The convolution's input, k and the decay: what is of q and k by the first that share it.
  SLUICE_LANE_FN void log_made(const DeltaNetStep& p, int item, int column, int t, int at,
                               const DeltaTile& tile, const PerLane<float4>& made) const {
    if (item < 2 && !is_first_) return;
    const DeltaUpdate update = update_of(p, t);
    EACH_LANE(lane) {
      if (4 * lane < p.head_dim) {
        DeltaUpdate::write(update.inputs() + column + 4 * lane, input(p, column, t, 0, lane));
        if (item == 1) DeltaUpdate::write(update.k(p, head_) + 4 * lane, made[lane]);
      }
      if (item == 2 && lane == 0) *update.decay(p, head_) = tile.decay[at];
    }
  }
  static SLUICE_LANE_FN int64_t in_cols(const DeltaNetStep& p) {
    return conv_cols(p) + static_cast<int64_t>(p.n_value_heads) * (p.head_dim + 2);
  }
  SLUICE_LANE_FN int64_t column_at(const DeltaNetStep& p, int j) const {
    return (p.n_taps - 1) * conv_cols(p) +
           (static_cast<int64_t>(head_) * p.head_dim + j) * p.head_dim;
  }
  SLUICE_LANE_FN int column_of(const DeltaNetStep& p, int item) const {
    const int head = item == 0   ? key_head_
                     : item == 1 ? p.n_key_heads + key_head_
                                 : 2 * p.n_key_heads + head_;
    return head * p.head_dim;
  }

  // Four inputs of the convolution, `back` rows before row t of the sequence.
  SLUICE_LANE_FN float4 input(const DeltaNetStep& p, int column, int t, int back, int lane) const {
    if (t >= back) {
      return load_past_l1(p.in + (rows_.first + t - back) * in_cols(p) + column + 4 * lane);
    }
    if (!before_) return {0, 0, 0, 0};
    return load_past_l1(before_ + (p.n_taps - 1 + t - back) * conv_cols(p) + column + 4 * lane);
  }

  SLUICE_LANE_FN float4 convolved(const DeltaNetStep& p, int column, int t, int lane) const {
    float4 sum{0, 0, 0, 0};
    if (4 * lane >= p.head_dim) return sum;
    const float* const taps = p.conv + static_cast<int64_t>(column + 4 * lane) * p.n_taps;
    SLUICE_UNROLL_4 for (int tap = 0; tap < p.n_taps; ++tap) {
      const float4 x = input(p, column, t, p.n_taps - 1 - tap, lane);
      sum.x = fma_rn(word_constant(taps + tap), x.x, sum.x);
      sum.y = fma_rn(word_constant(taps + p.n_taps + tap), x.y, sum.y);
      sum.z = fma_rn(word_constant(taps + 2 * p.n_taps + tap), x.z, sum.z);
      sum.w = fma_rn(word_constant(taps + 3 * p.n_taps + tap), x.w, sum.w);
    }
    return {silu(sum.x), silu(sum.y), silu(sum.z), silu(sum.w)};
  }

  SLUICE_LANE_FN void make_gates(const DeltaNetStep& p, int t, int at, DeltaTile& tile) const {
    const int n_sharing = p.n_value_heads / p.n_key_heads;
    const int b =
        p.gates_by_key_head ? head_ / n_sharing * 2 * n_sharing + head_ % n_sharing : head_;
    const int a = b + (p.gates_by_key_head ? n_sharing : p.n_value_heads);
    const float* const gates = p.in + (rows_.first + t) * in_cols(p) + conv_cols(p) +
                               static_cast<int64_t>(p.n_value_heads) * p.head_dim;
    const float rate =
        softplus(add_rn(word_past_l1(gates + a), word_constant(p.time_bias + head_)));
    tile.decay[at] = contract_exp(mul_rn(word_constant(p.decay + head_), rate));
    tile.beta[at] = sigmoid(word_past_l1(gates + b));
  }

  static SLUICE_LANE_FN float4 scaled(float4 v, float by) {
    return {mul_rn(v.x, by), mul_rn(v.y, by), mul_rn(v.z, by), mul_rn(v.w, by)};
  }

  int head_, key_head_, sequence_;
  bool is_first_;  // of those that share a key head
  bool logs_;
  DeltaRows rows_;
  const float* before_;
  float* after_;
};

// Eight sums over all lanes; lane l gets that of value l / 4. In nine exchanges: with each of the
// first three a lane gives away half of the values that it has.
SLUICE_LANE_FN PerLane<float> sum_of_eight(PerLane<float> (&values)[kDeltaColumns]) {
  SLUICE_UNROLL for (int n = kDeltaColumns / 2, mask = 16; n > 0; n /= 2, mask /= 2) {
    SLUICE_UNROLL for (int c = 0; c < n; ++c) {
      PerLane<float> given;
      EACH_LANE(lane) {
        const bool is_upper = (lane & mask) != 0;
        const float keeps = is_upper ? values[c + n][lane] : values[c][lane];
        given[lane] = is_upper ? values[c][lane] : values[c + n][lane];
        values[c][lane] = keeps;
      }
      EACH_LANE(lane) { values[c][lane] = add_rn(values[c][lane], from_other(given, lane, mask)); }
    }
  }
  return fold_lanes<4>(values[0], [](float a, float b) { return add_rn(a, b); });
}

// A warp's columns of S, from `first` on.
class DeltaColumns {
 public:
  SLUICE_LANE_FN void load(const DeltaNetStep& p, const DeltaHead& head, int first) {
    load(p, head.column_before(p, 0), first);
  }
  // Of the head's S from there on; null: zeros.
  SLUICE_LANE_FN void load(const DeltaNetStep& p, const float* columns, int first) {
    first_ = first;
    SLUICE_UNROLL for (int c = 0; c < kDeltaColumns; ++c) {
      const bool exists = columns && first + c < p.head_dim;
      const float* const from = exists ? columns + (first + c) * p.head_dim : nullptr;
      EACH_LANE(lane) {
        s_[c][lane] =
            from && 4 * lane < p.head_dim ? load_past_l1(from + 4 * lane) : float4{0, 0, 0, 0};
      }
    }
  }

  SLUICE_LANE_FN void store(const DeltaNetStep& p, const DeltaHead& head) const {
    store(p, head.column_after(p, 0));
  }
  SLUICE_LANE_FN void store(const DeltaNetStep& p, float* columns) const {
    SLUICE_UNROLL for (int c = 0; c < kDeltaColumns; ++c) {
      if (first_ + c >= p.head_dim) continue;
      float* const to = columns + (first_ + c) * p.head_dim;
      EACH_LANE(lane) {
        if (4 * lane < p.head_dim) DeltaHead::store(to + 4 * lane, s_[c][lane]);
      }
    }
  }

  // e = beta (v - decay S^T k);  S = decay S + k (x) e;  o = S^T q.
  SLUICE_LANE_FN void step(DeltaTile& tile, int at) {
    PerLane<float4> k, q;
    EACH_LANE(lane) {
      k[lane] = four(tile.k[at] + 4 * lane);
      q[lane] = four(tile.q[at] + 4 * lane);
    }
    const float decay = tile.decay[at], beta = tile.beta[at];
    PerLane<float> sums[kDeltaColumns];
    SLUICE_UNROLL for (int c = 0; c < kDeltaColumns; ++c) {
      EACH_LANE(lane) { sums[c][lane] = dot(s_[c][lane], k[lane]); }
    }
    PerLane<float> enters = sum_of_eight(sums);
    EACH_LANE(lane) {
      const float v = tile.v[at][first_ + lane / 4];
      enters[lane] = mul_rn(beta, fma_rn(-decay, enters[lane], v));
    }
    SLUICE_UNROLL for (int c = 0; c < kDeltaColumns; ++c) {
      EACH_LANE(lane) {
        update(s_[c][lane], from_lane(enters, 4 * c), k[lane], decay);
        sums[c][lane] = dot(s_[c][lane], q[lane]);
      }
    }
    const PerLane<float> o = sum_of_eight(sums);
    EACH_LANE(lane) {
      if (lane % 4 == 0) {
        tile.o[at][first_ + lane / 4] = o[lane];
        tile.entered[at][first_ + lane / 4] = enters[lane];
      }
    }
  }

  // The same once more, of what a token left.
  SLUICE_LANE_FN void replay(const DeltaNetStep& p, const DeltaUpdate& token, int head) {
    const float decay = word_past_l1(token.decay(p, head));
    const float* const entered = token.entered(p, head) + first_;
    PerLane<float4> k;
    EACH_LANE(lane) {
      k[lane] = 4 * lane < p.head_dim ? DeltaUpdate::read(token.k(p, head) + 4 * lane)
                                      : float4{0, 0, 0, 0};
    }
    SLUICE_UNROLL for (int c = 0; c < kDeltaColumns; ++c) {
      const float e = first_ + c < p.head_dim ? word_past_l1(entered + c) : 0.0f;
      EACH_LANE(lane) { update(s_[c][lane], e, k[lane], decay); }
    }
  }

 private:
  static SLUICE_LANE_FN void update(float4& s, float e, const float4& k, float decay) {
    s.x = fma_rn(e, k.x, mul_rn(decay, s.x));
    s.y = fma_rn(e, k.y, mul_rn(decay, s.y));
    s.z = fma_rn(e, k.z, mul_rn(decay, s.z));
    s.w = fma_rn(e, k.w, mul_rn(decay, s.w));
  }
  static SLUICE_LANE_FN float4 four(const float* p) { return {p[0], p[1], p[2], p[3]}; }
  static SLUICE_LANE_FN float dot(const float4& a, const float4& b) {
    return fma_rn(a.w, b.w, fma_rn(a.z, b.z, fma_rn(a.y, b.y, mul_rn(a.x, b.x))));
  }

  int first_ = 0;
  PerLane<float4> s_[kDeltaColumns];
};

// A warp's part of a replay: its columns of a head's S; and of the convolution's last inputs those
// of the head's v, or of q and k: item 0, 1 or 2.
SLUICE_LANE_FN void replay_columns(const DeltaReplay& way, int head, int warp) {
  const DeltaNetStep& p = way.of;
  const int64_t matrix =
      (p.n_taps - 1) * conv_cols_of(p) + static_cast<int64_t>(head) * p.head_dim * p.head_dim;
  DeltaColumns columns;
  columns.load(p, way.from < 0 ? nullptr : p.states + way.from * p.state_stride + matrix,
               warp * kDeltaColumns);
  SLUICE_ROLLED for (int position = way.begin; position < way.end; ++position) {
    columns.replay(p, DeltaUpdate(p, way.sequence, position), head);
  }
  columns.store(p, p.states + way.to * p.state_stride + matrix);
}
SLUICE_LANE_FN void replay_inputs(const DeltaReplay& way, int head, int item) {
  const DeltaNetStep& p = way.of;
  if (item < 2 && !is_first_of_key_head(p, head)) return;
  const int of_item = item == 0   ? key_head_of(p, head)
                      : item == 1 ? p.n_key_heads + key_head_of(p, head)
                                  : 2 * p.n_key_heads + head;
  const int column = of_item * p.head_dim, n_kept = p.n_taps - 1;
  SLUICE_ROLLED for (int i = 0; i < n_kept; ++i) {
    const int position = way.end - n_kept + i;
    const float* from = nullptr;
    if (position >= way.begin) {
      from = DeltaUpdate(p, way.sequence, position).inputs() + column;
    } else if (way.from >= 0) {
      from = p.states + way.from * p.state_stride +
             (n_kept + position - way.begin) * conv_cols_of(p) + column;
    }
    float* const to = p.states + way.to * p.state_stride + i * conv_cols_of(p) + column;
    EACH_LANE(lane) {
      if (4 * lane < p.head_dim) {
        DeltaHead::store(to + 4 * lane,
                         from ? DeltaUpdate::read(from + 4 * lane) : float4{0, 0, 0, 0});
      }
    }
  }
}

}  // namespace sluice::backend::cuda
