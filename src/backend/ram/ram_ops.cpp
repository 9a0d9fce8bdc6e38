// See ram_ops.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/ram/ram_ops.h"

#include <algorithm>
#include <vector>

#include "backend/cpu/experts.h"
#include "backend/cpu/scratch.h"
#include "base/error.h"

namespace sluice::backend {
namespace {

class RamOps final : public Ops {
 public:
  RamOps(RamDevice& device, ThreadPool& threads, Mailbox& mailbox, double gbps)
      : device_(device),
        mailbox_(mailbox),
        bytes_per_second_(gbps * 1e9),
        cpu_(make_cpu_ops(threads)),
        experts_(threads, cpu::best_kernels()) {}

  Buffer allocate(uint64_t n_bytes) override {
    return device_.allocate(MemoryKind::device, n_bytes);
  }
  void embed(const WeightView& table, const StepView& step, RowsView x) override {
    cpu_->embed(table, step, x);
  }
  void project_in(ConstRowsView x, const NormView& norm, std::span<const Projection> projections,
                  RowsView out) override {
    for (const Projection& p : projections) read(p.weight);
    cpu_->project_in(x, norm, projections, out);
  }
  void attend(RowsView qkv, const AttentionView& attention, const StepView& step,
              const KvLayerView& kv, RowsView out) override {
    cpu_->attend(qkv, attention, step, kv, out);
  }
  void project_add(ConstRowsView in, const Projection& projection, RowsView x) override {
    read(projection.weight);
    cpu_->project_add(in, projection, x);
  }
  void route(ConstRowsView x, const NormView& norm, const RouterView& router,
             const ExpertInputView& a, const RoutingView& routing) override {
    read(router.weight);
    cpu_->route(x, norm, router, a, routing);
  }
  void logits(ConstRowsView x, std::span<const int32_t> rows, const NormView& norm,
              const WeightView& output, RowsView logits) override {
    read(output);
    cpu_->logits(x, rows, norm, output, logits);
  }

  void experts(const ExpertsView& experts, const ExpertInputView& a, const RoutingView& routing,
               RowsView x) override {
    look_up(experts, static_cast<int32_t>(a.n_rows), routing);
    const uint32_t request = misses_.empty() ? 0 : mailbox_.post(experts.layer, misses_, a);
    float* const rows = rows_.get(a.n_rows * routing.n_used * x.n_cols);
    read_experts(experts);
    experts_.compute(experts, hits_, a, rows);
    if (!misses_.empty()) take_answer(experts.layer, request, rows, x.n_cols);
    experts_.combine(routing, rows, static_cast<bool>(experts.shared_gate), x);
  }

 private:
  void look_up(const ExpertsView& experts, int32_t n_rows, const RoutingView& routing) {
    hits_.clear();
    misses_.clear();
    for (int32_t slot = 0; slot < n_rows * routing.n_used; ++slot) {
      const int32_t e = routing.experts[slot];
      const bool is_here = !experts.table || experts.table[e];
      (is_here ? hits_ : misses_).push_back({e, slot / routing.n_used, slot});
    }
  }

  void take_answer(LayerId layer, uint32_t request, float* rows, int64_t n_cols) {
    if (!mailbox_.wait(request)) {
      throw Error(Errc::device, cat("layer ", layer.value,
                                    ": the wait for the CPU's experts was "
                                    "ended; they did not come in time"));
    }
    for (const ExpertPair& pair : misses_) {
      std::copy_n(mailbox_.answer(pair.slot), n_cols, rows + pair.slot * n_cols);
    }
  }

  void read(const WeightView& weight) {
    RamDevice::spend(static_cast<double>(weight.matrix_bytes()) / bytes_per_second_);
  }
  void read_experts(const ExpertsView& experts) {
    used_.assign(static_cast<size_t>(experts.gate.n_mats), false);
    for (const ExpertPair& pair : hits_) {
      if (used_[static_cast<size_t>(pair.expert)]) continue;
      used_[static_cast<size_t>(pair.expert)] = true;
      for (const WeightView* w : {&experts.gate, &experts.up, &experts.down}) read(*w);
    }
    if (!experts.shared_gate) return;
    for (const WeightView* w : {&experts.shared_gate, &experts.shared_up, &experts.shared_down}) {
      read(*w);
    }
  }

  RamDevice& device_;
  Mailbox& mailbox_;
  double bytes_per_second_;
  std::unique_ptr<Ops> cpu_;
  cpu::Experts experts_;
  std::vector<ExpertPair> hits_, misses_;
  std::vector<bool> used_;
  cpu::Scratch<float> rows_;  // by slot
};

}  // namespace

std::unique_ptr<Ops> make_ram_ops(RamDevice& device, ThreadPool& threads, Mailbox& mailbox,
                                  double gbps) {
  return std::make_unique<RamOps>(device, threads, mailbox, gbps);
}

}  // namespace sluice::backend
