// See device_steps.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device_steps.h"

#include <algorithm>
#include <chrono>

#include "base/cpu_topology.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/units.h"
#include "engine/measured_machine.h"
#include "engine/profile_file.h"
#include "model/shape.h"
#include "policy/planner_cache.h"

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
  wishes.k_type = static_cast<policy::KvType>(options.k_type);
  wishes.v_type = static_cast<policy::KvType>(options.v_type);
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

double wall_seconds() {
  using std::chrono::steady_clock;
  return std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
}

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
  o.staging = {.link_gbps = hardware.link_gbps, .layer_seconds = step_seconds / shape.n_layers()};
  return o;
}

DeviceSteps::DeviceSteps(const gguf::ModelFile& file, const model::Model& model,
                         ThreadPool& threads, const SessionOptions& options, int n_ctx,
                         RouteOverride reroute)
    : shape_(model::read_shape(file)),
      hardware_(hardware_of(options.device.sim)),
      device_(device_options(options.device.sim, hardware_)),
      plan_(plan_measured(model, threads, options, n_ctx)) {
  const model::Config& c = model.config();
  const std::string& path = options.device.profile_path;
  if (!path.empty() && plan_.n_gpu_layers > 0) {
    std::string warning;
    profile_ = ProfileFile::load(path, c.n_layers, c.n_experts, &warning);
    if (!warning.empty()) info_.warnings.push_back(warning);
    saver_.emplace(path, profile_.value_or(policy::RoutingProfile(c.n_layers, c.n_experts)));
  }
  make_driver(model, threads, options, std::move(reroute));
  fill_info();
}

// On the virtual clock the machine is what was said of it.
policy::Plan DeviceSteps::plan_measured(const model::Model& model, ThreadPool& threads,
                                        const SessionOptions& options, int n_ctx) {
  const std::string& path = options.device.machine_path;
  if (!path.empty() && !options.device.sim.is_virtual) {
    use_measured(measured_machine(path, model, device_, threads, info_.warnings), hardware_);
  }
  return policy::make_plan(shape_, hardware_, wishes_of(options, n_ctx));
}

void DeviceSteps::make_driver(const model::Model& model, ThreadPool& threads,
                              const SessionOptions& options, RouteOverride reroute) {
  if (plan_.n_gpu_layers > 0) {
    auto runtime = std::make_unique<ExpertRuntime>(model, shape_, device_, threads,
                                                   wished_options(options, std::move(reroute)));
    runtime_ = runtime.get();
    driver_ = std::move(runtime);
    return;
  }
  driver_ = std::make_unique<Stepper>(model, backend::make_cpu_ops(threads), kv_options(plan_.work),
                                      plan_.work.max_rows(), std::move(reroute));
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
  info_.link_share = plan_.link_share;
  info_.predicted_decode = forecast.speed.decode;
  info_.predicted_prefill = forecast.speed.prefill;
  if (!runtime_) return;
  info_.prefetches = runtime_->staging().is_on();
  const int n_layers = plan_.n_gpu_layers;
  if (const int n = runtime_->host_experts().n_registered(); n < n_layers) {
    info_.warnings.push_back(cat("only ", n, " of ", n_layers,
                                 " layers' experts could be registered for the device; the others ",
                                 "go through a pinned ring, or stay with the CPU"));
  }
}

ExpertRuntimeOptions DeviceSteps::wished_options(const SessionOptions& options,
                                                 RouteOverride reroute) {
  const DeviceOptions& d = options.device;
  const policy::PolicyKind kind =
      d.cache_policy.empty() ? policy::PolicyKind::mixture : policy::parse_policy(d.cache_policy);
  ExpertRuntimeOptions o = runtime_options(plan_, shape_, hardware_, kind);
  o.place.link_share = d.link_share.value_or(plan_.link_share);
  o.cut = d.is_segmented ? StepCut::segmented : StepCut::whole;
  o.staging.enabled = d.prefetch == Choice::on;
  o.staging.delay_us = device_.options().delay_us;
  o.reroute = std::move(reroute);
  o.profile = profile_ ? &*profile_ : nullptr;
  o.progress = options.progress;
  return o;
}

DeviceSteps::~DeviceSteps() {
  if (saver_) saver_->finish(runtime_->cache().uses(), runtime_->cache().n_steps());
}

void DeviceSteps::step(std::span<const StepRow> rows, const OnRowLogits& on_logits) {
  driver_->step(rows, on_logits);
  const bool is_virtual = device_.options().clock == backend::Clock::virtual_time;
  if (!runtime_ && is_virtual) {
    const StepSize size{static_cast<int>(rows.size()), driver_->n_tokens(rows[0].sequence)};
    cpu_seconds_ += host_seconds(shape_, plan_.work, shape_.n_layers(), size, hardware_.cpu_gbps) +
                    static_cast<double>(shape_.output_bytes) / (hardware_.cpu_gbps * 1e9);
  }
  if (!saver_) return;
  saver_->after_step(runtime_->cache().uses(), runtime_->cache().n_steps(), wall_seconds());
}

double DeviceSteps::seconds() const {
  const bool is_virtual = device_.options().clock == backend::Clock::virtual_time;
  return !runtime_ && is_virtual ? cpu_seconds_ : driver_->seconds();
}

PlacementInfo DeviceSteps::placement() {
  PlacementInfo info = info_;
  if (saver_ && !saver_->warning().empty()) info.warnings.push_back(saver_->warning());
  return info;
}

}  // namespace sluice::engine
