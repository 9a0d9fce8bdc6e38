// See session_plan.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/session_plan.h"

#include <algorithm>
#include <limits>

#include "backend/gpu_limits.h"
#include "backend/ram_device_options.h"
#include "base/check.h"
#include "base/cpu_topology.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/units.h"
#include "engine/machine/mode_trial.h"
#include "engine/machine/profile_file.h"
#include "model_file/shape.h"
#include "policy/plan/planner_trial.h"
#include "quant/stripes.h"

namespace sluice::engine {
namespace {

constexpr uint64_t kUsualVram = 8 * kGiB;
// Of a GPU's memory, which it gives in large pages, and for what the driver takes while it works:
// with 16 MiB peaks by nvidia-smi were 11 to 15 MiB above what was asked for.
constexpr uint64_t kLostBytes = 40 * kMiB;
constexpr const char* kNoDevice = "CPU";
// Of expert kernels, where nobody has measured: what one server core reads, and where the memory of
// desktops ends (two channels of DDR5).
constexpr double kGbpsPerCore = 8.0;
constexpr double kMostGbps = 60.0;
// A shorter text has not met most experts: its favourites would look better than they are.
constexpr double kLeastProfileSteps = 256.0;

static_assert(static_cast<int>(ExpertPlace::gpu) == static_cast<int>(policy::MoeWish::gpu) &&
              static_cast<int>(ExpertPlace::cpu) == static_cast<int>(policy::MoeWish::cpu));
static_assert(static_cast<int>(KvType::q8_0) == static_cast<int>(policy::KvType::q8_0) &&
              static_cast<int>(KvType::q4_0) == static_cast<int>(policy::KvType::q4_0));

int threads_of(int n_threads) {
  return n_threads > 0 ? n_threads : this_machines_cpus().default_threads();
}

bool is_described(const DeviceOptions& device) {
  return device.kind == DeviceKind::sim && device.sim.is_virtual;
}

policy::Wishes wishes_of(const PlanRequest& request, const policy::ModelShape& shape) {
  const SessionOptions& options = request.options;
  const DeviceOptions& d = options.device;
  policy::Wishes wishes;
  wishes.vram_bytes = d.vram_bytes;
  wishes.moe = static_cast<policy::MoeWish>(d.moe);
  wishes.n_gpu_layers = d.n_gpu_layers;
  wishes.n_cpu_moe = d.n_cpu_moe;
  wishes.n_pinned = d.n_pinned_layers;
  wishes.pinned = d.pinned_layers;
  wishes.n_slots = d.n_slots;
  wishes.n_ctx = options.n_ctx > 0 ? options.n_ctx : policy::default_context(shape.n_ctx_train);
  wishes.n_sequences = request.n_sequences;
  wishes.n_kept = request.n_kept;
  wishes.n_kv_tokens = request.n_kv_tokens;
  wishes.k_type = static_cast<policy::KvType>(options.k_type);
  wishes.v_type = static_cast<policy::KvType>(options.v_type);
  wishes.may_quantise_kv = request.may_quantise_kv;
  wishes.prefill_chunk = std::min(options.prefill_chunk, wishes.n_ctx);
  wishes.mtp = request.mtp;
  if (d.kind == DeviceKind::cuda) {
    const int most = std::min(most_gpu_rows(model::Model(request.file)), wishes.n_ctx);
    wishes.prefill_chunk = wishes.prefill_chunk > 0 ? std::min(wishes.prefill_chunk, most) : most;
  }
  return wishes;
}

// Everything that changes how fast a way runs, in words; the mode stands beside it.
std::string trial_key(const PlanRequest& request, const SessionPlan& session,
                      const policy::Plan& plan, const std::string& device, int n_threads) {
  const DeviceOptions& d = request.options.device;
  const policy::Workload& work = plan.work;
  std::string slots;  // runs of layers with as many
  for (size_t i = 0; i < plan.layers.size();) {
    size_t end = i;
    while (end < plan.layers.size() && plan.layers[end].n_slots == plan.layers[i].n_slots) ++end;
    slots += cat(i == 0 ? "" : "+", end - i, "x", plan.layers[i].n_slots);
    i = end;
  }
  return cat(model_key(session.shape.name, request.file.file_bytes()), "; ", device, "; ",
             n_threads, " threads; context ", work.n_ctx, " x ", work.n_sequences,
             work.n_kv_tokens > 0 ? cat(" in ", work.n_kv_tokens) : "", ", KV ",
             policy::kv_type_name(work.k_type), "/", policy::kv_type_name(work.v_type), ", chunk ",
             work.prefill_chunk, "; ", plan.n_gpu_layers, " layers, slots ", slots, ", link share ",
             d.link_share.value_or(plan.link_share), ", policy ",
             d.cache_policy.empty() ? "default" : d.cache_policy, ", prefetch ",
             static_cast<int>(d.prefetch), d.is_segmented ? ", segmented" : "",
             d.held_link_gbps > 0.0 ? cat(", link held to ", d.held_link_gbps) : "", ", after ",
             kTrialWarmUp, " tokens");  // there are older records of colder caches
}

std::string with_weights(const std::string& trial_key, WeightMemory weights) {
  return cat(trial_key, weights == WeightMemory::mapped ? ", mapped weights" : ", copied weights");
}

// Its key, and what is known of it.
PlannedWay way_of(policy::Plan plan, const std::string& key, WeightMemory weights,
                  const MachineRecord& record) {
  const std::string mode(policy::mode_key(plan.mode));
  PlannedWay way{std::move(plan), with_weights(key, weights), 0.0};
  const TrialRecord* tried = record.trial(way.trial_key, mode);
  if (!tried && weights == WeightMemory::automatic) {
    tried = record.trial(with_weights(key, WeightMemory::mapped), mode);
  }
  if (tried) way.measured = tried->tokens_per_second;
  return way;
}

// A GPU reads weights that are woven, as those in a file are not: they are on their way to it.
policy::MoeWish all_in_vram(const policy::Wishes& wishes) {
  const bool is_open =
      wishes.moe == policy::MoeWish::automatic || wishes.moe == policy::MoeWish::gpu;
  if (!is_open || wishes.n_gpu_layers || wishes.n_cpu_moe > 0) {
    throw Error(Errc::bad_request,
                "of weights that are only mapped from their file a GPU needs all layers and "
                "experts in its own memory; use --weights copied");
  }
  return policy::MoeWish::gpu;
}

std::vector<policy::Plan> plans_of(const policy::Wishes& wishes, bool must_fit,
                                   SessionPlan& session) {
  try {
    return policy::close_plans(session.shape, session.machine, wishes, session.locality);
  } catch (const Error& e) {
    if (must_fit || e.code() != Errc::out_of_memory) throw;
    session.warnings.push_back(cat("memory is short: ", e.what()));
  }
  Machine roomy = session.machine;
  roomy.ram_free = std::numeric_limits<uint64_t>::max();
  return policy::close_plans(session.shape, roomy, wishes, session.locality);
}

// A GPU that was asked for computes at least a part, or an Error says why it cannot.
std::vector<policy::Plan> plans_on_gpu(policy::Wishes wishes, SessionPlan& session) {
  if (wishes.n_gpu_layers) return plans_of(wishes, /*must_fit=*/true, session);
  const auto on_cpu = [](const policy::Plan& plan) { return plan.n_gpu_layers == 0; };
  std::vector<policy::Plan> plans = plans_of(wishes, /*must_fit=*/true, session);
  std::erase_if(plans, on_cpu);
  if (!plans.empty()) return plans;
  wishes.n_gpu_layers = session.shape.n_layers();
  try {
    return plans_of(wishes, /*must_fit=*/true, session);
  } catch (const Error& e) {
    throw Error(e.code(), cat(session.machine.gpu, ": ", e.what(), "; or --device cpu"));
  }
}

// What an earlier session or bench found out about this machine, this device and this model.
void use_record(const MachineRecord& record, const std::string& device, const std::string& model,
                int n_threads, Machine& machine) {
  for (const DeviceRates& known : record.devices) {
    if (known.n_threads != n_threads) continue;
    MachineRates rates = unmeasured_rates();
    rates.cpu_gbps = known.rates.cpu_gbps;  // the cores are the same beside every device
    use_measured(known.device == device ? known.rates : rates, machine);
    if (known.device == device) break;
  }
  if (const ModelRates* known = record.model(model, n_threads)) {
    use_measured(known->rates, machine);
    machine.cpu_source = known->model_key == model ? "measured" : "measured with another model";
  }
}

void use_profile(const std::string& path, SessionPlan& session) {
  if (session.shape.is_dense) {
    session.locality_source = "none: every token uses the network of each layer";
    return;
  }
  session.locality_source = "assumed: as recorded of Qwen3-30B-A3B";
  int n_experts = 0;
  for (const policy::LayerShape& layer : session.shape.layers) {
    n_experts = std::max(n_experts, layer.n_experts);
  }
  if (path.empty() || n_experts == 0) return;
  std::string warning;
  session.profile = ProfileFile::load(path, session.shape.n_layers(), n_experts, &warning);
  if (!warning.empty()) session.warnings.push_back(warning);
  if (!session.profile || session.profile->n_steps() < kLeastProfileSteps) return;
  session.locality = policy::LocalityCurve::of(*session.profile);
  session.locality_source = cat("measured: this model's profile of ",
                                static_cast<int64_t>(session.profile->n_steps()), " tokens");
}

// Its rates are a typical card's until they are measured.
Machine with_gpu(Machine machine, const GpuInfo& gpu) {
  const MachineRates typical;
  machine.gpu = cat("GPU ", gpu.index, " (", gpu.name, ")");
  machine.gpu_source = "assumed: nothing was measured here yet";
  machine.vram_free = gpu.vram_free;
  machine.vram_overhead = gpu.vram_overhead;
  machine.gpu_gbps = typical.gpu_gbps;
  machine.link_gbps = typical.link_gbps;
  return machine;
}

}  // namespace

bool SessionPlan::needs_trials() const {
  return ways.size() > 1 &&
         std::ranges::any_of(ways, [](const PlannedWay& way) { return way.measured == 0.0; });
}

void SessionPlan::choose_by_trials() {
  if (ways.size() == 1 || needs_trials()) return;
  const auto best = std::ranges::max_element(ways, {}, &PlannedWay::measured);
  chosen = static_cast<size_t>(best - ways.begin());
  best->plan.reason = cat("the fastest of ", ways.size(), " ways that were tried");
}

Machine this_machine(int n_threads, const std::string& machine_path) {
  Machine machine;
  machine.link_gbps = machine.gpu_gbps = 0.0;
  machine.n_cores = threads_of(n_threads);
  const FreeMemory memory = free_memory();
  machine.ram_free = memory.bytes;
  machine.ram_source = memory.in_container ? "free in this container" : "free on this machine";
  machine.cpu_gbps = std::min(kGbpsPerCore * machine.n_cores, kMostGbps);
  machine.cpu_source = cat("estimated: ", kGbpsPerCore, " GB/s a core, at most ", kMostGbps);
  if (machine_path.empty()) return machine;
  std::string warning;  // for the session that will measure anew
  use_record(MachineRecord::load(machine_path, &warning), kNoDevice, "", machine.n_cores, machine);
  return machine;
}

const GpuInfo& usable_gpu(const GpuList& list, int index) {
  if (!list.problem.empty()) {
    throw Error(Errc::device, cat("GPU ", index, " cannot be used: ", list.problem));
  }
  if (index < 0 || static_cast<size_t>(index) >= list.gpus.size()) {
    const size_t n = list.gpus.size();
    throw Error(Errc::device, cat("there is no GPU ", index, ": this machine has ", n,
                                  n == 1 ? ", GPU 0" : cat(", GPU 0 to ", n - 1)));
  }
  const GpuInfo& gpu = list.gpus[static_cast<size_t>(index)];
  if (!gpu.problem.empty()) throw Error(Errc::device, gpu.problem);
  return gpu;
}

Machine described_machine(const DeviceOptions& device, int n_threads, uint64_t held_bytes,
                          const GpuInfo* gpu) {
  CHECK(device.kind != DeviceKind::automatic);
  Machine here = this_machine(n_threads);
  here.ram_free += held_bytes;
  if (device.kind == DeviceKind::cpu) return here;
  if (device.kind == DeviceKind::cuda) {
    return with_gpu(std::move(here), gpu ? *gpu : usable_gpu(find_gpus(), device.gpu));
  }
  Machine machine = device.sim.machine;
  if (machine.ram_free == 0) {
    machine.ram_free = here.ram_free;
    machine.ram_source = here.ram_source;
  }
  if (device.sim.is_virtual) return machine;
  // On the wall's clock the device is one thread of this machine, beside it.
  machine.gpu = "RAM device";
  machine.gpu_source = "estimated: one core";
  if (machine.vram_free == 0) machine.vram_free = kUsualVram;
  machine.n_cores = here.n_cores;
  machine.gpu_gbps = kGbpsPerCore;
  machine.experts_us = machine.launch_us = machine.readback_us = 0.0;  // no driver, no kernels
  machine.cpu_gbps = here.cpu_gbps;
  machine.cpu_source = here.cpu_source;
  return machine;
}

std::string device_name(const DeviceOptions& device, const Machine& machine) {
  if (device.kind == DeviceKind::cpu) return kNoDevice;
  if (device.kind == DeviceKind::cuda) return machine.gpu;
  const auto same = backend::make_ram_device(
      {.n_bytes = machine.vram_free, .link_gbps = machine.link_gbps, .before_copy = {}});
  return same->name();
}

std::string record_path(const DeviceOptions& device, const policy::ModelShape& shape) {
  const bool is_small = shape.expert_bytes() < device.least_measured_bytes;
  return is_described(device) || is_small ? "" : device.machine_path;
}

SessionPlan plan_session(const PlanRequest& request) {
  const DeviceOptions& device = request.options.device;
  SessionPlan session;
  session.shape = model_file::read_shape(request.file);
  const std::string model = model_key(session.shape.name, request.file.file_bytes());
  if (request.mtp) session.shape = policy::with_mtp(std::move(session.shape));
  const int n_threads = threads_of(request.n_threads);
  session.machine = described_machine(device, n_threads, request.held_bytes, request.gpu);
  // A GPU keeps the output matrix a second time where its rows are no whole stripes.
  if (device.kind == DeviceKind::cuda && session.shape.n_vocab % quant::kStripeRows != 0) {
    session.machine.vram_overhead += session.shape.output_bytes;
  }
  const std::string name = device_name(device, session.machine);
  MachineRecord record;
  if (request.record) {
    record = *request.record;
  } else if (!is_described(device) && !device.machine_path.empty()) {
    std::string warning;
    record = MachineRecord::load(device.machine_path, &warning);
    if (!warning.empty()) session.warnings.push_back(warning);
  }
  use_record(record, name, model, n_threads, session.machine);
  if (device.held_link_gbps > 0.0) {
    session.machine.link_gbps = std::min(session.machine.link_gbps, device.held_link_gbps);
  }
  if (device.kind == DeviceKind::cuda) {
    session.machine.vram_overhead +=
        kLostBytes + static_cast<uint64_t>(session.machine.graphs_mib * kMiB);
  }
  use_profile(device.profile_path, session);
  policy::Wishes wishes = wishes_of(request, session.shape);
  wishes.mtp = false;  // the shape has them
  const bool is_gpu = device.kind == DeviceKind::cuda;
  if (is_gpu && request.weights == WeightMemory::mapped) wishes.moe = all_in_vram(wishes);
  std::vector<policy::Plan> plans =
      is_gpu ? plans_on_gpu(wishes, session) : plans_of(wishes, request.must_fit, session);
  for (policy::Plan& plan : plans) {
    const std::string key = trial_key(request, session, plan, name, n_threads);
    session.ways.push_back(way_of(std::move(plan), key, request.weights, record));
  }
  session.choose_by_trials();
  const bool is_mapped = device.kind == DeviceKind::cuda && request.weights == WeightMemory::mapped;
  if (is_mapped && session.plan().price.host.experts > 0) {
    throw Error(Errc::unsupported_model,
                cat("GPUs cannot compute this yet: weights that are only mapped, where VRAM does ",
                    "not hold all experts; use --weights copied or --device cpu"));
  }
  return session;
}

template <typename Measured>
std::string keep_measured(const std::string& path, const Measured& measured) {
  std::string warning;  // a damaged file was said to be so when it was read, and is replaced
  MachineRecord record = MachineRecord::load(path, &warning);
  record.add(measured);
  try {
    record.save(path);
  } catch (const Error& e) {
    return cat("what was measured on this machine is not kept: ", e.what());
  }
  return "";
}

template std::string keep_measured(const std::string&, const DeviceRates&);
template std::string keep_measured(const std::string&, const ModelRates&);
template std::string keep_measured(const std::string&, const TrialRecord&);

}  // namespace sluice::engine
