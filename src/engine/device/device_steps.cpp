// See device_steps.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/device_steps.h"

#include <algorithm>
#include <limits>

#include "base/cpu_topology.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/machine_fingerprint.h"
#include "base/units.h"
#include "base/wall_clock.h"
#include "engine/machine/measured_machine.h"
#include "engine/machine/mode_trial.h"
#include "engine/machine/profile_file.h"
#include "engine/step/virtual_stepper.h"
#include "model_file/shape.h"
#include "policy/plan/planner_cache.h"
#include "policy/plan/planner_trial.h"

namespace sluice::engine {
namespace {

constexpr uint64_t kUsualVram = 8 * kGiB;
constexpr double kGbpsPerCore = 8.0;  // of expert kernels, where nobody has measured

policy::Wishes wishes_of(const SessionOptions& options, int n_ctx) {
  const DeviceOptions& d = options.device;
  policy::Wishes wishes;
  wishes.vram_bytes = d.vram_bytes;
  wishes.moe = static_cast<policy::MoeWish>(d.moe);
  wishes.n_gpu_layers = d.n_gpu_layers;
  wishes.n_cpu_moe = d.n_cpu_moe;
  wishes.n_pinned = d.n_pinned_layers;
  wishes.pinned = d.pinned_layers;
  wishes.n_slots = d.n_slots;
  wishes.n_ctx = n_ctx;
  wishes.k_type = planned_type(options.k_type);
  wishes.v_type = planned_type(options.v_type);
  wishes.prefill_chunk = std::min(options.prefill_chunk, n_ctx);
  return wishes;
}

backend::RamDeviceOptions device_options(const SimDevice& sim, const policy::Hardware& hardware) {
  return {.n_bytes = hardware.vram_free,
          .link_gbps = hardware.link_gbps,
          .delay_us = sim.delay_us,
          .pin_limit = hardware.pin_limit,
          .clock = sim.is_virtual ? backend::Clock::virtual_time : backend::Clock::wall,
          .device_gbps = hardware.gpu_gbps,
          .cpu_gbps = hardware.cpu_gbps,
          .handshake_us = hardware.handshake_us,
          .layer_us = policy::kGpuLayerSeconds * 1e6,
          .copy_interference = hardware.copy_interference,
          .before_copy = {}};
}

// Of a decode step in which every expert is a hit.
double least_layer_seconds(const policy::ModelShape& shape, const policy::Hardware& hardware) {
  double least = std::numeric_limits<double>::max();
  for (const policy::LayerShape& layer : shape.layers) {
    const int n_used = std::min(shape.n_experts_used, layer.n_experts);
    const double n_bytes =
        static_cast<double>(layer.trunk_bytes) + n_used * static_cast<double>(layer.expert_bytes);
    least = std::min(least, policy::kGpuLayerSeconds + n_bytes / (hardware.gpu_gbps * 1e9));
  }
  return least;
}

static_assert(static_cast<int>(ExpertPlace::gpu) == static_cast<int>(policy::MoeWish::gpu) &&
              static_cast<int>(ExpertPlace::cpu) == static_cast<int>(policy::MoeWish::cpu));
static_assert(static_cast<int>(KvType::q8_0) == static_cast<int>(policy::KvType::q8_0) &&
              static_cast<int>(KvType::q4_0) == static_cast<int>(policy::KvType::q4_0));

}  // namespace

policy::Hardware hardware_of(const SimDevice& sim) {
  const auto or_else = [](auto value, auto usual) { return value > 0 ? value : usual; };
  policy::Hardware h;
  h.gpu = "RAM device";
  h.gpu_source = h.cpu_source = "described";
  h.n_cores = or_else(sim.n_cores, this_machines_cpus().default_threads());
  h.vram_free = or_else(sim.vram_bytes, kUsualVram);
  h.ram_free = or_else(sim.ram_bytes, free_memory().bytes);
  // On the wall's clock the device is one thread of this machine.
  h.gpu_gbps = or_else(sim.device_gbps, sim.is_virtual ? policy::kTypicalGpuGbps : kGbpsPerCore);
  h.link_gbps = sim.link_gbps;
  h.cpu_gbps = or_else(sim.cpu_gbps, kGbpsPerCore * h.n_cores);
  h.handshake_us = sim.handshake_us;
  h.copy_interference = sim.copy_interference;
  h.pin_limit = sim.pin_limit;
  h.vram_overhead = 0;
  return h;
}

ExpertRuntimeOptions runtime_options(const policy::Plan& plan, const policy::ModelShape& shape,
                                     const policy::Hardware& hardware, policy::PolicyKind policy) {
  ExpertRuntimeOptions o;
  o.work = plan.work;
  o.place = {.n_gpu_layers = plan.n_gpu_layers,
             .n_slots = {},
             .overhead_bytes = hardware.vram_overhead,
             .link_share = plan.link_share};
  for (const policy::LayerPlan& layer : plan.layers) o.place.n_slots.push_back(layer.n_slots);
  o.cache = policy::cache_options(plan, shape, hardware, policy);
  o.hidden_bytes = policy::hidden_bytes(plan, hardware);
  const double step_seconds = 1.0 / std::max(plan.forecast().speed.decode, 1e-3);
  o.staging = {.link_gbps = hardware.link_gbps,
               .layer_seconds = step_seconds / shape.n_layers(),
               .hits_seconds = least_layer_seconds(shape, hardware),
               .copy_cost = hardware.copy_interference};
  o.link_gbps = hardware.link_gbps;
  o.cpu_gbps = hardware.cpu_gbps;
  return o;
}

DeviceSteps::DeviceSteps(const gguf::ModelFile& file, const model::Model& model,
                         ThreadPool& threads, const SessionOptions& options, int n_ctx,
                         RouteOverride reroute)
    : shape_(model_file::read_shape(file)),
      hardware_(hardware_of(options.device.sim)),
      device_(device_options(options.device.sim, hardware_)) {
  load_profile(options.device.profile_path, model.config());
  plan_ = choose_plan(file, model, threads, options, n_ctx);
  driver_ = make_driver(plan_, model, threads, options, std::move(reroute));
  runtime_ = dynamic_cast<ExpertRuntime*>(driver_.get());
  if (!runtime_) saver_.reset();  // without a cache there is nothing to learn for
  fill_info();
}

void DeviceSteps::load_profile(const std::string& path, const model::Config& config) {
  if (path.empty()) return;
  std::string warning;
  profile_ = ProfileFile::load(path, config.n_layers, config.n_experts, &warning);
  if (!warning.empty()) info_.warnings.push_back(warning);
  saver_.emplace(path,
                 profile_.value_or(policy::RoutingProfile(config.n_layers, config.n_experts)));
}

// On the virtual clock the machine is what was said of it, and trials are not kept.
policy::Plan DeviceSteps::choose_plan(const gguf::ModelFile& file, const model::Model& model,
                                      ThreadPool& threads, const SessionOptions& options,
                                      int n_ctx) {
  const bool is_virtual = options.device.sim.is_virtual;
  const bool is_small = shape_.expert_bytes() < options.device.least_measured_bytes;
  const std::string path = is_virtual || is_small ? "" : options.device.machine_path;
  MachineRecord record;
  if (!path.empty()) {
    record = measured_machine(path, model, device_, threads, info_.warnings);
    use_measured(record, hardware_);
  }
  const policy::Wishes wishes = wishes_of(options, n_ctx);
  const std::vector<policy::Plan> plans = policy::close_plans(shape_, hardware_, wishes);
  if (plans.size() == 1 || (path.empty() && !is_virtual)) return plans[0];
  const size_t n_known = record.trials.size();
  const auto make = [&](const policy::Plan& plan) {
    return make_driver(plan, model, threads, options, {});
  };
  const std::string key = model_key(model.config().name, file.file_bytes());
  policy::Plan best = fastest(plans, make, model.config().n_vocab, key, record);
  best.reason = cat("the fastest of ", plans.size(), " ways that were tried");
  if (!path.empty() && record.trials.size() > n_known) keep_record(record, path, info_.warnings);
  return best;
}

std::unique_ptr<StepDriver> DeviceSteps::make_driver(const policy::Plan& plan,
                                                     const model::Model& model, ThreadPool& threads,
                                                     const SessionOptions& options,
                                                     RouteOverride reroute) {
  if (plan.n_gpu_layers > 0) {
    return std::make_unique<ExpertRuntime>(model, shape_, device_, threads,
                                           wished_options(plan, options, std::move(reroute)));
  }
  auto stepper =
      std::make_unique<Stepper>(model, backend::make_cpu_ops(threads), kv_options(plan.work),
                                plan.work.max_rows(), std::move(reroute));
  if (!options.device.sim.is_virtual) return stepper;
  return std::make_unique<VirtualStepper>(
      std::move(stepper), [this, work = plan.work](const StepSize& step) {
        const double output = static_cast<double>(shape_.output_bytes);
        return host_seconds(shape_, work, shape_.n_layers(), step, hardware_.cpu_gbps) +
               output / (hardware_.cpu_gbps * 1e9);
      });
}

void DeviceSteps::fill_info() {
  const policy::Forecast& forecast = plan_.forecast();
  info_.device = device_.name();
  info_.mode = policy::mode_name(plan_.mode);
  info_.mode_key = policy::mode_key(plan_.mode);
  info_.reason = plan_.reason;
  info_.n_gpu_layers = plan_.n_gpu_layers;
  info_.n_slots = forecast.n_slots;
  for (const policy::LayerShape& layer : shape_.layers) info_.n_experts += layer.n_experts;
  info_.vram_bytes = device_.options().n_bytes - device_.free_bytes();
  info_.predicted_decode = forecast.speed.decode;
  info_.predicted_prefill = forecast.speed.prefill;
  if (!runtime_) return;
  info_.prefetches = runtime_->staging().is_on();
  const policy::Placement& place = runtime_->place();
  info_.link_share = place.link_share;
  if (place.link_share != plan_.link_share) {  // a wish that the plan does not know
    info_.predicted_decode =
        policy::predict(shape_, hardware_, plan_.work, place, policy::LocalityCurve::typical())
            .decode;
  }
  const int n_layers = plan_.n_gpu_layers;
  if (const int n = runtime_->host_experts().n_registered(); n < n_layers) {
    info_.warnings.push_back(cat("only ", n, " of ", n_layers,
                                 " layers' experts could be registered for the device; the others ",
                                 "go through a pinned ring, or stay with the CPU"));
  }
}

ExpertRuntimeOptions DeviceSteps::wished_options(const policy::Plan& plan,
                                                 const SessionOptions& options,
                                                 RouteOverride reroute) const {
  const DeviceOptions& d = options.device;
  const policy::PolicyKind kind =
      d.cache_policy.empty() ? policy::PolicyKind::mixture : policy::parse_policy(d.cache_policy);
  ExpertRuntimeOptions o = runtime_options(plan, shape_, hardware_, kind);
  o.place.link_share = d.link_share.value_or(plan.link_share);
  o.cut = d.is_segmented ? StepCut::segmented : StepCut::whole;
  // By itself where the CPU computes what is missing: elsewhere the link is never idle, and there
  // was nothing to gain (bench/results/expert_stream.md).
  const bool pays = plan.mode == policy::Mode::expert_cache && o.place.link_share == 0.0;
  o.staging.enabled = d.prefetch == Choice::on || (d.prefetch == Choice::automatic && pays);
  o.staging.delay_us = device_.options().delay_us;
  o.reroute = std::move(reroute);
  o.profile = profile_ ? &*profile_ : nullptr;
  o.progress = options.progress;
  return o;
}

DeviceSteps::~DeviceSteps() {
  if (saver_) saver_->finish(runtime_->cache().uses(), runtime_->cache().n_steps());
}

void DeviceSteps::step(std::span<const StepRow> rows, policy::Phase phase,
                       const StepListener& listener) {
  driver_->step(rows, phase, listener);
  if (!saver_) return;
  saver_->after_step(runtime_->cache().uses(), runtime_->cache().n_steps(), wall_seconds());
}

PlacementInfo DeviceSteps::placement() {
  PlacementInfo info = info_;
  if (saver_ && !saver_->warning().empty()) info.warnings.push_back(saver_->warning());
  return info;
}

}  // namespace sluice::engine

namespace sluice {

std::vector<MeasuredSpeed> measured_speeds(const std::string& machine_path, const SimDevice& device,
                                           int n_threads, const std::string& name,
                                           uint64_t file_bytes) {
  const policy::Hardware hardware = engine::hardware_of(device);
  const std::string device_name =
      backend::RamDevice(engine::device_options(device, hardware)).name();
  if (n_threads == 0) n_threads = this_machines_cpus().default_threads();
  std::string warning;  // for the session that will measure anew
  std::vector<MeasuredSpeed> speeds;
  const auto record = engine::MachineRecord::load(
      machine_path, machine_fingerprint("", n_threads, device_name), &warning);
  if (!record) return speeds;
  for (const engine::TrialRecord& trial : record->trials) {
    if (trial.model_key != engine::model_key(name, file_bytes)) continue;
    speeds.push_back({trial.mode, trial.tokens_per_second});
  }
  return speeds;
}

}  // namespace sluice
