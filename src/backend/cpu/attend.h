// Causal attention over a paged KV cache: q/k norm, rope, append, softmax(q k^T / sqrt(d)) v.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backend/views.h"
#include "base/thread_pool.h"

namespace sluice::backend::cpu {

class Attend {
 public:
  explicit Attend(ThreadPool& pool)
      : pool_(pool), threads_(static_cast<size_t>(pool.n_threads())) {}

  // As Ops::attend.
  void run(RowsView qkv, const AttentionView& attention, const StepView& step,
           const KvLayerView& kv, RowsView out);

 private:
  struct Thread {
    std::vector<float> angles;
    std::vector<float> scores;  // [heads of a group, positions]
    std::vector<float> cached;  // one key or value
  };
  struct Call {
    const RowsView& qkv;
    const AttentionView& attention;
    const StepView& step;
    const KvLayerView& kv;
    const RowsView& out;
  };

  static void append(const Call& call, int64_t row, Thread& thread);
  static void attend_group(const Call& call, int64_t row, int kv_head, Thread& thread);

  ThreadPool& pool_;
  std::vector<Thread> threads_;
};

}  // namespace sluice::backend::cpu
