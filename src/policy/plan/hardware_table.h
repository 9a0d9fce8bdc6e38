// Known GPUs, links and memory kinds, from their data sheets; hardware.cpp makes a description of
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace sluice::policy {

struct KnownGpu {
  std::string_view name;
  int vram_gib;
  double gbps;  // of its memory, by the data sheet
  std::string_view link;
};

struct KnownLink {
  std::string_view name;
  double gbps;  // host to device, as measured on such links
};

struct KnownMemory {
  std::string_view name;
  double gbps;  // by the data sheet, at the speed most machines of the kind run
  int n_cores;  // such a machine usually has
};

// A name with several sizes of memory stands once for each, the usual one first.
std::span<const KnownGpu> known_gpus();
std::span<const KnownLink> known_links();
std::span<const KnownMemory> known_memories();

}  // namespace sluice::policy
