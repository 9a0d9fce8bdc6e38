// Carries out the cache's moves: takes the expert that leaves out of the table, copies the one that
// enters beside the running steps, and puts it into the table at the first boundary between two
// steps after its copy is done. Nothing is locked: a copy begins behind an event, when the steps
// that may still read the slot are over, and a step that finds an expert in the table finds all of
// it. A copy that fails is made again; until it has come the CPU computes that expert.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/expert_slots.h"
#include "engine/device/host_experts.h"

namespace sluice::engine {

struct ExpertCopyOptions {
  bool poison = false;  // overwrite what leaves: whoever still reads it computes nonsense
};

// Where an expert stands in the device's memory already, besides its slot; null: nowhere. The copy
// is then made from there, not over the link.
struct NearbyExperts {
  using Place = std::function<const std::byte*(policy::ExpertKey)>;
  Place staged = {};  // written by the copy stream
  Place landed = {};  // by the step just done: the next one copies it, and finds it
};

class ExpertCopies {
 public:
  // `main` runs the steps, `copies` all copies. All outlive this.
  ExpertCopies(backend::Device& device, backend::Stream& main, backend::Stream& copies,
               ExpertSlots& slots, HostExperts& host, const policy::ExpertCache& cache,
               const ExpertCopyOptions& options = {});

  // Between two steps: puts into the table what has arrived, and begins moves, these and those that
  // are still to be made, until max_bytes are under way: the rest waits for a later boundary, and
  // its victims stay where they are until then. So the copies that a prompt asks for do not
  // become a queue in which others, such as a next prompt's experts, would have to wait.
  void boundary(std::span<const policy::Move> moves, const NearbyExperts& nearby = {},
                uint64_t max_bytes = std::numeric_limits<uint64_t>::max());

  // After a fault of the copy stream it is unknown which copies arrived whole: begins all of them
  // again. False where there was none. Only this may call the stream's finish(), or copies are
  // lost.
  bool mend();

  // Waits until all copies are done, and puts them into the table: the start, before any step.
  void finish();

  // Whether nothing is under way, as the calling work's stream sees it.
  bool is_idle() const;

  // After a step that failed: what landed before it may not have been copied either, so it comes
  // over the link.
  void doubt_landed();

  int64_t n_copies() const { return n_copies_; }  // over the link
  int64_t n_landed() const { return n_landed_; }  // copies that needed no link
  uint64_t copied_bytes() const { return copied_bytes_; }
  int64_t n_failed() const { return n_failed_; }
  const std::string& last_fault() const { return last_fault_; }

 private:
  // A copy that is under way. A few that follow each other are a group, with one event behind the
  // last of them: to record and to ask for events takes the host as long as to begin copies.
  struct Pending {
    policy::ExpertKey key;
    std::byte* slot = nullptr;
    uint64_t group = 0;
  };

  void publish_arrived();
  backend::Event& event(uint64_t group) const { return *events_[group % events_.size()]; }
  void end_group();
  bool take_landed(const policy::Move& move, const NearbyExperts::Place& landed);
  void enqueue(const policy::Move& move);
  size_t n_to_begin(uint64_t max_bytes) const;
  void take_out(policy::ExpertKey key, const std::byte* slot);
  bool is_pending(const std::byte* slot) const;
  bool belongs(policy::ExpertKey key, const std::byte* slot) const;
  void begin(const policy::Move& move, const NearbyExperts& nearby);
  void copy(Pending& pending, const std::byte* nearby);

  ExpertSlots& slots_;
  HostExperts& host_;
  const policy::ExpertCache& cache_;
  backend::Stream& main_;
  backend::Stream& copies_;
  ExpertCopyOptions options_;
  std::unique_ptr<backend::Event> left_;  // the main stream reads no slot any more that moves take
  std::vector<policy::Move> queue_;       // to be made, the next first; at most one for each slot
  std::vector<Pending> pending_;          // [n_pending_], the rest is room
  size_t n_pending_ = 0;
  std::vector<std::unique_ptr<backend::Event>> events_;  // of groups, in turn
  uint64_t n_done_ = 0;                                  // groups whose copies are done,
  uint64_t n_groups_ = 0;                                // of so many that were begun and ended;
  int n_in_group_ = 0;                                   // copies of the next one
  std::vector<policy::Move> landed_;                     // between the last two steps
  int64_t n_copies_ = 0;
  int64_t n_landed_ = 0;
  uint64_t copied_bytes_ = 0;
  int64_t n_failed_ = 0;
  std::string last_fault_;
};

}  // namespace sluice::engine
