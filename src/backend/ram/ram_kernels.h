// What the operations of the RAM device do when a stream's turn comes: what those of the CPU do, on
// the device's own threads, in the device's memory, and in nothing else, unless it is read over the
// link.
//
// On the virtual clock an operation takes as long as its weights take to be read, or its products
// to be computed; and the host's rows come when the described machine would have had them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "backend/cpu/experts.h"
#include "backend/device_ops.h"
#include "backend/mailbox.h"
#include "backend/ram/ram_device.h"

namespace sluice::backend {

// Operations for each byte that the device can read meanwhile; as the planner has it.
constexpr double kRamOpsPerByte = 25.0;

class RamKernels {
 public:
  RamKernels(RamDevice& device, const MailboxView& mailbox, std::span<std::byte> scratch)
      : device_(device),
        machine_(device.options()),
        threads_(machine_.n_threads),
        mailbox_(mailbox),
        cpu_(make_cpu_ops(threads_)),
        experts_(threads_, cpu::best_kernels()),
        scratch_(scratch) {}

  // Those of the CPU, whose time is that of the described machine.
  void embed(const WeightView& table, const StepView& step, RowsView x);
  void project_in(ConstRowsView x, const NormView& norm, std::span<const Projection> projections,
                  RowsView out);
  void attend(RowsView qkv, const AttentionView& attention, const StepView& step,
              const KvLayerView& kv, RowsView out);
  void delta_net(ConstRowsView in, const DeltaNetView& net, const StepView& step,
                 const StateLayerView& state, RowsView out);
  void delta_replay(const DeltaNetView& net, const StateLayerView& state,
                    const StateReplay& replay);
  void project_add(ConstRowsView in, const Projection& projection, RowsView x);
  void route(ConstRowsView x, const NormView& norm, const RouterView& router,
             const ExpertInputView& a, const RoutingView& routing);
  void logits(ConstRowsView x, const StepView& step, int64_t first, const NormView& norm,
              const WeightView& output, RowsView logits);
  void pick(ConstRowsView logits, const StepView& step, int64_t first, PickedRow* picks);

  // Those of a device that lacks some experts (experts.cpp).
  void experts(const ExpertsView& experts, const ExpertInputView& a, const RoutingView& routing,
               RowsView x);
  void change_table(const TableChangesView& changes);
  void foresee(const ForeseeView& foresee, ConstRowsView x, const NormView& norm,
               const RouterView& router, const RoutingView& prediction);
  int64_t most_found_rows() const { return mailbox_.shape.max_rows; }
  void find_experts(const ExpertsView& experts, const LookupView& lookup, const ExpertInputView& a,
                    const RoutingView& routing);
  void compute_found(const ExpertsView& experts, const ExpertInputView& a);
  void add_found(const RoutingView& routing, RowsView x);
  void sort_pairs(const ExpertsView& experts, const SortView& sort, const RoutingView& routing,
                  int64_t n_rows);
  void compute_sorted(const ExpertsView& experts, const SortedPairs& pairs,
                      const ExpertInputView& a);
  void add_sorted(const ExpertsView& experts, const RoutingView& routing, const LayerLogView& log,
                  RowsView x);

 private:
  const std::byte* staged(const LookupView& lookup, int32_t expert) const;
  float* rows(int64_t n_slots, int64_t n_cols) const;
  void reserve(const ExpertsView& experts, int64_t n_rows, int n_used);
  void append_routing(const RoutingView& routing, int64_t n_rows, const LayerLogView& log);
  void take_table(std::span<const std::byte* const> table);
  void compute_hits(const ExpertsView& experts, const ExpertInputView& a);
  void compute_own(const ExpertsView& experts, std::span<const ExpertPair> pairs,
                   const ExpertInputView& a);
  void divide_misses(const ExpertsView& experts, float link_share);
  void land(const LookupView& lookup, uint64_t expert_bytes);
  void ask_host(uint64_t number, const ExpertInputView& a);
  bool take_answer(int64_t n_cols);
  ExpertInputView live(ExpertInputView a) const;

  // The device's work reads only its own memory.
  void require_own(const WeightView& w) const;
  double seconds_of(const WeightView& w, int64_t n_rows) const;
  void read(const WeightView& w, int64_t n_rows);
  void read_cache(const AttentionView& attention, const StepView& step, const KvLayerView& kv);
  void read_states(const DeltaNetView& net, const StepView& step, const StateLayerView& state);
  double seconds_of(std::span<const ExpertPair> pairs, const ExpertsView& experts);
  int64_t count_experts(std::span<const ExpertPair> pairs, int64_t n_experts);

  RamDevice& device_;
  const RamDeviceOptions& machine_;
  ThreadPool threads_;
  MailboxView mailbox_;
  std::unique_ptr<Ops> cpu_;
  cpu::Experts experts_;
  std::span<std::byte> scratch_;

  // Of the layer whose experts were found last.
  LayerLog* log_ = nullptr;
  LayerLog unread_log_;  // where nobody wants one
  LayerId layer_;
  bool has_shared_ = false;
  int64_t n_live_ = 0;                   // rows
  std::vector<const std::byte*> table_;  // by expert: where it was found
  std::vector<ExpertPair> hits_, link_, misses_;
  std::vector<char> used_;  // by expert
  uint64_t request_ = 0;    // 0: none
  bool is_lost_ = false;    // the host does not answer any more
  double found_at_ = 0.0;
  double read_by_ = 0.0;      // what comes over the link
  double answered_by_ = 0.0;  // on the virtual clock
};

}  // namespace sluice::backend
