// Steps of a model on a device that holds only some of its experts. The last layers' trunk is the
// device's; it computes the experts it has, reads some over the link, and asks the host for the
// others, which computes them meanwhile. Narrow steps are one submission; of wide ones all layers
// are enqueued at once, and experts come in waves, but where the CPU computes them. Between steps
// the policy learns what was routed, and experts move. Where they are never changes a bit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>

#include "engine/device/device_experts.h"
#include "engine/device/device_trunk.h"
#include "engine/device/miss_worker.h"
#include "engine/device/step_block.h"
#include "engine/step/stepper.h"
#include "sluice/expert_stats.h"

namespace sluice::engine {

enum class StepCut {
  whole,      // a step is one submission
  segmented,  // cut in every layer
};

struct ExpertRuntimeOptions {
  policy::Workload work;
  policy::Placement place;
  policy::CacheOptions cache;                                    // layers' slots as in `place`
  uint64_t hidden_bytes = std::numeric_limits<uint64_t>::max();  // as ExpertCache::end_step
  StepCut cut = StepCut::whole;
  // What every step routed, layer by layer. A device with all experts (pinned) can do without.
  bool logs = true;
  StagingOptions staging;
  double link_gbps = 0.0;  // as measured or described: to choose between link and CPU for a prompt
  double held_link_gbps = 0.0;  // as HostExperts has it; 0: the link is as fast as it is
  double cpu_gbps = 0.0;
  double handshake_us = 0.0;
  double step_seconds = 0.0;  // on a virtual clock: what a step costs besides its work
  uint64_t stream_bytes = 0;  // of a prompt's two buffers, where less than is priced; 0: all of it
  ExpertCopyOptions copies;
  MissWorkerOptions misses;
  RouteOverride reroute;
  const policy::RoutingProfile* profile = nullptr;  // what to load first; used at the start only
  std::function<void(uint64_t bytes_done, uint64_t bytes_total)> progress;  // of the start
  // Rows are woven on their way to the device; only where it has all experts.
  bool weaves = false;
};

// The cache that a workload asks for, of n_layers (-1: all) from the first on.
KvOptions kv_options(const policy::Workload& work, int first_layer = 0, int n_layers = -1);

// How long a CPU of that rate takes for the first layers of a step.
double host_seconds(const policy::ModelShape& shape, const policy::Workload& work, int n_layers,
                    const StepSize& step, double cpu_gbps);

class ExpertRuntime final : public StepDriver {
 public:
  // Of the model whose experts these are, registered with that device; all outlive it. At least
  // one layer is the device's. Throws Errc::out_of_memory where the device is smaller than the
  // plan.
  ExpertRuntime(RegisteredExperts& experts, const policy::ModelShape& shape,
                backend::Device& device, ThreadPool& host_threads,
                const ExpertRuntimeOptions& options);
  ~ExpertRuntime() override;

  // Throws Errc::device where the step could not be finished.
  void step(std::span<const StepRow> rows, policy::Phase phase,
            const StepListener& listener) override;
  void truncate(SequenceId sequence, int n_tokens) override;
  void fork(SequenceId from, SequenceId to, int n_tokens) override;
  TextMemory text_memory() override;
  bool keeps_points() const override { return states_->any(); }
  int kept_tokens(SequenceId sequence, int n_tokens) const override {
    return states_->kept_tokens(sequence, n_tokens);
  }
  int n_tokens(SequenceId sequence) const override { return rows_.n_tokens(sequence); }
  int max_rows() const override { return options_.work.max_rows(); }
  uint64_t kv_bytes() const override;
  KvPages kv_pages() const override { return kv_->pages(); }
  void find_experts(std::span<ExpertMap::Where> where) const override;
  uint64_t state_bytes() const { return states_->n_bytes(); }
  WentBack went_back() const override { return went_back_; }
  const RoutingLog& log() const override { return log_; }
  double seconds() const override { return device_.now(); }

  const policy::Placement& place() const { return options_.place; }
  const policy::Price& price() const { return price_; }
  const policy::ExpertCache& cache() const { return cache_; }
  const HostExperts& host_experts() const { return host_; }
  const model::Model& device_model() const { return trunk_.model(); }
  ExpertSlots& slots() { return slots_; }
  ExpertCopies& copies() { return copies_; }
  const ExpertStaging& staging() const { return *staging_; }
  backend::Stream& main() { return *main_; }
  int64_t n_computed_by_host() const { return worker_.n_answered(); }  // pairs
  int64_t n_forwards() const { return n_forwards_; }                   // runs of the model's code
  ExpertStats stats() const override;

  // What the upload at the start brought, and how fast.
  uint64_t uploaded_bytes() const { return uploaded_bytes_; }
  double upload_seconds() const { return upload_seconds_; }

