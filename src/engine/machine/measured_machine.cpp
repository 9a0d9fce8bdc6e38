// See measured_machine.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/measured_machine.h"

#include <algorithm>

#include "base/error.h"
#include "base/machine_fingerprint.h"
#include "engine/machine/calibration.h"
#include "sluice/device.h"

namespace sluice::engine {

MachineRecord measured_machine(const std::string& path, const model::Model& model,
                               backend::RamDevice& device, ThreadPool& host_threads,
                               std::vector<std::string>& warnings) {
  std::string warning;
  const auto kept = MachineRecord::load(
      path, machine_fingerprint("", host_threads.n_threads(), device.name()), &warning);
  if (!warning.empty()) warnings.push_back(warning);
  if (kept) return *kept;
  const MachineRecord record = calibrate(model, device, host_threads);
  keep_record(record, path, warnings);
  return record;
}

void keep_record(const MachineRecord& record, const std::string& path,
                 std::vector<std::string>& warnings) {
  try {
    record.save(path);
  } catch (const Error& e) {
    warnings.push_back(cat("what was measured on this machine is not kept: ", e.what()));
  }
}

void use_measured(const MachineRecord& record, policy::Hardware& hardware) {
  const auto use = [](double measured, double& assumed, std::string* source) {
    if (measured <= 0.0) return;
    assumed = measured;
    if (source) *source = "measured";
  };
  use(record.cpu_gbps, hardware.cpu_gbps, &hardware.cpu_source);
  use(record.device_gbps, hardware.gpu_gbps, &hardware.gpu_source);
  use(record.link_gbps, hardware.link_gbps, &hardware.gpu_source);
  use(record.handshake_us, hardware.handshake_us, nullptr);
  if (record.both_link_gbps > 0.0 && record.cpu_gbps > 0.0) {
    hardware.copy_interference =
        std::clamp((record.cpu_gbps - record.both_cpu_gbps) / record.both_link_gbps, 0.0, 1.0);
  }
}

}  // namespace sluice::engine

namespace sluice {

// With whichever device: its name stands last in a fingerprint.
double measured_cpu_gbps(const std::string& machine_path) {
  std::string warning;  // for the session that will measure anew
  const auto record = engine::MachineRecord::load(machine_path, "", &warning);
  const std::string without_device = machine_fingerprint("");
  const std::string host = without_device.substr(0, without_device.rfind(", ") + 2);
  return record && record->fingerprint.starts_with(host) ? record->cpu_gbps : 0.0;
}

}  // namespace sluice
