// Where a model is computed, and where its experts are: the wishes a session may have, and what
// became of them. By itself everything is chosen for speed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/export.h"
#include "sluice/machine.h"

namespace sluice {

// automatic: the GPU where there is one that can run the model and is predicted to be faster, else
// the CPU.
enum class DeviceKind { cpu, sim, cuda, automatic };

// What there is to choose from; creates what the driver needs on each card, so it takes a moment.
SLUICE_API GpuList find_gpus();

// A device made of RAM, to try what a GPU would do: memory of its own, threads of its own, and a
// link that takes its time.
struct SimDevice {
  // On the real clock: its memory (0: 8 GiB), its link and what it may read of the host; the rates
  // of cores and device are this machine's. On a virtual one: all of it. RAM of 0 is this
  // machine's.
  Machine machine;
  double delay_us = 10.0;  // of a copy, before its first byte
  // Time is not measured but added up, as the machine described here would have needed it.
  bool is_virtual = false;
};

// Where experts are computed: those in VRAM by the device and the others by the CPU (cache), all by
// the CPU, all by the device (gpu).
enum class ExpertPlace { automatic, cache, cpu, gpu };

enum class Choice { automatic, off, on };

struct DeviceOptions {
  DeviceKind kind = DeviceKind::cpu;
  SimDevice sim;
  int gpu = 0;  // which one, of several

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
  // Copies of experts are no faster than over such a link, and the device reads none over it: what
  // a machine with a slower one would do. Not on a virtual clock. 0: as fast as it is.
  double held_link_gbps = 0.0;
  bool is_segmented = false;  // steps are cut in every layer, instead of one submission

  std::string profile_path;  // what was used before is loaded first, and kept here; empty: nowhere
  std::string machine_path;  // what was measured of this machine, at the first start or before it;
                             // empty: nowhere, and then nothing is measured
  uint64_t least_measured_bytes = 64 << 20;  // of experts: a smaller model's speed tells nothing
};

// What a session made of it.
struct PlacementInfo {
  std::string device;    // its name
  std::string mode;      // "expert cache"
  std::string mode_key;  // "expert_cache"
  std::string reason;
  int n_gpu_layers = 0;
  int64_t n_slots = 0;
  int64_t n_experts = 0;  // of all layers; a dense layer's network counts as one
  bool is_dense = false;
  uint64_t vram_bytes = 0;    // taken
  uint64_t upload_bytes = 0;  // of weights that a GPU got at the start, and how long it took
  double upload_seconds = 0.0;
  double link_share = 0.0;
  int prefill_chunk = 0;  // tokens of a prompt that are computed together
  bool prefetches = false;
  double predicted_decode = 0.0;  // tokens/s
  double predicted_prefill = 0.0;
  // The same of a prompt of so many tokens, or of as many that are decoded one by one, after so
  // many that stand before them.
  std::function<double(bool is_prompt, int n_tokens, int depth)> predict;
  std::string locality;  // of routing, that the prediction rests on: assumed, or measured
  std::vector<std::string> warnings;
};

}  // namespace sluice
