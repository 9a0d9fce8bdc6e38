// What a warp does of a gated DeltaNet, in a kernel as in g++ (lanes.h); part of delta_net.cu.
// Steps of many rows have another (wide_delta_body.h), with the same formulas and the same bits.
//
// A block has a value head of a sequence, with the whole of its S in registers: a warp has eight
// columns (value dimensions), a lane four numbers of each. It goes through the sequence's rows in
// tiles of sixteen: first heads are made (a warp makes q, k or v of a row: convolution, SiLU,
// length), then every warp takes its columns through the tile's rows, then a warp normalises a row
// of the result. The order of sums is the same for every row, whatever is computed with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/delta_net_formulas.h"

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

// What a token did to the layer's state, as DeltaNetView has it. Its parts may stand anywhere. Null
// where no updates are left.
class DeltaUpdate {
 public:
  SLUICE_LANE_FN DeltaUpdate(const DeltaNetStep& p, int sequence, int position)
      : at_(p.updates ? p.updates +
                            (static_cast<int64_t>(sequence) * p.n_places + position % p.n_places) *
                                p.update_stride
                      : nullptr) {}

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
      : DeltaHead(p, head, sequence, rows, word_past_l1(p.from + sequence),
                  word_past_l1(p.to + sequence)) {}
  // With the numbers of the states before and behind the step.
  SLUICE_LANE_FN DeltaHead(const DeltaNetStep& p, int head, int sequence, const DeltaRows& rows,
                           int32_t from, int32_t to)
      : head_(head),
        key_head_(key_head_of(p, head)),
        sequence_(sequence),
        is_first_(is_first_of_key_head(p, head)),
        logs_(p.updates && rows.n <= p.max_logged_rows),
        rows_(rows),
        before_(from < 0 ? nullptr : p.states + from * p.state_stride),
        after_(p.states + to * p.state_stride) {}

