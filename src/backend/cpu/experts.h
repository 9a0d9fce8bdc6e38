// x += sum_k w_k down_k(SwiGLU(gate_k a, up_k a)) + the shared expert, on the CPU. Tokens are
// grouped by expert, so that each expert's weights are read once per step however many rows chose
// it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backend/cpu/row_dots.h"
#include "backend/cpu/scratch.h"
#include "backend/views.h"
#include "base/thread_pool.h"

namespace sluice::backend::cpu {

class Experts {
 public:
  explicit Experts(ThreadPool& pool)
      : pool_(pool), threads_(static_cast<size_t>(pool.n_threads())) {}

  // As Ops::experts.
  void run(const ExpertsView& experts, const ExpertInputView& a, const RoutingView& routing,
           RowsView x);

 private:
  // One expert and the (row, rank) pairs that chose it. A pair's slot is where its hidden row and
  // its output row stand.
  struct Group {
    WeightView gate, up, down;
    std::vector<int64_t> rows;
    std::vector<int64_t> slots;
    InputRows inputs;                    // a, by pair
    InputRows hidden;                    // SwiGLU(gate a, up a), by pair
    QuantizedRows* quantized = nullptr;  // where the hidden rows' int8 forms stand
    float* h = nullptr;                  // [slots, d_ff]
    float* out = nullptr;                // [slots, d_model]
  };
  struct Piece {  // some rows of one group's matrix
    int64_t group, begin, end;
  };
  struct Thread {
    std::vector<float> gate, up, unpacked;
  };

  void make_groups(const ExpertsView& experts, const ExpertInputView& a,
                   const RoutingView& routing);
  void add_shared_group(const ExpertsView& experts, const ExpertInputView& a);
  void set_inputs(Group& group, const ExpertInputView& a);
  void gate_up();
  void quantize_hidden();
  void down();
  template <typename Body>
  void for_pieces(int64_t (*n_rows)(const Group&), Body&& body);

  ThreadPool& pool_;
  std::vector<Thread> threads_;
  std::vector<int32_t> group_of_expert_;
  std::vector<Group> groups_;
  int64_t n_groups_ = 0;
  std::vector<Piece> pieces_;
  Scratch<float> h_, out_, shared_h_, shared_out_;
  QuantizedRows quantized_h_, quantized_shared_h_;
};

}  // namespace sluice::backend::cpu
