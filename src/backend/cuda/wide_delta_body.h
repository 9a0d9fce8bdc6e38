// What a warp does of a gated DeltaNet over many rows, in a kernel as in g++ (lanes.h); part of
// wide_delta.cu. The formulas are delta_net_formulas.h's, and sums are added in the order of
// delta_net_body.h, so that the bits are the same.
//
// First a warp makes q, k or v of a head for sixteen rows. Then it takes eight columns of a head's
// S (value dimensions) through all rows of the sequence: eight lanes have a column, two columns at
// a time, each lane sixteen numbers of either. So a sum over a column is three exchanges away, and
// all lanes have it at once. Last a warp normalises a head's result of a row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/delta_convolution.h"
#include "backend/cuda/delta_net_body.h"
#include "backend/cuda/wide_delta.h"

namespace sluice::backend::cuda {

constexpr int kMadeRows = 16;  // that a warp makes
constexpr int kMadeAtOnce = 4;
static_assert(kMadeRows % kMadeAtOnce == 0 && kMadeRows + kDeltaMostTaps <= kWarp);

constexpr int kWideDeltaWarps = 4;
constexpr int kPartColumns = kWideDeltaWarps * kDeltaColumns;  // of a block
constexpr int kWideDeltaTile = 16;                             // rows in shared memory

SLUICE_LANE_FN int64_t made_cols_of(const DeltaNetStep& p) {
  return conv_cols_of(p) + 4 * p.n_value_heads;
}
SLUICE_LANE_FN float* made_row(const WideDelta& w, int row) {
  return w.made + row * made_cols_of(w.of);
}

// Sequences of rows first - kDeltaMostTaps .. first + n - 1, one to a lane.
SLUICE_LANE_FN PerLane<int> sequences_around(const DeltaNetStep& p, int first, int n) {
  PerLane<int> sequences;
  EACH_LANE(lane) {
    const int row = first - kDeltaMostTaps + lane;
    sequences[lane] = row >= 0 && row < first + n ? word_past_l1(p.sequences + row) : -1;
  }
  return sequences;
}

// Of rows first .. first + n - 1 (n <= kMadeRows) those head_dim numbers that have this number
// among those of q, k and v; with v the head's gates.
SLUICE_LANE_FN void make_delta_rows(const WideDelta& w, int number, int first, int n) {
  const DeltaNetStep& p = w.of;
  const int item = number < p.n_key_heads ? 0 : number < 2 * p.n_key_heads ? 1 : 2;
  const int head =
      item == 2 ? number - 2 * p.n_key_heads : first_of_key_head(p, number - item * p.n_key_heads);
  const int column = number * p.head_dim;
  if (item == 2) {
    EACH_LANE(lane) {
      if (lane < n) {
        const DeltaGates gates = delta_gates(p, head, first + lane);
        store_four(made_row(w, first + lane) + conv_cols_of(p) + 4 * head,
                   {gates.decay, gates.beta, 0, 0});
      }
    }
  }
  const PerLane<int> sequences = sequences_around(p, first, n);
  DeltaConvolution convolution(p, column, p.head_dim);
  int sequence = -1;
  SLUICE_ROLLED for (int begin = 0; begin < n; begin += kMadeAtOnce) {
    PerLane<float4> x[kMadeAtOnce];
    SLUICE_UNROLL for (int i = 0; i < kMadeAtOnce; ++i) {
      EACH_LANE(lane) {
        x[i][lane] =
            begin + i < n && 4 * lane < p.head_dim
                ? load_past_l1(p.in + (first + begin + i) * in_cols_of(p) + column + 4 * lane)
                : float4{0, 0, 0, 0};
      }
    }
    SLUICE_UNROLL for (int i = 0; i < kMadeAtOnce; ++i) {
      if (begin + i >= n) continue;
      const int at = kDeltaMostTaps + begin + i, row = first + begin + i;
      const int of = from_lane(sequences, at);
      if (of != sequence) {
        sequence = of;
        int t = 0;  // in the sequence; as far back as matters
        while (t < p.n_taps - 1 && from_lane(sequences, at - 1 - t) == of) ++t;
        convolution.open(p, DeltaHead(p, head, sequence, {row - t, 1}), t);
      }
      PerLane<float4> made = convolution.next(p, x[i]);
      if (item < 2) set_length(p, delta_length(p, item), made);
      EACH_LANE(lane) {
        if (4 * lane < p.head_dim) store_four(made_row(w, row) + column + 4 * lane, made[lane]);
      }
    }
  }
}

// What a block has of a row: all of q and k, its columns of v. Zeros behind a head's end.
struct WideDeltaRow {
  alignas(16) float q[kDeltaDims];
  alignas(16) float k[kDeltaDims];
  alignas(16) float v[kPartColumns];
  alignas(16) float gates[4];
};
struct WideDeltaTile {
  WideDeltaRow rows[kWideDeltaTile + 1];  // the last one is read ahead, and is nothing
};

// A warp's share of bringing rows first .. first + n - 1 there, 16 bytes with each copy(to, from).
template <typename Copy>
SLUICE_LANE_FN void fetch_delta_rows(const WideDelta& w, int head, int part, int first, int n,
                                     int warp, WideDeltaTile& tile, const Copy& copy) {
  const DeltaNetStep& p = w.of;
  const int q = key_head_of(p, head) * p.head_dim, k = q + p.n_key_heads * p.head_dim;
  const int v = (2 * p.n_key_heads + head) * p.head_dim;
  const int gates = static_cast<int>(conv_cols_of(p)) + 4 * head;
  SLUICE_UNROLL_4 for (int at = warp; at < n; at += kWideDeltaWarps) {
    const float* const row = made_row(w, first + at);
    WideDeltaRow& to = tile.rows[at];
    EACH_LANE(lane) {
      const int j = kPartColumns * part + 4 * lane;
      if (4 * lane < p.head_dim) {
        copy(to.q + 4 * lane, row + q + 4 * lane);
        copy(to.k + 4 * lane, row + k + 4 * lane);
      }
      if (4 * lane < kPartColumns && j < p.head_dim) copy(to.v + 4 * lane, row + v + j);
      if (4 * lane == kPartColumns) copy(to.gates, row + gates);
    }
  }
}

// Without a branch, around which nothing can be moved.
SLUICE_LANE_FN void store_if(bool says, float* to, float value) {
#if defined(__CUDACC__)
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %0, 0; @p st.global.f32 [%1], %2; }" ::"r"(
                   static_cast<int>(says)),
               "l"(to), "f"(value)
               : "memory");
