// See device_steps.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/device_steps.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/wall_clock.h"
#include "engine/machine/calibration.h"
#include "engine/machine/mode_trial.h"
#include "engine/machine/profile_saver.h"
#include "engine/machine/session_plan.h"
#include "engine/step/virtual_stepper.h"
#include "model_file/shape.h"
#include "policy/plan/fitted_rates.h"
#include "policy/plan/planner_cache.h"

namespace sluice::engine {
namespace {

backend::RamDeviceOptions device_options(const SimDevice& sim, const Machine& hardware) {
  return {.n_bytes = hardware.vram_free,
          .link_gbps = hardware.link_gbps,
          .delay_us = sim.delay_us,
          .pin_limit = hardware.pin_limit,
          .clock = sim.is_virtual ? backend::Clock::virtual_time : backend::Clock::wall,
          .device_gbps = hardware.gpu_gbps,
          .cpu_gbps = hardware.cpu_gbps,
          .handshake_us = hardware.handshake_us,
          .layer_us = policy::kGpuLayerSeconds * 1e6,
          .experts_us = hardware.experts_us,
          .lookup_us = policy::kLookupSeconds * 1e6,
          .link_us = policy::kLinkBursts * policy::kLinkBurstSeconds * 1e6,
          .copy_interference = hardware.copy_interference,
          .before_copy = {}};
}

backend::RamDeviceOptions watched(backend::RamDeviceOptions options, const DeviceRequest& request) {
  if (request.watch_device) request.watch_device(options);
  return options;
}

// As long as some layers' work on a GPU.
constexpr std::chrono::milliseconds kAwakeBesideGpu{2};

// Of a decode step in which every expert is a hit.
double least_layer_seconds(const policy::ModelShape& shape, const policy::Hardware& hardware) {
  double least = std::numeric_limits<double>::max();
  for (const policy::LayerShape& layer : shape.layers) {
    const int n_used = std::min(shape.n_experts_used, layer.n_experts);
    const double n_bytes =
        static_cast<double>(layer.trunk_bytes) + n_used * static_cast<double>(layer.expert_bytes);
    least = std::min(least, policy::kGpuLayerSeconds + hardware.experts_us * 1e-6 +
                                n_bytes / (hardware.gpu_gbps * 1e9));
  }
  return least;
}

// A driver with all that it works on, and the routing profile that is kept from one run to the
// next.
class DeviceSteps final : public StepDriver {
 public:
  explicit DeviceSteps(DeviceRequest request);
  ~DeviceSteps() override {
    if (saver_) saver_->finish(runtime_->cache().uses(), runtime_->cache().n_steps());
  }

  void step(std::span<const StepRow> rows, policy::Phase phase,
            const StepListener& listener) override {
    driver_->step(rows, phase, listener);
    if (!saver_) return;
    saver_->after_step(runtime_->cache().uses(), runtime_->cache().n_steps(), wall_seconds());
  }
  void truncate(SequenceId sequence, int n_tokens) override {
    driver_->truncate(sequence, n_tokens);
  }
  void fork(SequenceId from, SequenceId to, int n_tokens) override {
    driver_->fork(from, to, n_tokens);
  }
  TextMemory text_memory() override { return driver_->text_memory(); }
  bool keeps_points() const override { return driver_->keeps_points(); }
  WentBack went_back() const override { return driver_->went_back(); }
  int kept_tokens(SequenceId sequence, int n_tokens) const override {
    return driver_->kept_tokens(sequence, n_tokens);
  }
  int n_tokens(SequenceId sequence) const override { return driver_->n_tokens(sequence); }
  int max_rows() const override { return driver_->max_rows(); }
  uint64_t kv_bytes() const override { return driver_->kv_bytes(); }
  KvPages kv_pages() const override { return driver_->kv_pages(); }
  void find_experts(std::span<ExpertMap::Where> where) const override {
    driver_->find_experts(where);
  }
  const RoutingLog& log() const override { return driver_->log(); }
  double seconds() const override { return driver_->seconds(); }

  PlacementInfo placement() override {
    PlacementInfo info = info_;
    if (saver_ && !saver_->warning().empty()) info.warnings.push_back(saver_->warning());
    return info;
  }
  ExpertStats stats() const override { return driver_->stats(); }

