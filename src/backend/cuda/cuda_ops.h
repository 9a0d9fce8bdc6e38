// The operations of a GPU's stream (device_ops.h), for steps whose experts are all in the device's
// memory, of 1 to 16 rows or (cuda_wide.cpp) more. What is not there yet, or not in a form that the
// kernels read, is a fault of the stream that says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include "backend/cuda/attend.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_scratch.h"
#include "backend/cuda/cuda_stream.h"
#include "backend/cuda/cuda_woven.h"
#include "backend/cuda/experts.h"
#include "backend/cuda/find_missing.h"
#include "backend/cuda/launch.h"
#include "backend/cuda/project.h"
#include "backend/cuda/route.h"
#include "backend/cuda/step_rows.h"
#include "backend/device_ops.h"
#include "backend/mailbox.h"

namespace sluice::backend::cuda {

class CudaOps final : public DeviceOps {
 public:
  // All outlive it.
  CudaOps(CudaDevice& device, CudaStream& stream, const MailboxView& mailbox,
          std::span<std::byte> scratch);
  ~CudaOps() override;
  CudaOps(const CudaOps&) = delete;
  CudaOps& operator=(const CudaOps&) = delete;

  Buffer allocate(uint64_t n_bytes) override;
  void embed(const WeightView& table, const StepView& step, RowsView x) override;
  void project_in(ConstRowsView x, const NormView& norm, std::span<const Projection> projections,
                  RowsView out) override;
  void attend(RowsView qkv, const AttentionView& attention, const StepView& step,
              const KvLayerView& kv, RowsView out) override;
  void delta_net(ConstRowsView in, const DeltaNetView& net, const StepView& step,
                 const StateLayerView& state, RowsView out) override;
  void delta_replay(const DeltaNetView& net, const StateLayerView& state,
                    const StateReplay& replay) override;
  void project_add(ConstRowsView in, const Projection& projection, RowsView x) override;
  void route(ConstRowsView x, const NormView& norm, const RouterView& router,
             const ExpertInputView& a, const RoutingView& routing) override;
  void experts(const ExpertsView& experts, const ExpertInputView& a, const RoutingView& routing,
               RowsView x) override;
  void logits(ConstRowsView x, const StepView& step, int64_t first, const NormView& norm,
              const WeightView& output, RowsView logits) override;
  void pick(ConstRowsView logits, const StepView& step, int64_t first, PickedRow* picks) override;

  void reserve(const OpsSize& size) override;
  void change_table(const TableChangesView& changes) override;
  void foresee(const ForeseeView& foresee, ConstRowsView x, const NormView& norm,
               const RouterView& router, const RoutingView& prediction) override;
  int64_t most_found_rows() const override {
    return std::min<int64_t>(mailbox_.shape.max_rows, kMaxRows);
  }
  void find_experts(const ExpertsView& experts, const LookupView& lookup, const ExpertInputView& a,
                    const RoutingView& routing) override;
  void compute_found(const ExpertsView& experts, const ExpertInputView& a) override;
  void add_found(const RoutingView& routing, RowsView x) override;
  void sort_pairs(const ExpertsView& experts, const SortView& sort, const RoutingView& routing,
                  int64_t n_rows) override;
  void compute_sorted(const ExpertsView& experts, const SortedPairs& pairs,
                      const ExpertInputView& a) override;
  void add_sorted(const ExpertsView& experts, const RoutingView& routing, const LayerLogView& log,
                  RowsView x) override;

 private:
  // What attend left in int8 as well, for the projection right behind it; null: nothing.
  struct Attended {
    const float* f32 = nullptr;
    Int8Rows int8;
  };
  // Of the experts that were listed last.
  struct Found {
    ExpertShape shape;
    int n_rows = 0;
    Int8Rows hidden = {};
    const int32_t* n_live = nullptr;
    Ranking ranking = {};
    std::optional<FindMissing> missing = {};  // that gate_up looks for itself
    Landing landing = {};                     // where copies of what is read are left
    int64_t down_at = 0;                      // in such a copy
    HostAnswers host = {};                    // where it computes some
    std::optional<ExpertsView> any;           // where their matrices are computed one by one
  };

