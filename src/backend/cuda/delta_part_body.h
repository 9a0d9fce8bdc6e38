// What a warp does of a gated DeltaNet in a step of few rows, where four blocks share a value head,
// in a kernel as in g++ (lanes.h); part of delta_part.cu. The formulas are delta_net_formulas.h's,
// and sums are added in the order of delta_net_body.h, so that the bits are the same.
//
// A block has 32 columns of the head's S (value dimensions), a warp four: eight lanes have one,
// each sixteen numbers. Three warps make q, k and the block's part of v, row after row, with the
// convolution's last inputs in registers; one makes the gates, four finish rows of the result that
// the blocks send each other. What a row leaves behind is written when the result is under way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/delta_convolution.h"
#include "backend/cuda/delta_net_body.h"

namespace sluice::backend::cuda {

constexpr int kDeltaParts = 4;  // blocks of a head
constexpr int kDeltaPartWarps = 8;
constexpr int kDeltaPartRows = 16;   // of a step
constexpr int kDeltaPartOfWarp = 4;  // columns
constexpr int kDeltaPartColumns = kDeltaPartWarps * kDeltaPartOfWarp;
static_assert(kDeltaParts * kDeltaPartColumns == kDeltaDims);

// Who does what before and behind the rule. Row t is finished by block t % 4, warp 4 + t / 4.
constexpr int kGateWarp = 3;
constexpr int kFinishWarp = 4;
constexpr int kFinishRows = kDeltaPartRows / kDeltaParts;  // of a block
static_assert(kFinishWarp + kFinishRows == kDeltaPartWarps);

// What a block has of a row; zeros behind a head's end. And of an input of the convolution.
struct DeltaPartRow {
  alignas(16) float q[kDeltaDims];
  alignas(16) float k[kDeltaDims];
  alignas(16) float v[kDeltaPartColumns];
  alignas(16) float entered[kDeltaPartColumns];
  alignas(16) float gates[4];  // decay, beta
};
struct DeltaPartInput {
  alignas(16) float q[kDeltaDims];
  alignas(16) float k[kDeltaDims];
  alignas(16) float v[kDeltaPartColumns];
};
constexpr int kDeltaEarlier = kDeltaMostTaps - 1;  // inputs of before the step
struct DeltaPartTile {
  DeltaPartRow rows[kDeltaPartRows];
  DeltaPartInput inputs[kDeltaEarlier + kDeltaPartRows];
  alignas(16) float o[kFinishRows][kDeltaDims];  // of the rows that the block finishes
  int positions[kDeltaPartRows];
};

// The step's rows are asked for at once, without knowing how many there are.
SLUICE_LANE_FN DeltaRows find_part_rows(const DeltaNetStep& p, int sequence) {
  PerLane<int> sequences;
  EACH_LANE(lane) { sequences[lane] = lane < p.n_rows ? word_past_l1(p.sequences + lane) : -1; }
  const int n_live = word_past_l1(p.n_live);
  PerLane<bool> is_own;
  EACH_LANE(lane) { is_own[lane] = lane < n_live && sequences[lane] == sequence; }
  const uint32_t own = lanes_that(is_own);
  return {count_bits((own & -own) - 1), count_bits(own)};
}

// Positions of rows that leave updates.
SLUICE_LANE_FN void read_part_positions(const DeltaNetStep& p, const DeltaRows& rows,
                                        DeltaPartTile& tile) {
  EACH_LANE(lane) {
    if (lane < rows.n) tile.positions[lane] = word_past_l1(p.positions + rows.first + lane);
  }
}

// Columns that a block has of its head; may be less than none.
SLUICE_LANE_FN int part_columns(const DeltaNetStep& p, int part) {
  const int n = p.head_dim - part * kDeltaPartColumns;
  return n < kDeltaPartColumns ? n : kDeltaPartColumns;
}
// Those of the convolution that are item 0, 1 or 2 of a block: q, k or its part of v.
SLUICE_LANE_FN int part_column(const DeltaNetStep& p, const DeltaHead& head, int item, int part) {
  return head.column_of(p, item) + (item == 2 ? part * kDeltaPartColumns : 0);
}
template <typename Row>
SLUICE_LANE_FN auto* item_of(Row& row, int item) {
  return item == 0 ? row.q : item == 1 ? row.k : row.v;
}

// Makes such an item of all rows. Asks for all that is there before the wait.
class DeltaPartMaker {
 public:
  SLUICE_LANE_FN DeltaPartMaker(const DeltaNetStep& p, const DeltaHead& head, int item, int part)
      : item_(item),
        column_(part_column(p, head, item, part)),
        n_cols_(item == 2 ? part_columns(p, part) : p.head_dim),
        convolution_(p, column_, n_cols_) {
    convolution_.open(p, head, 0);
  }