 private:
  const DeviceOptions& wishes() const { return request_.options.device; }
  // Beside a GPU one thread feeds it, and spins while it computes: with a worker on every core one
  // of them would share its core, and all would wait for it in every layer. (Qwen3-30B-A3B's shape,
  // half of the misses with 16 cores: 60 tokens/s, and 149 with 15.) Those that are missing a layer
  // or two apart find them awake.
  ThreadPool& threads() { return beside_gpu_ ? *beside_gpu_ : request_.threads; }
  int n_threads() const { return request_.threads.n_threads(); }
  WeightMemory weights() const {
    return request_.held_bytes > 0 ? WeightMemory::copied : WeightMemory::mapped;
  }
  const policy::Plan& plan() const { return session_.plan(); }
  double wished_link_share(const policy::Plan& plan) const {
    if (wishes().held_link_gbps > 0.0) return 0.0;
    return wishes().link_share.value_or(plan.link_share);
  }
  // Only experts that stand in slots have one address by which the device can read them.
  bool can_read_link() const { return request_.model.layers().front().experts.slots != nullptr; }

  std::unique_ptr<backend::Device> make_device();
  void measure_and_plan();
  void try_ways(const std::string& path);
  std::unique_ptr<StepDriver> make_driver(const policy::Plan& plan, RouteOverride reroute);
  ExpertRuntimeOptions wished_options(const policy::Plan& plan, RouteOverride reroute) const;
  void fill_info();

