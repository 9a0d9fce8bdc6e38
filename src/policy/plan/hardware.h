// A machine as the planner sees it: how much memory is free and how fast bytes move. Measured,
// taken from a table of known parts, or described by a person; nothing here looks at the machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "policy/plan/pricing.h"

namespace sluice::policy {

// Rates are those that kernels reach, not those of the data sheet, in GB/s of 10^9 bytes.
struct Hardware {
  std::string gpu;                      // for people
  uint64_t vram_free = 0;               // 0: no GPU
  uint64_t vram_overhead = kCudaBytes;  // of it, what the device takes for itself once it is used
  uint64_t ram_free = 0;
  double gpu_gbps = 0.0;       // reading weights from VRAM
  double link_gbps = 0.0;      // host to device, from pinned memory
  double cpu_gbps = 0.0;       // expert kernels of all cores, from RAM
  double handshake_us = 18.0;  // a layer's misses to the CPU workers and back, without their work
  // Bytes that the CPU's workers cannot read for each byte that crosses the link beside them: both
  // drink from the same memory. Measured on three machines: 0.27, 0.41, 0.96.
  double copy_interference = 0.4;
  int n_cores = 1;
  bool registers_in_place = true;  // the mapped file can be registered; WSL2 cannot
  uint64_t pin_limit = std::numeric_limits<uint64_t>::max();  // bytes that may be held for the GPU

  // Where the numbers come from, for people: "given", "measured", a line of the table.
  std::string gpu_source;
  std::string ram_source;
  std::string cpu_source;

  bool has_gpu() const { return vram_free > 0; }
};

// The rates of a typical machine, for what nobody said: a mid-range card on PCIe 4.0 x16.
constexpr double kTypicalGpuGbps = 400.0;
constexpr double kTypicalLinkGbps = 25.0;

// Reads a description: parts of the table joined by '+', then numbers, all of it optional:
//   rtx4070ti-12g+64g-ddr5    rtx3090+pcie3x16    cpu+32g-ddr4    vram=12GiB,link=25GB/s,cpu=60GB/s
// What it does not say is as in `base`. Throws Errc::bad_request, with the nearest known names.
Hardware parse_hardware(std::string_view text, const Hardware& base);

// "12GiB", "12g", "12288 MiB", "800MB": KiB, MiB, GiB and their letters are powers of 1024, KB, MB
// and GB of 1000. Throws Errc::bad_request; `what` names the value in its text.
uint64_t parse_bytes(std::string_view text, std::string_view what);

// "25GB/s", "6.5 GB/s", "20GiB/s" or plain GB/s of 10^9 bytes: 25. Throws as parse_bytes does.
double parse_gbps(std::string_view text, std::string_view what);

// "18us", "0.2ms" or plain microseconds: 18. Throws as parse_bytes does.
double parse_microseconds(std::string_view text, std::string_view what);

}  // namespace sluice::policy
