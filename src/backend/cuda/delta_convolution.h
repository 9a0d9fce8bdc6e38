// The convolution in front of a gated DeltaNet, by a warp that keeps its last inputs and its
// weights in registers, in a kernel as in g++ (lanes.h). Not for more than four taps: those read
// every input anew (delta_net_body.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/delta_net_body.h"

namespace sluice::backend::cuda {

// The convolution of n_cols columns from `column` on, four to a lane, row by row.
class DeltaConvolution {
 public:
  SLUICE_LANE_FN DeltaConvolution(const DeltaNetStep& p, int column, int n_cols)
      : column_(column), n_cols_(n_cols) {
    SLUICE_UNROLL for (int i = 0; i < kMostTaps; ++i) {
      EACH_LANE(lane) {
        taps_[i][lane] = is_tap(p, i) && 4 * lane < n_cols_
                             ? tap_weights(p, column + 4 * lane, i - kMostTaps + p.n_taps)
                             : float4{0, 0, 0, 0};
      }
    }
  }

  // Row t of its sequence comes next.
  SLUICE_LANE_FN void open(const DeltaNetStep& p, const DeltaHead& head, int t) {
    SLUICE_UNROLL for (int i = 0; i < kMostTaps - 1; ++i) {
      EACH_LANE(lane) {
        inputs_[i][lane] = is_tap(p, i) && 4 * lane < n_cols_
                               ? head.input(p, column_, t, kMostTaps - 1 - i, lane)
                               : float4{0, 0, 0, 0};
      }
    }
  }

  SLUICE_LANE_FN PerLane<float4> next(const DeltaNetStep& p, const PerLane<float4>& input) {
    inputs_[kMostTaps - 1] = input;
    PerLane<float4> out;
    EACH_LANE(lane) {
      float4 sum{0, 0, 0, 0};
      SLUICE_UNROLL for (int i = 0; i < kMostTaps; ++i) {
        if (is_tap(p, i)) add_tap(sum, taps_[i][lane], inputs_[i][lane]);
      }
      out[lane] = 4 * lane < n_cols_ ? convolved_of(sum) : float4{0, 0, 0, 0};
    }
    SLUICE_UNROLL for (int i = 0; i < kMostTaps - 1; ++i) inputs_[i] = inputs_[i + 1];
    return out;
  }

  // One of the last inputs: 0 .. kDeltaMostTaps - 2, the oldest first.
  SLUICE_LANE_FN const PerLane<float4>& input(int i) const { return inputs_[i]; }

 private:
  static constexpr int kMostTaps = kDeltaMostTaps;

  // The last n_taps places are taken.
  static SLUICE_LANE_FN bool is_tap(const DeltaNetStep& p, int i) {
    return i + p.n_taps >= kMostTaps;
  }

  int column_, n_cols_;
  PerLane<float4> taps_[kMostTaps];
  PerLane<float4> inputs_[kMostTaps];
};

}  // namespace sluice::backend::cuda