  // Before the wait as well, once these are there.
  SLUICE_LANE_FN void leave_earlier(DeltaPartTile& tile) const {
    SLUICE_UNROLL for (int i = 0; i < kDeltaEarlier; ++i) {
      write(item_of(tile.inputs[i], item_), convolution_.input(i));
    }
  }

  // After the wait.
  SLUICE_LANE_FN void make(const DeltaNetStep& p, const DeltaRows& rows, DeltaPartTile& tile) {
    const float* in = p.in + rows.first * in_cols_of(p) + column_;
    const float length = delta_length(p, item_);
    SLUICE_ROLLED for (int t = 0; t < rows.n; ++t, in += in_cols_of(p)) {
      PerLane<float4> input;
      EACH_LANE(lane) {
        input[lane] = 4 * lane < n_cols_ ? load_past_l1(in + 4 * lane) : float4{0, 0, 0, 0};
      }
      PerLane<float4> x = convolution_.next(p, input);
      if (item_ < 2) set_length(p, length, x);
      write(item_of(tile.rows[t], item_), x);
      write(item_of(tile.inputs[kDeltaEarlier + t], item_), input);
    }
  }

 private:
  SLUICE_LANE_FN void write(float* to, const PerLane<float4>& x) const {
    EACH_LANE(lane) {
      if (item_ < 2 || 4 * lane < kDeltaPartColumns) store_four(to + 4 * lane, x[lane]);
    }
  }

  int item_, column_, n_cols_;
  DeltaConvolution convolution_;
};

// Gates of all rows, one to a lane; after the wait.
SLUICE_LANE_FN void make_part_gates(const DeltaNetStep& p, const DeltaGateWeights& weights,
                                    int head, const DeltaRows& rows, DeltaPartTile& tile) {
  EACH_LANE(lane) {
    if (lane < rows.n) {
      const DeltaGates gates = delta_gates(p, weights, head, rows.first + lane);
      tile.rows[lane].gates[0] = gates.decay;
      tile.rows[lane].gates[1] = gates.beta;
    }
  }
}

// A warp's four columns of S, from `first` on: lane l has that of number l / 8, and of it the fours
// l % 8, + 8, + 16 and + 24.
class DeltaPartColumns {
 public:
  // Columns of a head's S, from its first on; null: zeros.
  SLUICE_LANE_FN void load(const DeltaNetStep& p, const float* columns, int first) {
    first_ = first;
    SLUICE_UNROLL for (int i = 0; i < kFours; ++i) {
      EACH_LANE(lane) {
        s_[i][lane] = columns && exists(p, i, lane) ? load_past_l1(columns + place(p, i, lane))
                                                    : float4{0, 0, 0, 0};
      }
    }
  }
  SLUICE_LANE_FN void store(const DeltaNetStep& p, float* columns) const {
    SLUICE_UNROLL for (int i = 0; i < kFours; ++i) {
      EACH_LANE(lane) {
        if (exists(p, i, lane)) store_four(columns + place(p, i, lane), s_[i][lane]);
      }
    }
  }

  // e = beta (v - decay S^T k);  S = decay S + k (x) e;  o = S^T q: o and e of a lane's column.
  struct Made {
    PerLane<float> o, entered;
  };
  SLUICE_LANE_FN Made step(const DeltaPartRow& row) {
    PerLane<float4> k[kFours], q[kFours];
    SLUICE_UNROLL for (int i = 0; i < kFours; ++i) {
      EACH_LANE(lane) {
        k[i][lane] = load_four(row.k + four(i, lane));
        q[i][lane] = load_four(row.q + four(i, lane));
      }
    }
    const float decay = row.gates[0], beta = row.gates[1];
    Made made;
    made.entered = sums_with(k);
    EACH_LANE(lane) {
      float& entered = made.entered[lane];
      entered = delta_enters(decay, beta, row.v[own_column(lane) % kDeltaPartColumns], entered);
      SLUICE_UNROLL for (int i = 0; i < kFours; ++i) {
        s_[i][lane] = delta_entered(delta_decayed(s_[i][lane], decay), entered, k[i][lane]);
      }
    }
    made.o = sums_with(q);
    return made;
  }
  // And left: send(column, o) by one lane of each column.
  template <typename Send>
  SLUICE_LANE_FN void step(const DeltaNetStep& p, DeltaPartRow& row, const Send& send) {
    const Made made = step(row);
    EACH_LANE(lane) {
      if (lane % kLanesOfColumn == 0) {
        row.entered[own_column(lane) % kDeltaPartColumns] = made.entered[lane];
        if (own_column(lane) < p.head_dim) send(own_column(lane), made.o[lane]);
      }
    }
  }

