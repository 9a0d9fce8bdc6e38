// This machine as it was measured: at the first start, or at an earlier one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/ram/ram_device.h"
#include "base/thread_pool.h"
#include "engine/machine/machine_record.h"
#include "model/model.h"
#include "policy/plan/hardware.h"

namespace sluice::engine {

// The record at `path`, if it is of this machine with this device and so many threads; else a new
// one, which is then kept there. `warnings` gets a line where the file could not be read or
// written.
MachineRecord measured_machine(const std::string& path, const model::Model& model,
                               backend::RamDevice& device, ThreadPool& host_threads,
                               std::vector<std::string>& warnings);

// Saves it, or says why it is not kept.
void keep_record(const MachineRecord& record, const std::string& path,
                 std::vector<std::string>& warnings);

// What was measured takes the place of what was assumed.
void use_measured(const MachineRecord& record, policy::Hardware& hardware);

}  // namespace sluice::engine
