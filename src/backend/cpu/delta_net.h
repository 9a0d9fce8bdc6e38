// Ops::delta_net on the CPU: the gated delta rule as a recurrence, token by token. A column of S
// (one value dimension) depends on no other, so that columns are divided among the threads, and
// those of a thread stay in its cache while it goes through the rows of a sequence.
//
// The arithmetic, to the bit, whatever is computed together:
//   c   = fma chain over the taps from the oldest, then c / (1 + EXP(-c))
//   q,k = c / sqrt(dot(c, c) + eps); q also / sqrt(head_dim)
//   e   = sigmoid(b) * fma(-d, dot(S_j, k), v_j);  S_j = fma(e, k, d * S_j);  o_j = dot(S_j, q)
// with EXP as quant::contract_exp; dot has sixteen chains over the dimensions, of which i and i + 8
// are added, and then eight as in quant::dot_f32. The lengths of q and k are by quant::dot_f32.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backend/cpu/delta_rule.h"
#include "backend/views.h"
#include "base/thread_pool.h"

namespace sluice::backend::cpu {

class DeltaNet {
 public:
  explicit DeltaNet(ThreadPool& pool) : pool_(pool) {}

  // As Ops::delta_net.
  void run(ConstRowsView in, const DeltaNetView& net, const StepView& step,
           const StateLayerView& state, RowsView out);

 private:
  // The rows of one sequence: rows_[first .. first + n).
  struct Run {
    int32_t sequence;
    int64_t first, n;
  };
  struct Call {
    ConstRowsView in;
    const DeltaNetView& net;
    const StateLayerView& state;
    const int32_t* positions;
    RowsView out;
  };
  // Of one row and value head: how much of S stays, and how much of the correction enters.
  struct Gates {
    float decay, beta;
  };

  void find_runs(const StepView& step);
  void prepare_head(const Call& call, const Run& run, int64_t t, int head);
  float* update_of(const Call& call, const Run& run, int64_t at) const;
  void keep_inputs(const Call& call, const Run& run, int64_t t, int head) const;
  void update_columns(const Call& call, const Run& run, int head, int first,
                      std::vector<DeltaToken>& tokens) const;

  // q, k and v of a row, by its place in rows_.
  float* mixed(const Call& call, int64_t at) { return mixed_.data() + at * call.net.conv_cols(); }
  const float* mixed(const Call& call, int64_t at) const {
    return mixed_.data() + at * call.net.conv_cols();
  }

  ThreadPool& pool_;
  std::vector<Run> runs_;
  std::vector<int64_t> rows_;                    // the step's, sequence by sequence
  std::vector<int32_t> run_of_;                  // by place in rows_
  std::vector<float> mixed_;                     // [n_rows, conv_cols]
  std::vector<Gates> gates_;                     // [n_rows, n_value_heads]
  std::vector<std::vector<DeltaToken>> tokens_;  // by thread
};

}  // namespace sluice::backend::cpu
