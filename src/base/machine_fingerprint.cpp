// See machine_fingerprint.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/machine_fingerprint.h"

#include <charconv>
#include <fstream>
#include <string_view>

#include "base/cpu_topology.h"
#include "base/error.h"
#include "base/units.h"

namespace sluice {
namespace {

// Of the first line "key : value"; empty where there is none.
std::string value_of(const std::string& path, std::string_view key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(key)) continue;
    if (line.find_first_not_of(" \t", key.size()) != colon) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::string cpu_name(const std::string& cpuinfo) {
  const std::string name = value_of(cpuinfo, "model name");
  if (!name.empty()) return name;
  // ARM has numbers only.
  const std::string part = value_of(cpuinfo, "CPU part");
  return part.empty() ? "unknown CPU"
                      : cat("CPU ", value_of(cpuinfo, "CPU implementer"), ":", part);
}

uint64_t ram_gib(const std::string& meminfo) {
  const std::string total = value_of(meminfo, "MemTotal");  // "65536000 kB"
  uint64_t kib = 0;
  std::from_chars(total.data(), total.data() + total.size(), kib);
  return (kib + kMiB / 2) / kMiB;
}

}  // namespace

std::string machine_fingerprint(const std::string& root, int n_cores,
                                const std::string& device_name) {
  return cat(cpu_name(root + "/proc/cpuinfo"), ", ", n_cores, " cores, ",
             ram_gib(root + "/proc/meminfo"), " GiB, ",
             device_name.empty() ? "no device" : device_name);
}

std::string machine_fingerprint(const std::string& device_name) {
  return machine_fingerprint("", this_machines_cpus().default_threads(), device_name);
}

}  // namespace sluice