  // Of the head's columns the warp's first one, and a lane's.
  SLUICE_LANE_FN int first() const { return first_; }
  SLUICE_LANE_FN int own_column(int lane) const { return first_ + lane / kLanesOfColumn; }
  static constexpr int kLanesOfColumn = 8;

 private:
  static constexpr int kFours = 4;  // of a lane

  static SLUICE_LANE_FN int four(int i, int lane) { return 4 * (lane % 8 + 8 * i); }
  SLUICE_LANE_FN bool exists(const DeltaNetStep& p, int i, int lane) const {
    return own_column(lane) < p.head_dim && four(i, lane) < p.head_dim;
  }
  SLUICE_LANE_FN int place(const DeltaNetStep& p, int i, int lane) const {
    return own_column(lane) * p.head_dim + four(i, lane);
  }

  // Over the column, for all of its lanes: of 32 fours those that are sixteen apart first, then
  // those eight apart, and so on.
  SLUICE_LANE_FN PerLane<float> sums_with(const PerLane<float4> (&x)[kFours]) const {
    PerLane<float> sums;
    EACH_LANE(lane) {
      float dots[kFours];
      SLUICE_UNROLL for (int i = 0; i < kFours; ++i) {
        dots[i] = delta_dot(s_[i][lane], x[i][lane]);
      }
      sums[lane] = add_rn(add_rn(dots[0], dots[2]), add_rn(dots[1], dots[3]));
    }
    return fold_lanes<8>(sums, [](float a, float b) { return add_rn(a, b); });
  }

  int first_ = 0;
  PerLane<float4> s_[kFours];
};

// o of a row, where it has been sent.
SLUICE_LANE_FN PerLane<float4> sent_row(const DeltaNetStep& p, const float* o) {
  PerLane<float4> v;
  EACH_LANE(lane) {
    v[lane] = 4 * lane < p.head_dim ? load_four(o + 4 * lane) : float4{0, 0, 0, 0};
  }
  return v;
}

// The last inputs of item 0, 1 or 2, for the next step; of q and k by one of all that have them.
SLUICE_LANE_FN void keep_part_inputs(const DeltaNetStep& p, const DeltaHead& own, int part,
                                     const DeltaRows& rows, const DeltaPartTile& tile, int item) {
  if (item < 2 && (part != 0 || !own.is_first())) return;
  const int n_cols = item == 2 ? part_columns(p, part) : p.head_dim;
  float* const to = own.after() + part_column(p, own, item, part);
  SLUICE_UNROLL for (int i = 0; i < kDeltaEarlier; ++i) {
    const int at = i - kDeltaMostTaps + p.n_taps;  // the last n_taps - 1 are kept
    const float* const from = item_of(tile.inputs[i + rows.n], item);
    EACH_LANE(lane) {
      if (at >= 0 && 4 * lane < n_cols) {
        store_four(to + at * conv_cols_of(p) + 4 * lane, load_four(from + 4 * lane));
      }
    }
  }
}

// A warp's share of the updates of the sequence's rows.
SLUICE_LANE_FN void log_part_rows(const DeltaNetStep& p, const DeltaHead& own, int head, int part,
                                  int sequence, const DeltaRows& rows, const DeltaPartTile& tile,
                                  int warp) {
  const bool has_keys = part == 0 && own.is_first();
  const int first = part * kDeltaPartColumns, n_own = part_columns(p, part);
  SLUICE_ROLLED for (int t = warp; t < rows.n; t += kDeltaPartWarps) {
    const DeltaPartRow& row = tile.rows[t];
    const DeltaPartInput& input = tile.inputs[kDeltaEarlier + t];
    const DeltaUpdate update(p, sequence, tile.positions[t]);
    EACH_LANE(lane) {
      if (has_keys && 4 * lane < p.head_dim) {
        DeltaUpdate::write(update.inputs() + own.column_of(p, 0) + 4 * lane,
                           load_four(input.q + 4 * lane));
        DeltaUpdate::write(update.inputs() + own.column_of(p, 1) + 4 * lane,
                           load_four(input.k + 4 * lane));
        DeltaUpdate::write(update.k(p, head) + 4 * lane, load_four(row.k + 4 * lane));
      }
      if (lane < n_own) {
        update.inputs()[own.column_of(p, 2) + first + lane] = input.v[lane];
        update.entered(p, head)[first + lane] = row.entered[lane];
      }
      if (part == 0 && lane == 0) *update.decay(p, head) = row.gates[0];
    }
  }
}

}  // namespace sluice::backend::cuda
