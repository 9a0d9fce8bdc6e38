// x += sum_k w_k down_k(SwiGLU(gate_k a, up_k a)) + the shared expert, on the CPU. Tokens are
// grouped by expert, so that each expert's weights are read once per step however many rows chose
// it. All experts of a layer are one loop over pieces of rows: first of gate and up, which end in
// the quantised hidden rows, then of down.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "backend/cpu/products.h"
#include "backend/views.h"
#include "base/thread_pool.h"

namespace sluice::backend::cpu {

class Experts {
 public:
  Experts(ThreadPool& pool, const Kernels& kernels)
      : pool_(pool), kernels_(kernels), threads_(static_cast<size_t>(pool.n_threads())) {}

  // As Ops::experts.
  void run(const ExpertsView& experts, const ExpertInputView& a, const RoutingView& routing,
           RowsView x);

  // Asks at once for what steps of up to so many rows take, whatever they choose; but of wide ones
  // no more than of 16 rows: these ask as they go, and mostly for less.
  void reserve(const ExpertsView& experts, int64_t n_rows, int n_used);

  // Its two halves, for experts that are computed in several places. First the rows of some pairs,
  // into rows [slot] of `out`, which may be of other memory than ours, and the shared expert's,
  // where there is one; then their sum: x[r] += the sum over the row's n_used slots of `rows`, and
  // the shared expert of the last compute().
  void compute(const ExpertsView& experts, std::span<const ExpertPair> pairs,
               const ExpertInputView& a, float* out);
  void combine(const RoutingView& routing, const float* rows, bool has_shared, RowsView x);

 private:
  // Where hidden rows and output rows stand: routed experts' and the shared one's.
  struct Rows {
    Scratch<float> hidden_memory;
    QuantizedRows inputs;     // of all groups that are more than a pair
    QuantizedRows quantized;  // hidden rows of all groups, where down takes them so
    float* hidden = nullptr;  // [slots, d_ff], where it does not
    float* out = nullptr;     // [slots, d_model]
    int64_t n_batched = 0;    // rows of the groups' batches

    void reserve(int64_t n_slots, int64_t n_cols, const WeightView& down);  // all but `out`
  };

  // One expert and the (row, rank) pairs that chose it; a pair's slot says where its rows stand.
  struct Group {
    WeightView gate, up, down;
    Rows* rows = nullptr;
    std::vector<int64_t> tokens;
    std::vector<int64_t> slots;
    RowBatch batch;    // where the pairs' int8 rows stand, of inputs and hidden ones
    InputRows inputs;  // a, by pair
    InputRows hidden;  // SwiGLU(gate a, up a), by pair

    int64_t n_pairs() const { return static_cast<int64_t>(tokens.size()); }
  };

  struct Piece {  // some rows of one group's matrix
    int64_t group, first, n_rows;
  };

  void reserve_groups(int64_t n_groups, int64_t n_rows);
  void make_groups(const ExpertsView& experts, std::span<const ExpertPair> pairs, int64_t n_rows);
  Group& add_group(const ExpertMatrices& expert, Rows& rows);
  void place_groups(const ExpertsView& experts, const ExpertInputView& a, int64_t n_slots);
  void set_inputs(const ExpertInputView& a);
  void set_q8(const ExpertInputView& a, Group& group);
  void gate_up(Group& group, int64_t first, int64_t n, Scratch<float>& scratch);
  void down(Group& group, int64_t first, int64_t n, Scratch<float>& scratch);

  // Rows of a group's matrix, `step` at a time; then the work on all pieces, by all threads.
  using Work = void (Experts::*)(Group& group, int64_t first, int64_t n, Scratch<float>& scratch);
  int64_t gate_up_rows(const Group& group) const;
  void add_pieces(int64_t group, int64_t n_rows, int64_t step);
  void run_pieces(Work work);

  ThreadPool& pool_;
  const Kernels& kernels_;
  std::vector<Scratch<float>> threads_;  // the products of one piece of work
  std::vector<int32_t> group_of_expert_;
  std::vector<Group> groups_;
  int64_t n_groups_ = 0;
  std::vector<Piece> pieces_;
  Rows routed_, shared_;
  std::vector<ExpertPair> pairs_;
  Scratch<float> routed_out_, shared_out_;
  RowSums input_sums_;
  int64_t n_reserved_[2] = {};  // pairs; of experts whose hidden rows are int8, and float
};

}  // namespace sluice::backend::cpu