  // A route that is recorded waits for find_experts, which knows where experts stand: then it makes
  // their list too. What a single row adds right before it waits with it, and may make its scores.
  struct HeldRoute {
    Route route;
    ExpertInputView a;
    const int32_t* forced = nullptr;  // as RoutingView has them
    std::optional<ProjectAdd> add;
  };

  // What a wide step's experts leave behind, by slot: those of the shared expert from n_routed on.
  struct WideHidden {
    Int8Rows h;
    float* outs = nullptr;
    int64_t n_rows = 0;
    int64_t n_routed = 0;
    int64_t d_model = 0;
  };

  template <typename Work>
  void enqueue(const Work& work);
  Int8Rows int8_rows(CudaScratch::Use use, int64_t n_rows, int64_t n_cols);
  Route route_of(ConstRowsView x, const NormView& norm, const RouterView& router);
  ExpertList expert_list(CudaScratch::Use use = CudaScratch::Use::groups);
  Int8Rows input_rows(const ExpertInputView& a);
  void look_at(const ExpertsView& experts, int n_rows, int n_used);
  void compute_any(const ExpertsView& experts, const ExpertInputView& a);
  void add_any(const ExpertsView& experts, const RoutingView& routing, RowsView x);
  const float* normed_rows(ConstRowsView x, const int32_t* index, int64_t n_rows,
                           const NormView& norm);
  void project_one(ConstRowsView x, const NormView& norm, const Projection& projection,
                   RowsView out, int64_t first);
  void attend_any(Attend p, const AttentionView& a, const StepView& step, const KvLayerView& kv,
                  RowsView out);
  void logits_at(Logits p, const WeightView& output, float* out);
  void list_found(const ExpertsView& experts, const std::byte* const* table, int64_t n_rows,
                  const RoutingView& routing, const int32_t* n_live);
  void compute_list(const ExpertsView& experts, const ExpertInputView& a);
  void add_list(const RoutingView& routing, RowsView x);
  FindMissing missing_of(const ExpertsView& experts, const LookupView& lookup,
                         const ExpertInputView& a, const RoutingView& routing);
  bool add_scores(const HeldRoute& held);
  void launch_route(const HeldRoute& held);
  void launch_held();
  bool lists_itself(const HeldRoute& held, const LookupView& lookup, const ExpertInputView& a,
                    const RoutingView& routing) const;
  void route_and_list(HeldRoute held, const ExpertsView& experts, const LookupView& lookup,
                      const ExpertInputView& a, const RoutingView& routing);
  void copy_rows(const ExpertInputView& a, const Int8Rows& rows, bool to_view);

  // Of more than 16 rows (cuda_wide.cpp).
  void wide_project_in(ConstRowsView x, const NormView& norm,
                       std::span<const Projection> projections, RowsView out);
  void wide_attend(RowsView qkv, const AttentionView& attention, const StepView& step,
                   const KvLayerView& kv, RowsView out);
  void wide_project_add(ConstRowsView in, const Projection& projection, RowsView x);
  void wide_route(ConstRowsView x, const NormView& norm, const RouterView& router,
                  const ExpertInputView& a, const RoutingView& routing);
  void wide_experts(const ExpertsView& experts, const ExpertInputView& a,
                    const RoutingView& routing, RowsView x);
  float* wide_rows(int64_t n_rows, int n_used, int64_t d_model);
  void compute_routed(const ExpertsView& e, const SortedPairs& pairs, const Int8Rows& in,
                      const WideHidden& to);
  void compute_shared(const ExpertsView& e, const Int8Rows& in, const WideHidden& to);

  CudaDevice& device_;
  CudaStream& stream_;
  MailboxView mailbox_;
  Launch how_;
  CudaScratch scratch_;
  Attended attended_;
  Found found_;
  std::optional<ProjectAdd> held_add_;  // until it is known whether a route comes behind it
  std::optional<HeldRoute> held_;
  CudaWoven woven_;
};

}  // namespace sluice::backend::cuda
