// What it costs a layer of a decode step that the host computes one of its experts, besides the
// bytes of that expert: measured on the device, in a recording.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/device.h"
#include "base/machine.h"
#include "base/thread_pool.h"
#include "model/model.h"

namespace sluice::engine {

// The median, in microseconds, of what fits into so many seconds; at least one. Of the rates:
// cpu_gbps, at which these threads compute many experts, and gpu_gbps and experts_us where they are
// known. Throws as the device does, and Errc::device where the host did not answer.
double measure_handshake_us(const model::Model& model, backend::Device& device, ThreadPool& threads,
                            const MachineRates& rates, double seconds);

}  // namespace sluice::engine
