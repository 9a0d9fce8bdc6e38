// What a warp does of a gated DeltaNet in a step of a single row, where four blocks share a value
// head, in a kernel as in g++ (lanes.h); part of delta_row.cu. Columns of S and who has them are
// delta_part_body.h's, and so are the bits.
//
// Of the convolution all but the row's own input is added up before the wait. What the row leaves
// behind (its input for the next step, its update) is written by warps that have nothing else to
// do then, so that nobody waits for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/delta_part_body.h"

namespace sluice::backend::cuda {

// The step's row, if it has one, and the numbers of its sequence's states. All is asked for at once
// where there is one sequence. The position says where the update goes; 0 where none is left.
struct DeltaStepRow {
  bool exists;
  int sequence, position;
  int32_t from, to;

  SLUICE_LANE_FN explicit DeltaStepRow(const DeltaNetStep& p) {
    exists = word_past_l1(p.n_live) > 0;
    sequence = p.n_sequences == 1 || !exists ? 0 : word_past_l1(p.sequences);
    from = word_past_l1(p.from + sequence), to = word_past_l1(p.to + sequence);
    position = p.updates ? word_past_l1(p.positions) : 0;
  }
};

// Weights of four columns of the convolution, by tap.
struct TapWeights {
  float4 of[kDeltaMostTaps];

  SLUICE_LANE_FN TapWeights(const DeltaNetStep& p, int column) {
    if (p.n_taps == kDeltaMostTaps) {
      const float* const at = p.conv + static_cast<int64_t>(column) * kDeltaMostTaps;
      const float4 a = load_constant(at), b = load_constant(at + 4), c = load_constant(at + 8),
                   d = load_constant(at + 12);
      of[0] = {a.x, b.x, c.x, d.x}, of[1] = {a.y, b.y, c.y, d.y};
      of[2] = {a.z, b.z, c.z, d.z}, of[3] = {a.w, b.w, c.w, d.w};
    } else {
      SLUICE_UNROLL for (int i = 0; i < kDeltaMostTaps; ++i) {
        const int tap = i - kDeltaMostTaps + p.n_taps;
        of[i] = tap >= 0 ? tap_weights(p, column, tap) : float4{0, 0, 0, 0};
      }
    }
  }
};

// What the warps of a block share: of the row, its input of the convolution, and the head's o where
// the row is finished.
struct DeltaRowShared {
  DeltaPartRow row;
  DeltaPartInput input;
  alignas(16) float o[kDeltaDims];
};

// Makes q, k or the block's part of v of the row: item 0, 1 or 2.
class DeltaRowMaker {
 public:
  // Before the wait. Inputs of before the step that the next one needs go where it finds them; of q
  // and k by one of all that have them.
  SLUICE_LANE_FN DeltaRowMaker(const DeltaNetStep& p, const DeltaHead& own, int item, int part)
      : item_(item),
        column_(part_column(p, own, item, part)),
        n_cols_(item == 2 ? part_columns(p, part) : p.head_dim),
        length_(delta_length(p, item)) {
    PerLane<float4> earlier[kDeltaEarlier];
    EACH_LANE(lane) {
      sum_[lane] = newest_tap_[lane] = {0, 0, 0, 0};
      if (4 * lane < n_cols_) {
        SLUICE_UNROLL for (int i = 0; i < kDeltaEarlier; ++i) {
          if (place_of(p, i) < 0) continue;
          earlier[i][lane] = own.input(p, column_, 0, kDeltaEarlier - i, lane);
        }
        const TapWeights taps(p, column_ + 4 * lane);
        SLUICE_UNROLL for (int i = 0; i < kDeltaEarlier; ++i) {
          if (place_of(p, i) >= 0) add_tap(sum_[lane], taps.of[i], earlier[i][lane]);
        }
        newest_tap_[lane] = taps.of[kDeltaEarlier];
        SLUICE_UNROLL for (int i = 1; i < kDeltaEarlier; ++i) {
          if (!keeps_item(own, item, part) || place_of(p, i) < 1) continue;
          store_four(kept_input(p, own, place_of(p, i) - 1, column_ + 4 * lane), earlier[i][lane]);
        }
      }
    }
  }

