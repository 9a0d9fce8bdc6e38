// Causal attention over a paged KV cache: q/k norm, rope, append, softmax(q k^T / sqrt(d)) v. Here
// the work is divided; what is computed stands in attend_tile.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backend/cpu/attend_tile.h"
#include "backend/cpu/rope.h"
#include "backend/views.h"
#include "base/thread_pool.h"

namespace sluice::backend::cpu {

class Attend {
 public:
  explicit Attend(ThreadPool& pool)
      : pool_(pool), workers_(static_cast<size_t>(pool.n_threads())) {}

  // As Ops::attend.
  void run(RowsView qkv, const AttentionView& attention, const StepView& step,
           const KvLayerView& kv, RowsView out);

 private:
  // One span of one tile.
  struct Part {
    Tile tile;
    int span = 0;
  };

  void append(const AttendCall& call, int64_t row) const;
  void divide_into_tiles(const AttendCall& call);
  void attend_tiles(const AttendCall& call);
  void attend_parts(const AttendCall& call);

  ThreadPool& pool_;
  std::vector<TileWorker> workers_;  // of each thread
  std::vector<Tile> tiles_;
  std::vector<Part> parts_;
  std::vector<SoftmaxState> states_;  // of each part
};

}  // namespace sluice::backend::cpu