  // q, k and v of row t of the sequence, which is row `at` of the tile: item 0, 1 or 2.
  SLUICE_LANE_FN void make(const DeltaNetStep& p, int item, int t, int at, DeltaTile& tile) const {
    const int column = column_of(p, item);
    PerLane<float4> x;
    EACH_LANE(lane) { x[lane] = convolved(p, column, t, lane); }
    if (item < 2) {
      set_length(p, delta_length(p, item), x);
    } else {
      EACH_LANE(lane) {
        if (lane == 0) {
          const DeltaGates gates = delta_gates(p, head_, rows_.first + t);
          tile.decay[at] = gates.decay, tile.beta[at] = gates.beta;
        }
      }
    }
    if (logs_) log_made(p, item, t, tile.decay + at, x);
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
          store_four(after_ + i * conv_cols_of(p) + column + 4 * lane, x);
        }
      }
    }
  }

  // Row t of the result, which is row `at` of the tile: norm(o) SiLU(z).
  SLUICE_LANE_FN void finish(const DeltaNetStep& p, int t, int at, const DeltaTile& tile) const {
    const float* const o = tile.o[at];
    if (logs_) {
      float* const entered = entered_of(p, t);
      EACH_LANE(lane) {
        SLUICE_UNROLL for (int i = 4 * lane; i < 4 * lane + 4; ++i) {
          if (i < p.head_dim) entered[i] = tile.entered[at][i];
        }
      }
    }
    PerLane<float4> v;
    EACH_LANE(lane) { v[lane] = {o[4 * lane], o[4 * lane + 1], o[4 * lane + 2], o[4 * lane + 3]}; }
    finish_delta_row(p, rows_.first + t, head_, v);
  }

  // Where column j of S stands, before the step (null: zeros) and after it.
  SLUICE_LANE_FN const float* column_before(const DeltaNetStep& p, int j) const {
    return before_ ? before_ + column_at(p, j) : nullptr;
  }
  SLUICE_LANE_FN float* column_after(const DeltaNetStep& p, int j) const {
    return after_ + column_at(p, j);
  }

  // Each row leaves its update.
  SLUICE_LANE_FN bool logs() const { return logs_; }
  // Whether what is of a key head is this one's to write.
  SLUICE_LANE_FN bool is_first() const { return is_first_; }
  // The state behind the step.
  SLUICE_LANE_FN float* after() const { return after_; }
  // The first of the convolution's columns that are q, k or v of the head: item 0, 1 or 2.
  SLUICE_LANE_FN int column_of(const DeltaNetStep& p, int item) const {
    const int head = item == 0   ? key_head_
                     : item == 1 ? p.n_key_heads + key_head_
                                 : 2 * p.n_key_heads + head_;
    return head * p.head_dim;
  }
  SLUICE_LANE_FN float* entered_of(const DeltaNetStep& p, int t) const {
    return update_of(p, t).entered(p, head_);
  }
  // The convolution's input, k and the decay: what is of q and k by the first that share it.
  SLUICE_LANE_FN void log_made(const DeltaNetStep& p, int item, int t, const float* decay,
                               const PerLane<float4>& made) const {
    if (item < 2 && !is_first_) return;
    const DeltaUpdate update = update_of(p, t);
    const int column = column_of(p, item);
    EACH_LANE(lane) {
      if (4 * lane < p.head_dim) {
        DeltaUpdate::write(update.inputs() + column + 4 * lane, input(p, column, t, 0, lane));
        if (item == 1) DeltaUpdate::write(update.k(p, head_) + 4 * lane, made[lane]);
      }
      if (item == 2 && lane == 0) *update.decay(p, head_) = *decay;
    }
  }

  // Four inputs of the convolution, `back` rows before row t of the sequence.
  SLUICE_LANE_FN float4 input(const DeltaNetStep& p, int column, int t, int back, int lane) const {
    if (t >= back) {
      return load_past_l1(p.in + (rows_.first + t - back) * in_cols_of(p) + column + 4 * lane);
    }
    if (!before_) return {0, 0, 0, 0};
    return load_past_l1(before_ + (p.n_taps - 1 + t - back) * conv_cols_of(p) + column + 4 * lane);
  }

 private:
  SLUICE_LANE_FN DeltaUpdate update_of(const DeltaNetStep& p, int t) const {
    return {p, sequence_, word_past_l1(p.positions + rows_.first + t)};
  }
  SLUICE_LANE_FN int64_t column_at(const DeltaNetStep& p, int j) const {
    return (p.n_taps - 1) * conv_cols_of(p) +
           (static_cast<int64_t>(head_) * p.head_dim + j) * p.head_dim;
  }

  SLUICE_LANE_FN float4 convolved(const DeltaNetStep& p, int column, int t, int lane) const {
    float4 sum{0, 0, 0, 0};
    if (4 * lane >= p.head_dim) return sum;
    SLUICE_UNROLL_4 for (int tap = 0; tap < p.n_taps; ++tap) {
      add_tap(sum, tap_weights(p, column + 4 * lane, tap),
              input(p, column, t, p.n_taps - 1 - tap, lane));
    }
    return convolved_of(sum);
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
        if (4 * lane < p.head_dim) store_four(to + 4 * lane, s_[c][lane]);
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
      EACH_LANE(lane) { sums[c][lane] = delta_dot(s_[c][lane], k[lane]); }
    }
    PerLane<float> enters = sum_of_eight(sums);
    EACH_LANE(lane) {
      enters[lane] = delta_enters(decay, beta, tile.v[at][first_ + lane / 4], enters[lane]);
    }
    SLUICE_UNROLL for (int c = 0; c < kDeltaColumns; ++c) {
      EACH_LANE(lane) {
        update(s_[c][lane], from_lane(enters, 4 * c), k[lane], decay);
        sums[c][lane] = delta_dot(s_[c][lane], q[lane]);
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
    s = delta_entered(delta_decayed(s, decay), e, k);
  }
  static SLUICE_LANE_FN float4 four(const float* p) { return {p[0], p[1], p[2], p[3]}; }

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
        store_four(to + 4 * lane, from ? DeltaUpdate::read(from + 4 * lane) : float4{0, 0, 0, 0});
      }
    }
  }
}

}  // namespace sluice::backend::cuda
