// The flags about where a model is computed and where its experts are: of every command that
// computes, and of `plan`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sluice/device.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sluice::cli {

constexpr const char* kNoProfile = "none";

class DeviceFlags {
 public:
  std::string profile;   // a file, or kNoProfile; empty: the model's own
  std::string measured;  // a file, or kNoProfile; empty: the user's

  // --device, --gpu, --sim-*, --vram, --moe, --n-gpu-layers, --n-cpu-moe, --pin-layers,
  // --cache-slots. All flags must outlive the parse.
  void add_placement_to(CLI::App& command);
  // --machine and --profile, which it returns: what earlier runs have found out.
  CLI::Option* add_kept_to(CLI::App& command);
  // These, and --cache-policy, --prefetch, --miss-split, --hold-link, --segmented. With them, what
  // only a device can heed is refused where there is none.
  void add_runtime_to(CLI::App& command);

  // What was asked for, after the parse; `here` is this machine. Without a profile's path.
  DeviceOptions options(const Machine& here) const;

  bool uses_sim() const;
  // Another name for --sim-machine, of a command that computes nothing.
  CLI::Option* add_description_to(CLI::App& command, const char* name, const char* what);
  // Of the model's routing profile; empty: none is kept.
  std::string profile_path(const std::string& model_file) const;
  // Of what was measured on this machine; empty: nothing is measured, or kept.
  std::string machine_path() const;

 private:
  using Options = std::vector<const CLI::Option*>;
  static void note_unused(const Options& given);
  void require_device(const Options& given) const;
  bool finds_gpu() const;
  double held_link() const;
  Machine machine(const Machine& here) const;  // that --device sim stands for

  DeviceOptions wishes_;  // what needs no further reading
  CLI::Option* device_ = nullptr;
  CLI::Option* gpu_ = nullptr;
  std::string sim_machine_;  // also plan's --hw
  std::string sim_link_, sim_delay_, sim_pin_, hold_link_, vram_, pin_layers_;
  int n_gpu_layers_ = -1;     // -1: not said
  int64_t cache_slots_ = -1;  // -1: not said
  double miss_split_ = -1.0;  // -1: not said
  Options of_sim_;            // flags that mean nothing without it,
  Options of_layers_;         // flags about a GPU that are not heeded without one
  Options of_device_;         // or, where something is computed, without any device
  bool computes_ = false;
};

}  // namespace sluice::cli
