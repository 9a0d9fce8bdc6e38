// What was measured on this machine, so that the next start need not measure it again: the rates of
// each device with each number of threads, how fast the CPU ran each model, and how fast each model
// ran in the modes that were tried.
//
// Format: text, each line a key and its value:
//   sluice-machine 4                the format and its version
//   host <base/machine_fingerprint.h>
//   device <threads> <name>         any number of them; each is followed by
//   link_gbps <number>              the rates that are known, in the order of MachineRates
//   model <threads> <model key>     any number of them, with rates as above; the newest last
//   trial <tokens/s> <mode> <key>   any number of them
//   end
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/machine.h"

namespace sluice::engine {

struct DeviceRates {
  std::string device;  // its name
  int n_threads = 0;   // of the host beside it
  MachineRates rates = unmeasured_rates();
  friend bool operator==(const DeviceRates&, const DeviceRates&) = default;
};

// What the steps of one model made of the CPU: types and sizes of weights matter.
struct ModelRates {
  std::string model_key;  // model_key()
  int n_threads = 0;
  MachineRates rates = unmeasured_rates();  // the CPU's
  friend bool operator==(const ModelRates&, const ModelRates&) = default;
};

struct TrialRecord {
  std::string key;   // everything that changes the outcome: trial_key() in session_plan.h
  std::string mode;  // one word
  double tokens_per_second = 0.0;
  friend bool operator==(const TrialRecord&, const TrialRecord&) = default;
};

struct MachineRecord {
  std::string host;
  std::vector<DeviceRates> devices;
  std::vector<ModelRates> models;
  std::vector<TrialRecord> trials;

  // Nothing known of this machine.
  static MachineRecord of_this_machine();

  // In the place of an older one of the same device and threads, model and threads, key and mode.
  void add(const DeviceRates& device);
  void add(const ModelRates& model);
  void add(const TrialRecord& trial);

  // Null where there is none.
  const DeviceRates* device(std::string_view name, int n_threads) const;
  const TrialRecord* trial(std::string_view key, std::string_view mode) const;
  // The model's own, or else the newest of any model, with so many threads.
  const ModelRates* model(std::string_view model_key, int n_threads) const;

  // That of the file, if it is of this machine; else an empty one, as where there is no file, or
  // one of version 1 or 2. Of version 3 the devices are left out: it counted what few experts cost
  // besides their bytes as a lower rate, and `warning` says that they are measured again. So it
  // does, in one line, where the file is damaged or says what no machine can do.
  static MachineRecord load(const std::string& path, std::string* warning);

  // As write_state_file(): whole or not at all. Throws Errc::bad_file.
  void save(const std::string& path) const;

  friend bool operator==(const MachineRecord&, const MachineRecord&) = default;
};

// Tells models apart: a name for people, in one line, and the size of the files.
std::string model_key(std::string_view name, uint64_t file_bytes);

}  // namespace sluice::engine