  // After the wait.
  SLUICE_LANE_FN void make(const DeltaNetStep& p, DeltaRowShared& out) const {
    PerLane<float4> input, x;
    EACH_LANE(lane) {
      input[lane] = x[lane] = {0, 0, 0, 0};
      if (4 * lane < n_cols_) {
        input[lane] = load_past_l1(p.in + column_ + 4 * lane);
        float4 sum = sum_[lane];
        add_tap(sum, newest_tap_[lane], input[lane]);
        x[lane] = convolved_of(sum);
      }
    }
    if (item_ < 2) set_length(p, length_, x);
    EACH_LANE(lane) {
      if (item_ < 2 || 4 * lane < kDeltaPartColumns) {
        store_four(item_of(out.row, item_) + 4 * lane, x[lane]);
        store_four(item_of(out.input, item_) + 4 * lane, input[lane]);
      }
    }
  }

  // When all have been made: the row's input for the next step, and of its update what is of the
  // item.
  static SLUICE_LANE_FN void leave(const DeltaNetStep& p, const DeltaHead& own, int head, int item,
                                   int part, const DeltaUpdate& update,
                                   const DeltaRowShared& made) {
    if (!keeps_item(own, item, part)) return;
    const int column = part_column(p, own, item, part);
    const int n_cols = item == 2 ? part_columns(p, part) : p.head_dim;
    EACH_LANE(lane) {
      if (4 * lane < n_cols) {
        const float4 input = load_four(item_of(made.input, item) + 4 * lane);
        if (p.n_taps > 1) store_four(kept_input(p, own, p.n_taps - 2, column + 4 * lane), input);
        if (own.logs()) {
          DeltaUpdate::write(update.inputs() + column + 4 * lane, input);
          if (item == 1) {
            DeltaUpdate::write(update.k(p, head) + 4 * lane, load_four(made.row.k + 4 * lane));
          }
        }
      }
      if (item == 2 && part == 0 && lane == 0 && own.logs()) {
        *update.decay(p, head) = made.row.gates[0];
      }
    }
  }

 private:
  static SLUICE_LANE_FN bool keeps_item(const DeltaHead& own, int item, int part) {
    return item == 2 || (part == 0 && own.is_first());
  }
  // Of kDeltaEarlier inputs the last n_taps - 1 are kept: where; less than 0: it is not.
  static SLUICE_LANE_FN int place_of(const DeltaNetStep& p, int i) {
    return i - kDeltaMostTaps + p.n_taps;
  }
  // Of the inputs behind the step.
  static SLUICE_LANE_FN float* kept_input(const DeltaNetStep& p, const DeltaHead& own, int row,
                                          int column) {
    return own.after() + row * conv_cols_of(p) + column;
  }

  int item_, column_, n_cols_;
  float length_;
  PerLane<float4> sum_, newest_tap_;
};

// Decay and beta of the row. What is known before the wait is asked for when it is made.
class DeltaRowGates {
 public:
  SLUICE_LANE_FN DeltaRowGates(const DeltaNetStep& p, int head)
      : weights_(p, head), places_(delta_gate_places(p, head, 0)) {}

  SLUICE_LANE_FN void make(DeltaPartRow& row) const {
    EACH_LANE(lane) {
      if (lane == 0) {
        const DeltaGates gates = delta_gates(weights_, places_);
        row.gates[0] = gates.decay, row.gates[1] = gates.beta;
      }
    }
  }

 private:
  DeltaGateWeights weights_;
  DeltaGatePlaces places_;
};

// A warp's columns take their step: o by one lane, send(first column, o); what entered goes into
// the row's update.
template <typename Send>
SLUICE_LANE_FN void step_columns(const DeltaNetStep& p, const DeltaRowShared& made,
                                 DeltaPartColumns& columns, const DeltaHead& own, int head,
                                 const DeltaUpdate& update, const Send& send) {
  constexpr int kLanes = DeltaPartColumns::kLanesOfColumn;
  const DeltaPartColumns::Made left = columns.step(made.row);
  const float4 o{from_lane(left.o, 0), from_lane(left.o, kLanes), from_lane(left.o, 2 * kLanes),
                 from_lane(left.o, 3 * kLanes)};
  if (columns.first() >= p.head_dim) return;  // heads end with a whole four
  EACH_LANE(lane) {
    if (lane == 0) send(columns.first(), o);
    if (lane % kLanes == 0 && own.logs()) {
      update.entered(p, head)[columns.own_column(lane)] = left.entered[lane];
    }
  }
}

}  // namespace sluice::backend::cuda
