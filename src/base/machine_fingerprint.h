// A line that names this machine as far as its speed is concerned: while it stays the same, what
// was measured once still holds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace sluice {

// "AMD Ryzen 9 7950X 16-Core Processor, 16 cores, 62 GiB, NVIDIA GeForce RTX 4090": the CPU, its
// cores that this process may use, all RAM, and the device; an empty name: "no device".
std::string machine_fingerprint(const std::string& device_name);

// The same from the files below root/proc.
std::string machine_fingerprint(const std::string& root, int n_cores,
                                const std::string& device_name);

}  // namespace sluice
