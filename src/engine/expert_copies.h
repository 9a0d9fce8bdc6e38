// Carries out the cache's moves: takes the expert that leaves out of the table, copies the one that
// enters beside the running steps, and puts it into the table at the first boundary between two
// steps after its copy is done. Events go both ways, so nothing is locked: a copy begins when the
// steps that may still read the slot are over, and a step that finds an expert in the table finds
// all of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/expert_slots.h"

namespace sluice::engine {

struct ExpertCopyOptions {
  bool poison = false;  // overwrite what leaves: whoever still reads it computes nonsense
};

class ExpertCopies {
 public:
  // `main` runs the steps. All outlive this.
  ExpertCopies(backend::Device& device, backend::Stream& main, const ExpertSlots& slots,
               const model::Model& model, const policy::ExpertCache& cache,
               const ExpertCopyOptions& options = {});
  ~ExpertCopies();

  // Between two steps: puts into the table what has arrived, then begins these moves.
  void boundary(std::span<const policy::Move> moves);

  // Waits until all copies are done, and puts them into the table: the start, before any step.
  void finish();

  uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  // A copy that is under way.
  struct Pending {
    policy::ExpertKey key;
    std::byte* slot = nullptr;
    std::unique_ptr<backend::Event> arrived;
  };

  void publish_arrived();
  void begin(const policy::Move& move);
  void copy(policy::ExpertKey key, std::byte* slot);

  const ExpertSlots& slots_;
  const model::Model& model_;
  backend::Stream& main_;
  ExpertCopyOptions options_;
  std::unique_ptr<backend::Stream> copies_;
  std::unique_ptr<backend::Event> left_;  // the main stream reads no slot any more that moves take
  std::vector<Pending> pending_;          // [n_pending_], the rest is room
  size_t n_pending_ = 0;
  uint64_t copied_bytes_ = 0;
};

}  // namespace sluice::engine
