// A machine as plans see it: how much memory is free and how fast bytes move. One struct for all
// sources: a description, a table of known parts, a measurement. Nothing here looks at a machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace sluice {

// Rates are those that kernels reach, not those of the data sheet, in GB/s of 10^9 bytes. The
// defaults are a typical machine's: a mid-range card on PCIe 4.0 x16, two channels of DDR5.
struct MachineRates {
  double link_gbps = 25.0;  // host to device, from pinned memory
  double cpu_gbps = 60.0;   // weights that all cores read from RAM to decode a token
  double gpu_gbps = 500.0;  // reading weights from VRAM
  // A layer's misses to the CPU's workers and back, and their beginning and end: what decoding with
  // no expert in VRAM takes besides the experts' bytes, on 16 cores beside an H200.
  double handshake_us = 35.0;
  // What experts of a layer cost the GPU besides their bytes: few are read far below its rate. An
  // H200 takes 6 us + bytes / gpu_gbps for 8 experts as for 64 (docs/decisions/0016).
  double experts_us = 6.0;
  // Of every step: to submit it, until the host sees its results, and to choose the token. An H200
  // takes 27 us for the first two.
  double launch_us = 12.0;
  double readback_us = 15.0;
  double sampling_us = 5.0;
  // Bytes that the CPU's workers cannot read for each byte that crosses the link beside them: both
  // read the same memory. Measured on three machines: 0.27, 0.41, 0.96.
  double copy_interference = 0.4;
  double cpu_gops = 0.0;  // 10^9 operations/s of all cores in a prompt; 0: by the number of cores
  double cpu_kv_gbps = 0.0;  // keys and values that attention reads to decode; 0: as cpu_gbps
  // The same in a prompt, each of whose tokens reads all before it; 0: that takes no time.
  double cpu_kv_prompt_gbps = 0.0;
  double graphs_mib = 64.0;  // of a GPU's VRAM, for the recordings of its steps

  friend bool operator==(const MachineRates&, const MachineRates&) = default;
};

struct Machine : MachineRates {
  std::string gpu;             // for people
  uint64_t vram_free = 0;      // 0: no GPU
  uint64_t vram_overhead = 0;  // of it, what the device takes for itself once it is used
  uint64_t ram_free = 0;
  int n_cores = 1;
  bool registers_in_place = true;  // the mapped file can be registered; WSL2 cannot
  uint64_t pin_limit = std::numeric_limits<uint64_t>::max();  // bytes that may be held for the GPU

  // Where the numbers come from, for people: "given", "measured", a line of the table.
  std::string gpu_source;
  std::string ram_source;
  std::string cpu_source;

  bool has_gpu() const { return vram_free > 0; }
};

// A GPU of this machine.
struct GpuInfo {
  int index = 0;     // as the driver counts them, from 0
  std::string name;  // the card
  uint64_t vram_bytes = 0;
  uint64_t vram_free = 0;      // to this process, before it takes any
  uint64_t vram_overhead = 0;  // of it, for CUDA's context and all kernels, and for a display
  std::string problem;         // why it cannot be used, in one line; empty: it can
};

struct GpuList {
  std::vector<GpuInfo> gpus;
  std::string problem;  // why there are none, in one line
};

}  // namespace sluice