#else
  if (says) *to = value;
#endif
}

// A warp's eight columns of S, from `first` on: lane l has two from 2 (l / 8) on, and of each its
// fours l % 8, + 8, + 16 and + 24. A row's result is added up along with the next row's S^T k: it
// does not stand in the way of the state.
class WideDeltaColumns {
 public:
  // Columns of a head's S, from its first on; null: zeros.
  SLUICE_LANE_FN void load(const DeltaNetStep& p, const float* columns, int first) {
    first_ = first;
    SLUICE_UNROLL for (int i = 0; i < 2 * kFours; ++i) {
      EACH_LANE(lane) {
        const Place at = place(i, lane);
        s_[i / kFours][i % kFours][lane] =
            columns && at.exists(p) ? load_past_l1(columns + at.column * p.head_dim + at.dim)
                                    : float4{0, 0, 0, 0};
        q_[i % kFours][lane] = {0, 0, 0, 0};
      }
    }
  }
  SLUICE_LANE_FN void store(const DeltaNetStep& p, float* columns) const {
    SLUICE_UNROLL for (int i = 0; i < 2 * kFours; ++i) {
      EACH_LANE(lane) {
        const Place at = place(i, lane);
        if (at.exists(p)) {
          store_four(columns + at.column * p.head_dim + at.dim, s_[i / kFours][i % kFours][lane]);
        }
      }
    }
  }

  // Where the result goes: of the sequence's first row in this step.
  SLUICE_LANE_FN void open(const DeltaNetStep& p, int row, int head) {
    EACH_LANE(lane) {
      const int column = first_ + lane / 4;
      exists_[lane] = column < p.head_dim;
      out_[lane] = p.out + (static_cast<int64_t>(row) * p.n_value_heads + head) * p.head_dim +
                   (exists_[lane] ? column : 0);
    }
  }

