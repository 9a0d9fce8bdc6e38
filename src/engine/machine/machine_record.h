// What was measured on this machine, so that the next start need not measure it again: rates, and
// how fast each model ran in the modes that were tried.
//
// Format: text, each line a key and its value, in this order:
//   sluice-machine 1                                   the format and its version
//   fingerprint <base/machine_fingerprint.h>
//   link_gbps <number>                                 and the other rates, as in the struct
//   trial <tokens/s> <mode> <model key>                any number of them
//   end
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::engine {

struct TrialRecord {
  std::string model_key;  // model_key()
  std::string mode;       // one word
  double tokens_per_second = 0.0;
  friend bool operator==(const TrialRecord&, const TrialRecord&) = default;
};

// GB/s of 10^9 bytes; 0: not measured.
struct MachineRecord {
  std::string fingerprint;
  double link_gbps = 0.0;       // host to device
  double cpu_gbps = 0.0;        // expert kernels of all cores
  double device_gbps = 0.0;     // weights from the device's own memory
  double both_link_gbps = 0.0;  // link and cores at the same time
  double both_cpu_gbps = 0.0;
  double handshake_us = 0.0;  // a layer's misses to the CPU workers and back, without their work
  std::vector<TrialRecord> trials;

  // In the place of an older one of the same model and mode.
  void add_trial(const TrialRecord& trial);

  // Nothing where there is no file, or it is another machine's: then all is to be measured. (Empty:
  // whose it is, is left to the caller.) Nothing either where it is damaged or says what no machine
  // can do; `warning` is then one line about it.
  static std::optional<MachineRecord> load(const std::string& path, std::string_view fingerprint,
                                           std::string* warning);

  // As write_state_file(): whole or not at all. Throws Errc::bad_file.
  void save(const std::string& path) const;

  friend bool operator==(const MachineRecord&, const MachineRecord&) = default;
};

// Tells models apart: a name for people, in one line, and the size of the files.
std::string model_key(std::string_view name, uint64_t file_bytes);

}  // namespace sluice::engine
