// See device_flags.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/device_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "cli/files/user_folders.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/named_values.h"
#include "cli/terminal/terminal_text.h"
#include "policy/cache/replacement.h"
#include "policy/plan/hardware.h"

namespace sluice::cli {
namespace {

constexpr Named<DeviceKind> kDevices[] = {{"auto", DeviceKind::automatic},
                                          {"cpu", DeviceKind::cpu},
                                          {"cuda", DeviceKind::cuda},
                                          {"sim", DeviceKind::sim}};
constexpr Named<ExpertPlace> kPlaces[] = {{"auto", ExpertPlace::automatic},
                                          {"cache", ExpertPlace::cache},
                                          {"cpu", ExpertPlace::cpu},
                                          {"gpu", ExpertPlace::gpu}};
constexpr Named<Choice> kChoices[] = {
    {"auto", Choice::automatic}, {"on", Choice::on}, {"off", Choice::off}};

// "4" is a count; "0,1,47", "3-7" and "3," are lists.
void read_pin_layers(const std::string& text, DeviceOptions& wishes) {
  const auto refuse = [&] {
    throw Error(Errc::bad_request, cat("--pin-layers is '", text.substr(0, 40),
                                       "'; expected a count such as 4, or layers: 0,1,47 or 3-7"));
  };
  const char* next = text.data();
  const char* const end = next + text.size();
  const auto number = [&] {
    int value = 0;
    const auto [stop, error] = std::from_chars(next, end, value);
    if (error != std::errc() || value < 0 || value > 100'000) refuse();
    next = stop;
    return value;
  };
  while (next < end) {
    const int first = number();
    if (next == end && wishes.pinned_layers.empty()) {
      wishes.n_pinned_layers = first;
      return;
    }
    int last = first;
    if (next < end && *next == '-') {
      ++next;
      last = number();
    }
    if (last < first || (next < end && *next != ',')) refuse();
    for (int i = first; i <= last; ++i) wishes.pinned_layers.push_back(i);
    if (next < end) ++next;
  }
  if (wishes.pinned_layers.empty()) refuse();
}

}  // namespace

void DeviceFlags::add_placement_to(CLI::App& command) {
  wishes_.kind = DeviceKind::automatic;
  device_ =
      add_choice(command, "--device", kDevices, wishes_.kind,
                 "where the model is computed: auto, cpu, cuda (a GPU), or sim, a device "
                 "made of RAM, to try what a GPU would do (auto: the GPU where it is faster)");
  gpu_ = command.add_option("--gpu", wishes_.gpu, "which GPU, of several; `plan` lists them (0)")
             ->transform(at_least(0));
  command.add_option("--sim-machine", sim_machine_,
                     "--device sim as a described machine, in its time: rtx4070ti-12g+64g-ddr5, or "
                     "vram=12GiB,gpu=400GB/s,link=25GB/s,ram=64GiB,cpu=60GB/s");
  of_sim_ = {command.add_option("--sim-link", sim_link_, "its link to the host: 6.5GB/s (25GB/s)"),
             command.add_option("--sim-delay", sim_delay_, "of a copy, before its bytes (10us)"),
             command.add_option("--sim-pin", sim_pin_,
                                "host memory that it may read, at most: 4GiB (all)")};
  of_layers_ = {
      add_choice(command, "--moe", kPlaces, wishes_.moe,
                 "where experts are: auto|cache|cpu|gpu (auto)")
          ->type_name("MODE"),
      command.add_option("--n-gpu-layers", n_gpu_layers_, "trunk layers on the GPU, also -ngl")
          ->transform(at_least(0)),
      command
          .add_option("--n-cpu-moe", wishes_.n_cpu_moe,
                      "layers whose experts stay on the CPU, also -ncmoe")
          ->transform(at_least(0))};
  of_device_ = {
      command.add_option("--vram", vram_, "use at most so much VRAM: 12GiB; also the size of sim"),
      command.add_option("--pin-layers", pin_layers_,
                         "layers with all experts in VRAM: a count, or a list such as 0,1,47"),
      command.add_option("--cache-slots", cache_slots_, "exactly so many expert slots")
          ->transform(at_least(1))};
}

void DeviceFlags::add_runtime_to(CLI::App& command) {
  computes_ = true;
  of_device_.insert(
      of_device_.end(),
      {command.add_option("--cache-policy", wishes_.cache_policy,
                          "which experts stay in VRAM: default|lru|lru-global|slru|lfu|dlfu "
                          "(default)"),
       add_choice(command, "--prefetch", kChoices, wishes_.prefetch,
                  "copy experts ahead of their layer: auto|on|off (auto)"),
       command
           .add_option("--miss-split", miss_split_,
                       "of experts that are not in VRAM, the share that the device reads over the "
                       "link; the CPU computes the others: 0 to 1 (as planned)")
           ->transform(number_between(0.0, 1.0)),
       command
           .add_option(
               "--hold-link", hold_link_,
               "copy experts no faster than over such a link, and read none over it, to try "
               "a slower machine: 6.5GB/s")
           ->excludes(command.get_option("--miss-split")),
       command.add_flag("--segmented", wishes_.is_segmented,
                        "cut steps in every layer, instead of one submission")});
  of_device_.push_back(add_kept_to(command));
}

CLI::Option* DeviceFlags::add_kept_to(CLI::App& command) {
  command.add_option("--machine", measured,
                     "file with what was measured on this machine, or none: then nothing is "
                     "measured (in the cache folder)");
  return command.add_option(
      "--profile", profile,
      "file that learns which experts are used, and says which to load first, or none (one for "
      "each model, in the cache folder)");
}

CLI::Option* DeviceFlags::add_description_to(CLI::App& command, const char* name,
                                             const char* what) {
  return command.add_option(name, sim_machine_, what)
      ->excludes(device_, command.get_option("--sim-machine"));
}

bool DeviceFlags::uses_sim() const {
  return wishes_.kind == DeviceKind::sim || !sim_machine_.empty();
}

void DeviceFlags::require_device(const Options& given) const {
  for (const CLI::Option* option : given) {
    if (option->count() == 0) continue;
    throw CLI::ValidationError(option->get_name(),
                               "has no effect without a device; add --device sim, or a described "
                               "one: --sim-machine rtx4070ti-12g+64g-ddr5");
  }
}

// What people give wherever they are: it asks for more of a GPU than there is, which is no mistake.
void DeviceFlags::note_unused(const Options& given) {
  for (const CLI::Option* option : given) {
    if (option->count() == 0) continue;
    print_note(cat(option->get_name(), " changes nothing: no GPU is used, all is on the CPU"));
  }
}

// Flags that only a device can heed, where nothing was said of one: a GPU may still be found.
bool DeviceFlags::finds_gpu() const {
  if (wishes_.kind == DeviceKind::cuda) return true;
  if (wishes_.kind != DeviceKind::automatic) return false;
  const auto is_given = [](auto* o) { return o->count() > 0; };
  const bool asks =
      std::ranges::any_of(of_device_, is_given) || std::ranges::any_of(of_layers_, is_given);
  return asks && !find_gpus().gpus.empty();
}

Machine DeviceFlags::machine(const Machine& here) const {
  Machine machine;
  if (sim_machine_.empty()) {  // the engine knows the rest
    if (!vram_.empty()) machine.vram_free = policy::parse_bytes(vram_, "--vram");
    if (!vram_.empty() && machine.vram_free == 0) {
      throw Error(Errc::bad_request, "--vram 0 leaves --device sim no memory; expected e.g. 12GiB");
    }
  } else {
    machine = policy::parse_hardware(sim_machine_, here);
    if (!machine.has_gpu() && computes_) {
      throw Error(Errc::bad_request,
                  cat("--sim-machine ", sim_machine_.substr(0, 60),
                      " has no GPU to stand for; expected e.g. rtx4070ti-12g+64g-ddr5"));
    }
  }
  if (!sim_link_.empty()) machine.link_gbps = policy::parse_gbps(sim_link_, "--sim-link");
  if (!sim_pin_.empty()) machine.pin_limit = policy::parse_bytes(sim_pin_, "--sim-pin");
  return machine;
}

DeviceOptions DeviceFlags::options(const Machine& here) const {
  if (device_->count() > 0 && wishes_.kind != DeviceKind::sim && !sim_machine_.empty()) {
    const auto* const named = std::ranges::find(kDevices, wishes_.kind, &Named<DeviceKind>::second);
    throw CLI::ExcludesError(cat("--device ", named->first), "--sim-machine");
  }
  if (gpu_->count() > 0 && (wishes_.kind == DeviceKind::cpu || uses_sim())) {
    throw CLI::ValidationError("--gpu", "has no effect without a GPU; expected --device cuda");
  }
  DeviceOptions options = wishes_;
  if (uses_sim()) {
    options.kind = DeviceKind::sim;
    options.sim.machine = machine(here);
    options.sim.is_virtual = !sim_machine_.empty();
    if (!sim_delay_.empty()) {
      options.sim.delay_us = policy::parse_microseconds(sim_delay_, "--sim-delay");
    }
  } else {
    require_device(of_sim_);
    if (computes_ && !finds_gpu()) {
      require_device(of_device_);
      note_unused(of_layers_);
      options.moe = ExpertPlace::automatic;
      options.n_cpu_moe = DeviceOptions().n_cpu_moe;
      return options;
    }
  }
  if (!vram_.empty()) options.vram_bytes = policy::parse_bytes(vram_, "--vram");
  if (n_gpu_layers_ >= 0) options.n_gpu_layers = n_gpu_layers_;
  if (!pin_layers_.empty()) read_pin_layers(pin_layers_, options);
  if (cache_slots_ >= 0) options.n_slots = cache_slots_;
  if (miss_split_ >= 0.0) options.link_share = miss_split_;
  if (!hold_link_.empty()) options.held_link_gbps = held_link();
  if (!options.cache_policy.empty()) policy::parse_policy(options.cache_policy);  // or throws
  return options;
}

double DeviceFlags::held_link() const {
  if (!sim_machine_.empty()) {
    throw CLI::ValidationError("--hold-link",
                               "has no effect in a described machine's time; expected a slower "
                               "link in --sim-machine");
  }
  return policy::parse_gbps(hold_link_, "--hold-link");
}

std::string DeviceFlags::machine_path() const {
  if (measured == kNoProfile) return "";
  return measured.empty() ? cli::machine_path() : measured;
}

std::string DeviceFlags::profile_path(const std::string& model_file) const {
  if (profile == kNoProfile) return "";
  return profile.empty() ? cli::profile_path(model_file) : profile;
}

}  // namespace sluice::cli