  // Through n rows of a tile, the first of which is row t of the sequence.
  template <bool logs>
  SLUICE_LANE_FN void take_rows(const DeltaNetStep& p, const DeltaHead& head,
                                const WideDeltaTile& tile, int t, int n) {
    Row row = read(tile.rows[0]);
    SLUICE_UNROLL_4 for (int at = 0; at < n; ++at) {
      const Row next = read(tile.rows[at + 1]);
      step<logs>(p, head, row, t + at);
      SLUICE_UNROLL for (int i = 0; i < kFours; ++i) {
        EACH_LANE(lane) { q_[i][lane] = load_four(tile.rows[at].q + 4 * (lane % 8 + 8 * i)); }
      }
      row = next;
    }
  }

  // The last row's result, of n.
  SLUICE_LANE_FN void finish(const DeltaNetStep& p, int n) {
    PerLane<float> o = halved(sums_with(q_));
    o = with_other(with_other(o, 2), 1);
    write(p, n - 1, o);
  }

 private:
  static constexpr int kFours = 4;  // of a lane in a column

  // Four numbers of a column.
  struct Place {
    int column, dim;
    SLUICE_LANE_FN bool exists(const DeltaNetStep& p) const {
      return column < p.head_dim && dim < p.head_dim;
    }
  };
  SLUICE_LANE_FN Place place(int i, int lane) const {
    return {first_ + lane / 8 * 2 + i / kFours, 4 * (lane % 8 + 8 * (i % kFours))};
  }

