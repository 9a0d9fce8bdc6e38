// Where a model is computed, and where its experts are: the wishes a session may have, and what
// became of them. By itself everything is chosen for speed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

enum class DeviceKind { cpu, sim };

// A device made of RAM, to try what a GPU would do: memory of its own, threads of its own, and a
// link that takes its time. Zero: as this machine has it, or a usual value.
struct SimDevice {
  uint64_t vram_bytes = 0;                                    // 0: 8 GiB
  double link_gbps = 25.0;                                    // in GB/s of 10^9 bytes
  double delay_us = 10.0;                                     // of a copy, before its first byte
  uint64_t pin_limit = std::numeric_limits<uint64_t>::max();  // bytes of the host it may read

  // Time is not measured but added up, as the machine described here would have needed it.
  bool is_virtual = false;
  double device_gbps = 0.0;    // its memory
  double cpu_gbps = 0.0;       // expert kernels of all cores
  double handshake_us = 18.0;  // a request to the CPU's workers and back
  double copy_interference = 0.4;
  uint64_t ram_bytes = 0;
  int n_cores = 0;
};

// Where experts are computed: those in VRAM by the device and the others by the CPU (cache), all by
// the CPU, all by the device (gpu).
enum class ExpertPlace { automatic, cache, cpu, gpu };

enum class Choice { automatic, off, on };

struct DeviceOptions {
  DeviceKind kind = DeviceKind::cpu;
  SimDevice sim;

  std::optional<uint64_t> vram_bytes;  // at most so much
  ExpertPlace moe = ExpertPlace::automatic;
  std::optional<int> n_gpu_layers;  // trunk layers on the device, the last ones
  int n_cpu_moe = 0;                // the first layers' experts stay with the CPU
  int n_pinned_layers = 0;          // layers with all experts on the device, or
  std::vector<int> pinned_layers;   // these
  std::optional<int64_t> n_slots;   // exactly so many experts on the device

  std::string cache_policy;  // which experts stay there; empty: the default
  Choice prefetch = Choice::automatic;
  std::optional<double> link_share;  // of misses, what the device reads over the link itself
  bool is_segmented = false;         // steps are cut in every layer, instead of one submission

  std::string profile_path;  // what was used before is loaded first, and kept here; empty: nowhere
  std::string machine_path;  // what was measured of this machine, at the first start or before it;
                             // empty: nowhere, and then nothing is measured
  uint64_t least_measured_bytes = 64 << 20;  // of experts: a smaller model's speed tells nothing
};

// What a session has measured of this machine's cores and kept there, in GB/s of expert kernels; 0
// where there is nothing.
double measured_cpu_gbps(const std::string& machine_path);

// How fast a model, by its name and size, ran on that device in the modes that were tried.
struct MeasuredSpeed {
  std::string mode_key;
  double decode = 0.0;  // tokens/s
};
std::vector<MeasuredSpeed> measured_speeds(const std::string& machine_path, const SimDevice& device,
                                           int n_threads, const std::string& name,
                                           uint64_t file_bytes);

// What a session made of it.
struct PlacementInfo {
  std::string device;    // its name
  std::string mode;      // "expert cache"
  std::string mode_key;  // "expert_cache"
  std::string reason;
  int n_gpu_layers = 0;
  int64_t n_slots = 0;
  int64_t n_experts = 0;    // of all layers
  uint64_t vram_bytes = 0;  // taken
  double link_share = 0.0;
  bool prefetches = false;
  double predicted_decode = 0.0;  // tokens/s
  double predicted_prefill = 0.0;
  std::vector<std::string> warnings;
};

}  // namespace sluice