  DeviceRequest request_;
  std::optional<ThreadPool> beside_gpu_;
  PlacementInfo info_;
  GpuInfo gpu_;  // where it is one
  std::unique_ptr<backend::Device> device_;
  uint64_t free_before_;       // of its memory
  RegisteredExperts experts_;  // once for all trials and the driver
  SessionPlan session_;
  std::unique_ptr<StepDriver> driver_;
  ExpertRuntime* runtime_ = nullptr;  // the driver; null where the plan leaves all to the CPU
  std::optional<ProfileSaver> saver_;
};

DeviceSteps::DeviceSteps(DeviceRequest request)
    : request_(std::move(request)),
      device_(make_device()),
      free_before_(device_->free_bytes()),
      experts_(request_.model, *device_) {
  measure_and_plan();
  driver_ = make_driver(plan(), request_.reroute);
  if (plan().n_gpu_layers > 0) runtime_ = static_cast<ExpertRuntime*>(driver_.get());
  if (runtime_ && !wishes().profile_path.empty()) {  // else there is no cache to learn for
    const model::Config& config = request_.model.config();
    const policy::RoutingProfile none(config.n_layers, config.n_experts);
    saver_.emplace(wishes().profile_path, session_.profile.value_or(none));
  }
  fill_info();
}

std::unique_ptr<backend::Device> DeviceSteps::make_device() {
  if (wishes().kind == DeviceKind::cuda) {
    gpu_ = usable_gpu(find_gpus(), wishes().gpu);
    require_gpu_can(request_.model);
    if (n_threads() > 1) beside_gpu_.emplace(n_threads() - 1, kAwakeBesideGpu);
    return backend::make_cuda_device(wishes().gpu);
  }
  return backend::make_ram_device(
      watched(device_options(wishes().sim, described_machine(wishes(), n_threads(), 0)), request_));
}

// A machine that nobody has measured is measured first; a described one is what was said of it, and
// its trials are not kept.
void DeviceSteps::measure_and_plan() {
  const std::string path = record_path(wishes(), model_file::read_shape(request_.file));
  MachineRecord record;
  const auto warn = [this](const std::string& warning) {
    if (!warning.empty()) info_.warnings.push_back(warning);
  };
  if (!path.empty()) {
    std::string warning;
    record = MachineRecord::load(path, &warning);
    warn(warning);
    const bool is_gpu = wishes().kind == DeviceKind::cuda;
    const std::string name =
        device_name(wishes(), described_machine(wishes(), n_threads(), 0, &gpu_));
    if (!record.device(name, n_threads())) {
      record.add(DeviceRates{
          name, n_threads(),
          (is_gpu ? calibrate_gpu : calibrate)(request_.model, *device_, threads(), 2.5)});
      warn(keep_measured(path, record.devices.back()));
    }
  }
  session_ = plan_session({.file = request_.file,
                           .options = request_.options,
                           .n_threads = n_threads(),
                           .held_bytes = request_.held_bytes,
                           .weights = weights(),
                           .record = path.empty() ? nullptr : &record,
                           .gpu = wishes().kind == DeviceKind::cuda ? &gpu_ : nullptr,
                           .n_sequences = request_.texts.n_sequences,
                           .n_kept = request_.texts.n_kept,
                           .n_kv_tokens = request_.texts.n_kv_tokens});
  for (const std::string& warning : session_.warnings) warn(warning);
  if (session_.needs_trials() && (!path.empty() || wishes().sim.is_virtual)) try_ways(path);
}

// The same tokens for each; what was tried once stays known.
void DeviceSteps::try_ways(const std::string& path) {
  const model::Config& config = request_.model.config();
  for (PlannedWay& way : session_.ways) {
    if (way.measured > 0.0) continue;
    TextRouting text(config, session_.profile ? &*session_.profile : nullptr);
    const auto make = [&](RouteOverride reroute) {
      return make_driver(way.plan, std::move(reroute));
    };
    way.measured = try_steps(make, text, config.n_vocab, way.plan.work.n_ctx);
    if (path.empty()) continue;
    const TrialRecord trial{way.trial_key, std::string(policy::mode_key(way.plan.mode)),
                            way.measured};
    if (const std::string warning = keep_measured(path, trial); !warning.empty()) {
      info_.warnings.push_back(warning);
    }
  }
  session_.choose_by_trials();
}

std::unique_ptr<StepDriver> DeviceSteps::make_driver(const policy::Plan& plan,
                                                     RouteOverride reroute) {
  const policy::ModelShape& shape = session_.shape;
  if (plan.n_gpu_layers > 0) {
    return std::make_unique<ExpertRuntime>(experts_, shape, *device_, threads(),
                                           wished_options(plan, std::move(reroute)));
  }
  auto stepper =
      std::make_unique<Stepper>(request_.model, backend::make_cpu_ops(request_.threads),
                                kv_options(plan.work), plan.work.max_rows(), std::move(reroute));
  if (!wishes().sim.is_virtual) return stepper;
  return std::make_unique<VirtualStepper>(
      std::move(stepper), [this, work = plan.work](const StepSize& step) {
        const policy::ModelShape& model = session_.shape;
        const double cpu_gbps = session_.machine.cpu_gbps;
        return host_seconds(model, work, model.n_layers(), step, cpu_gbps) +
               static_cast<double>(model.output_bytes) / (cpu_gbps * 1e9) +
               policy::step_seconds(session_.machine, /*uses_gpu=*/false);
      });
}

void DeviceSteps::fill_info() {
  const policy::Plan& plan = this->plan();
  const policy::Forecast& forecast = plan.forecast();
  info_.device = device_->name();
  info_.mode = policy::mode_name(plan.mode);
  info_.mode_key = policy::mode_key(plan.mode);
  info_.reason = plan.reason;
  info_.n_gpu_layers = plan.n_gpu_layers;
  info_.n_slots = forecast.n_slots;
  info_.is_dense = session_.shape.is_dense;
  info_.prefill_chunk = plan.work.prefill_chunk;
  for (const policy::LayerShape& layer : session_.shape.layers) info_.n_experts += layer.n_experts;
  info_.vram_bytes = free_before_ - std::min(free_before_, device_->free_bytes());
  info_.predicted_decode = forecast.speed.decode;
  info_.predicted_prefill = forecast.speed.prefill;
  info_.locality = session_.locality_source;
  const policy::Placement on_cpu{.n_gpu_layers = 0,
                                 .n_slots = std::vector<int>(session_.shape.layers.size())};
  info_.predict = [shape = session_.shape, machine = session_.machine, work = plan.work,
                   place = runtime_ ? runtime_->place() : on_cpu,
                   locality = session_.locality](bool is_prompt, int n_tokens, int depth) {
    return policy::predict_steps(shape, machine, work, {is_prompt, n_tokens, depth}, place,
                                 locality);
  };
  if (!runtime_) return;
  info_.prefetches = runtime_->staging().is_on();
  const policy::Placement& place = runtime_->place();
  info_.link_share = place.link_share;
  if (place.link_share != plan.link_share) {  // a wish that the plan does not know
    info_.predicted_decode =
        policy::predict(session_.shape, session_.machine, plan.work, place, session_.locality)
            .decode;
  }
  if (wishes().kind == DeviceKind::cuda) {
    info_.upload_bytes = runtime_->uploaded_bytes();
    info_.upload_seconds = runtime_->upload_seconds();
  }
  const int n_layers = plan.n_gpu_layers;
  const HostExperts& host = runtime_->host_experts();
  if (const int n = host.n_registered(); host.is_needed() && n < n_layers) {
    info_.warnings.push_back(cat("only ", n, " of ", n_layers,
                                 " layers' experts could be registered for the device; the others ",
                                 "go through a pinned ring, or stay with the CPU"));
  }
  if (wished_link_share(plan) > 0.0 && !can_read_link()) {
    info_.warnings.emplace_back(
        "the device cannot read experts over the link from a file that is only mapped; the CPU "
        "computes those that are missing (--weights copied changes that)");
  }
}

ExpertRuntimeOptions DeviceSteps::wished_options(const policy::Plan& plan,
                                                 RouteOverride reroute) const {
  const DeviceOptions& d = wishes();
  const policy::PolicyKind kind =
      d.cache_policy.empty() ? policy::PolicyKind::mixture : policy::parse_policy(d.cache_policy);
  ExpertRuntimeOptions o = runtime_options(plan, session_.shape, session_.machine, kind);
  o.place.link_share = can_read_link() ? wished_link_share(plan) : 0.0;
  o.held_link_gbps = d.held_link_gbps;
  o.cut = d.is_segmented ? StepCut::segmented : StepCut::whole;
  // By itself where the CPU computes what is missing: elsewhere the link is never idle, and there
  // was nothing to gain (bench/results/expert_stream.md).
  const bool pays = plan.mode == policy::Mode::expert_cache && o.place.link_share == 0.0;
  const bool is_gpu = d.kind == DeviceKind::cuda;  // where asking later layers is not free
  o.staging.enabled =
      d.prefetch == Choice::on || (d.prefetch == Choice::automatic && pays && !is_gpu);
  o.staging.delay_us = d.sim.delay_us;
  // Where a GPU has all experts, what it routed is for those who ask.
  const bool is_resident =
      std::ranges::all_of(o.cache.layers, [](const auto& layer) { return layer.pinned; });
  o.logs = !is_gpu || !is_resident || request_.options.on_routing || !d.profile_path.empty() ||
           request_.texts.has_map;
  o.reroute = std::move(reroute);
  o.profile = session_.profile ? &*session_.profile : nullptr;
  o.progress = request_.options.progress;
  o.weaves = d.kind == DeviceKind::cuda && plan.price.host.experts == 0;
  return o;
}

}  // namespace

ExpertRuntimeOptions runtime_options(const policy::Plan& plan, const policy::ModelShape& shape,
                                     const Machine& hardware, policy::PolicyKind policy) {
  ExpertRuntimeOptions o;
  o.work = plan.work;
  o.place = {.n_gpu_layers = plan.n_gpu_layers,
             .n_slots = {},
             .overhead_bytes = hardware.vram_overhead,
             .link_share = plan.link_share,
             .pin_limit = hardware.pin_limit};
  for (const policy::LayerPlan& layer : plan.layers) o.place.n_slots.push_back(layer.n_slots);
  o.cache = policy::cache_options(plan, shape, hardware, policy);
  o.hidden_bytes = policy::hidden_bytes(plan, hardware);
  const double step_seconds = std::min(plan.step_seconds(), 1e3);
  o.staging = {.link_gbps = hardware.link_gbps,
               .layer_seconds = step_seconds / shape.n_layers(),
               .hits_seconds = least_layer_seconds(shape, hardware),
               .copy_cost = hardware.copy_interference};
  o.link_gbps = hardware.link_gbps;
  o.cpu_gbps = hardware.cpu_gbps;
  o.handshake_us = hardware.handshake_us;
  o.step_seconds = policy::step_seconds(hardware, /*uses_gpu=*/true);
  return o;
}

std::unique_ptr<StepDriver> make_device_driver(DeviceRequest request) {
  return std::make_unique<DeviceSteps>(std::move(request));
}

}  // namespace sluice::engine