  // What a lane needs of a row besides q.
  struct Row {
    PerLane<float4> k[kFours];
    PerLane<float> v[2], decay, beta;
  };
  SLUICE_LANE_FN Row read(const WideDeltaRow& from) const {
    Row row;
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int i = 0; i < kFours; ++i) {
        row.k[i][lane] = load_four(from.k + 4 * (lane % 8 + 8 * i));
      }
      const float* const v = from.v + first_ % kPartColumns + lane / 8 * 2;
      row.v[0][lane] = v[0], row.v[1][lane] = v[1];
      row.decay[lane] = from.gates[0], row.beta[lane] = from.gates[1];
    }
    return row;
  }
  struct Two {
    PerLane<float> of[2];
  };
  // Of a lane's sixteen numbers of both columns: as far as delta_net_body's first two exchanges.
  SLUICE_LANE_FN Two sums_with(const PerLane<float4> (&x)[kFours]) const {
    Two sums;
    SLUICE_UNROLL for (int c = 0; c < 2; ++c) {
      EACH_LANE(lane) {
        float dots[kFours];
        SLUICE_UNROLL for (int i = 0; i < kFours; ++i) {
          dots[i] = delta_dot(s_[c][i][lane], x[i][lane]);
        }
        sums.of[c][lane] = add_rn(add_rn(dots[0], dots[2]), add_rn(dots[1], dots[3]));
      }
    }
    return sums;
  }
  static SLUICE_LANE_FN PerLane<float> with_other(const PerLane<float>& values, int mask) {
    PerLane<float> sums;
    EACH_LANE(lane) { sums[lane] = add_rn(values[lane], from_other(values, lane, mask)); }
    return sums;
  }
  // Of column lane / 4 of the warp's.
  static SLUICE_LANE_FN float own_of(const Two& two, int lane) {
    return lane & 4 ? two.of[1][lane] : two.of[0][lane];
  }
  // The next exchange, of the first column by lanes 0 to 3 of eight and of the second by the rest.
  static SLUICE_LANE_FN PerLane<float> halved(const Two& sums) {
    PerLane<float> kept, given;
    EACH_LANE(lane) {
      kept[lane] = own_of(sums, lane);
      given[lane] = lane & 4 ? sums.of[0][lane] : sums.of[1][lane];
    }
    PerLane<float> out;
    EACH_LANE(lane) { out[lane] = add_rn(kept[lane], from_other(given, lane, 4)); }
    return out;
  }

  // e = beta (v - decay S^T k);  S = decay S + k (x) e;  and o = S^T q of the row before. Exchanges
  // take turns with sums that do not wait for them.
  template <bool logs>
  SLUICE_LANE_FN void step(const DeltaNetStep& p, const DeltaHead& head, const Row& row, int t) {
    Two enters = sums_with(row.k);
    enters = {with_other(enters.of[0], 4), with_other(enters.of[1], 4)};
    PerLane<float> o = halved(sums_with(q_));
    enters = {with_other(enters.of[0], 2), with_other(enters.of[1], 2)};
    SLUICE_UNROLL for (int i = 0; i < 2 * kFours; ++i) {
      PerLane<float4>& s = s_[i / kFours][i % kFours];
      EACH_LANE(lane) { s[lane] = delta_decayed(s[lane], row.decay[lane]); }
    }
    o = with_other(o, 2);
    enters = {with_other(enters.of[0], 1), with_other(enters.of[1], 1)};
    SLUICE_UNROLL for (int c = 0; c < 2; ++c) {
      EACH_LANE(lane) {
        enters.of[c][lane] =
            delta_enters(row.decay[lane], row.beta[lane], row.v[c][lane], enters.of[c][lane]);
        SLUICE_UNROLL for (int i = 0; i < kFours; ++i) {
          s_[c][i][lane] = delta_entered(s_[c][i][lane], enters.of[c][lane], row.k[i][lane]);
        }
      }
    }
    o = with_other(o, 1);
    write(p, t - 1, o);
    if constexpr (logs) {
      float* const entered = head.entered_of(p, t) + first_;
      EACH_LANE(lane) {
        if (lane % 4 == 0 && exists_[lane]) entered[lane / 4] = own_of(enters, lane);
      }
    }
  }

  SLUICE_LANE_FN void write(const DeltaNetStep& p, int t, const PerLane<float>& o) const {
    const int64_t at = static_cast<int64_t>(t) * p.n_value_heads * p.head_dim;
    EACH_LANE(lane) {
      store_if(lane % 4 == 0 && exists_[lane] && t >= 0, out_[lane] + at, o[lane]);
    }
  }

  int first_ = 0;
  PerLane<float4> s_[2][kFours];
  PerLane<float4> q_[kFours];  // of the row before
  PerLane<float*> out_;        // of column lane / 4
  PerLane<bool> exists_;
};

// A warp's share of the updates of the sequence's n rows, without what entered S.
SLUICE_LANE_FN void log_delta_rows(const WideDelta& w, const DeltaHead& own, int head,
                                   const DeltaRows& rows, int warp) {
  const DeltaNetStep& p = w.of;
  const int key_head = key_head_of(p, head);
  SLUICE_ROLLED for (int i = warp; i < 3 * rows.n; i += kWideDeltaWarps) {
    const int item = i % 3, t = i / 3;
    const float* const row = made_row(w, rows.first + t);
    const float* const k = row + (p.n_key_heads + key_head) * p.head_dim;
    const float decay = word_past_l1(row + conv_cols_of(p) + 4 * head);
    PerLane<float4> made;
    EACH_LANE(lane) {
      made[lane] =
          item == 1 && 4 * lane < p.head_dim ? load_past_l1(k + 4 * lane) : float4{0, 0, 0, 0};
    }
    own.log_made(p, item, t, &decay, made);
  }
}

// A head's result of a row, that stands in p.out; or zeros.
SLUICE_LANE_FN void finish_wide_delta(const DeltaNetStep& p, int row, int head, bool is_live) {
  const float* const o = p.out + (static_cast<int64_t>(row) * p.n_value_heads + head) * p.head_dim;
  PerLane<float4> v;
  EACH_LANE(lane) {
    v[lane] = is_live && 4 * lane < p.head_dim ? load_past_l1(o + 4 * lane) : float4{0, 0, 0, 0};
  }
  if (is_live) return finish_delta_row(p, row, head, v);
  write_delta_row(p, row, head, v);
}

}  // namespace sluice::backend::cuda
