// Operations of a device that holds only some of a model's experts. What it computes of a layer's
// experts falls into three parts, so that a driver may do something in between; as one submission
// they simply follow each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/device.h"
#include "backend/ops.h"
#include "base/error.h"
#include "base/routed_expert.h"
#include "base/step_memory.h"

namespace sluice::backend {

// Room for an expert that comes ahead of its layer. A word names what is there: staged_key().
struct StagedSlot {
  const std::byte* data = nullptr;
  const uint64_t* ready = nullptr;
};

// Never 0. A later step does not take an earlier one's expert for its own.
constexpr uint64_t staged_key(uint32_t step, LayerId layer, int32_t expert) {
  return uint64_t{step} << 32 | uint64_t(static_cast<uint16_t>(layer.value + 1)) << 16 |
         static_cast<uint16_t>(expert);
}

// Room for copies of what the device reads over the link, so that an expert that is to stay need
// not cross it again. A step takes the places in turn; when all are taken, the rest leaves no copy.
struct LandingView {
  std::byte* data = nullptr;  // null: there is no room
  uint64_t place_bytes = 0;   // from one place to the next
  int32_t n_places = 0;
  int32_t* n_taken = nullptr;  // [2] of the device's memory: before this layer of the step, and
                               // behind it
  uint64_t* landed = nullptr;  // [n_places]: what is there, staged_key(); the host sees it too
};

// What comes and goes in the table by which a step finds experts, in the memory of the device.
struct TableChange {
  int64_t entry = 0;
  std::byte* slot = nullptr;  // null: the expert goes
  const std::byte* from =
      nullptr;           // where its bytes are, in the device's memory; null: in the slot
  uint64_t n_bytes = 0;  // a multiple of 16
};
struct TableChangesView {
  const int32_t* n = nullptr;  // [1]
  const TableChange* changes = nullptr;
  const std::byte** table = nullptr;
};

// What happened in a layer of a step; in memory that host and device see.
struct LayerLog {
  int32_t n_rows = 0;    // that were routed
  int32_t n_hits = 0;    // pairs of expert and row, by where their expert was found: in a slot,
  int32_t n_staged = 0;  // copied ahead,
  int32_t n_link = 0;    // read over the link,
  int32_t n_cpu = 0;     // with the host
  uint64_t link_bytes = 0;
  int64_t ns = 0;        // nanoseconds of the layer's experts, from lookup to sum
  int64_t wait_ns = 0;   // of it, for the host's rows
  int64_t stall_ns = 0;  // of it, for bytes on the link
  int64_t cpu_ns = 0;    // that the host computed
};

// Where the device writes that down, and what was routed.
struct LayerLogView {
  LayerLog* counts = nullptr;
  RoutedExpert* routed = nullptr;  // [n_rows, n_used]
};

// Where the device finds the experts of a layer while a step runs; all of it in memory it reads.
struct LookupView {
  LayerId layer;
  int part = 0;                             // of the layer's rows, where they come in several
  const uint32_t* step = nullptr;           // [1]: its number, from 1
  const int32_t* n_live = nullptr;          // [1]: as StepView has it
  const std::byte* const* table = nullptr;  // [n_experts]: slot (ExpertLayout), or null
  std::span<const StagedSlot> staged;
  const std::byte* host = nullptr;    // the layer's slots in the host's memory, as the device finds
                                      // them (ExpertsView::slots); null: it cannot read them
  const float* link_share = nullptr;  // of the misses, what it reads there (base/miss_split.h)
  LandingView landing;
  LayerLogView log;  // null: nobody wants to know, and all experts are in the table
};

// How the device tells of a layer that it has routed, and of what a later one would choose now; in
// memory that both sides see.
struct LayerNews {
  uint64_t told;     // by the device: request_number() of the layer, when all below is written
  uint64_t heard;    // by the host: the same, when it has read it
  int32_t is_asked;  // whether there is a prediction
};

struct ForeseeView {
  LayerId layer;                     // that was routed
  const uint32_t* step = nullptr;    // [1]: its number
  const uint32_t* wanted = nullptr;  // [1], by the host at any time; 0: no prediction
  LayerNews* news = nullptr;
};

// The pairs of expert and row of a wide step's layer, in the device's memory, by expert.
struct SortedPairs {
  int n_used = 0;            // experts of a row
  int32_t* first = nullptr;  // [n_experts + 1]: where an expert's begin
  int32_t* slots = nullptr;  // [n_rows * n_used]: row * n_used + rank, ascending for each expert
};

// How the device sorts them, and tells the host of it in memory that both see, where that is asked
// for: n_pairs and told are null together.
struct SortView {
  LayerId layer;
  const uint32_t* step = nullptr;  // [1]: its number
  SortedPairs pairs;
  int32_t* n_pairs = nullptr;  // [n_experts]: of each
  uint64_t* told = nullptr;    // request_number() of the layer, when all of it is written
};

// Of one stream of a device: every call enqueues, or is recorded. Views are kept by value; what
// they point to outlives the work.
class DeviceOps : public Ops {
 public:
  // At the start: takes all the memory that steps up to this size need, of what it was given.
  virtual void reserve(const OpsSize&) {}

  // At the head of a step.
  virtual void change_table(const TableChangesView& changes) = 0;

  // Behind find_experts: tells the host that the layer is routed, and where that is wanted, what a
  // later layer's router would choose now, from the same x; without a router there is none.
  virtual void foresee(const ForeseeView& foresee, ConstRowsView x, const NormView& norm,
                       const RouterView& router, const RoutingView& prediction) = 0;

  // How many rows it can find, compute and add at once.
  virtual int64_t most_found_rows() const = 0;
  // Finds what the rows chose: in the table, among what was staged, in the host's memory; and asks
  // the host for the rest, through the mailbox.
  virtual void find_experts(const ExpertsView& experts, const LookupView& lookup,
                            const ExpertInputView& a, const RoutingView& routing) = 0;
  // The rows of what it found, and of the shared expert.
  virtual void compute_found(const ExpertsView& experts, const ExpertInputView& a) = 0;
  // Waits for the host's rows, and adds all of them to x. Where they do not come, x stays as it is,
  // and the mailbox names the layer.
  virtual void add_found(const RoutingView& routing, RowsView x) = 0;

  // For steps too wide for that. First the pairs are sorted; then come the rows of those whose
  // experts stand in experts.table, as often as there is another table, and of the shared expert,
  // where there is one; then their sum, and what was routed is written down (that takes a link
  // longer than sorting takes, and nobody reads it before the step ends).
  virtual void sort_pairs(const ExpertsView& experts, const SortView& sort,
                          const RoutingView& routing, int64_t n_rows) = 0;
  virtual void compute_sorted(const ExpertsView& experts, const SortedPairs& pairs,
                              const ExpertInputView& a) = 0;
  virtual void add_sorted(const ExpertsView& experts, const RoutingView& routing,
                          const LayerLogView& log, RowsView x) = 0;
};

}  // namespace sluice::backend