  // Of the misses, those that the device reads itself; between steps.
  void set_link_share(float share) { link_share_ = share; }

 private:
  // The layers before the device's, if any, in the host's memory.
  struct HostPart {
    std::unique_ptr<backend::Ops> ops;
    std::unique_ptr<KvCache> kv;
    std::unique_ptr<ActivationsBuffer> activations;
    std::unique_ptr<ResidentExperts> resident;
    std::unique_ptr<WatchedExperts> experts;
  };

  void make_host_part(ThreadPool& threads);
  void make_device_part();
  void make_states();
  void replay(const backend::StateReplay& updates);
  void load_first_experts();
  void upload_experts(std::span<const policy::Move> moves);
  bool has_all_experts() const { return price_.host.experts == 0; }
  int n_host_layers() const { return model_.config().n_layers - options_.place.n_gpu_layers; }
  void run_host_layers(const OnLayer& on_layer);
  void add_to_stats(int layer);
  void spend_host_time();
  void fill_forced();
  bool forces_in_block() const { return forced_.any() && width() <= kNarrowRows; }
  void run_step(const StepListener& listener);
  bool is_whole() const;
  bool experts_move() const { return !has_all_experts(); }
  int64_t width() const;
  model::Step begin_device_step(model::ExpertRunner& experts);
  void forward(model::Step& step, const OnLayer& on_layer);
  void run_device_layers(const StepListener& listener);
  void run_whole(const StepListener& listener);
  void finish_work();
  const backend::Recording& recording();
  std::unique_ptr<backend::Recording> record_step();
  void run_by_host(const StepListener& listener);
  void copy_logits(int64_t n_rows);
  void give_logits(std::span<const int32_t> rows, const StepListener& listener) const;
  backend::PickedRow* picks() const { return picks_out_.as<backend::PickedRow>(); }
  void end_step(policy::Phase phase);
  bool mend_copies();
  std::span<const policy::Move> learn(policy::Phase phase);
  bool prefers_link(LayerId layer, int n_missing) const;
  void tell_layers(const OnLayer& on_layer) const;
  void end_waves();
  uint64_t largest_slot() const;
  backend::SortedPairs make_pair_lists();

  const model::Model& model_;
  const policy::ModelShape& shape_;
  backend::Device& device_;
  ThreadPool& host_threads_;
  ExpertRuntimeOptions options_;
  policy::Price price_;
  // Pinned memory that nothing works without, before experts take what is left of it.
  backend::Mailbox mailbox_;
  backend::Buffer logits_out_,
      picks_out_;                  // mapped: logits on their way back, and the best of them
  backend::Buffer wave_memory_;    // for waves_
  backend::Buffer landed_memory_;  // for landing_
  RoutingLog log_;
  ForcedRoutes forced_;
  // All of the device's memory, and its parts; slots first, which are read fastest from whole
  // lines.
  DeviceBlock arena_;
  DeviceBlock slot_memory_, staging_memory_, kv_memory_, state_memory_, trunk_memory_,
      output_memory_, tables_;
  DeviceBlock scratch_;
  StepBlock block_;
  HostExperts host_;
  policy::ExpertCache cache_;
  std::unique_ptr<Upload> upload_;  // at the start
  DeviceTrunk trunk_;
  ExpertSlots slots_;
  float link_share_ = 0.0f;
  ExpertStats sum_;  // of the logs
  std::unique_ptr<backend::DeviceOps> ops_;
  std::unique_ptr<KvCache> kv_;
  std::vector<KvCache*> caches_;                 // the device's, and the host's if there is one
  std::vector<backend::KvLayerView> kv_layers_;  // by layer of the model; the host's have no pages
  std::unique_ptr<RecurrentStates> states_;      // the device's, and the host's
  std::vector<backend::StateLayerView> state_layers_;  // by layer, as the device finds them
  WentBack went_back_;
  std::unique_ptr<ActivationsBuffer> activations_;
  std::unique_ptr<backend::Stream> main_, copy_stream_;
  ExpertCopies copies_;
  std::unique_ptr<ExpertStaging> staging_;
  MissWorker worker_;
  std::optional<ExpertLanding> landing_;
  std::optional<ExpertParts> parts_;
  std::optional<WholeExperts> whole_;
  std::optional<SegmentedExperts> segmented_;
  std::optional<ExpertWaves> waves_;
  std::optional<StreamedExperts> streamed_;
  HostPart host_part_;
  StepRows rows_;
  const int32_t* forced_rows_ = nullptr;                               // of the step under way
  std::map<int64_t, std::unique_ptr<backend::Recording>> recordings_;  // by width
  int64_t n_forwards_ = 0;
  uint64_t uploaded_bytes_ = 0;
  double upload_seconds_ = 0.0;
};

}  // namespace sluice::engine
