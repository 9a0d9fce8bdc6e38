// The operations of the RAM device: those of the CPU, on the device's own threads, in the device's
// memory. Experts are found in the table; those that are not there it asks the host for through the
// mailbox, and computes what it has meanwhile.
//
// On the virtual clock an operation takes as long as its weights take to be read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backend/mailbox.h"
#include "backend/ops.h"
#include "backend/ram/ram_device.h"

namespace sluice::backend {

// `threads` are the device's; `gbps` is what they would read weights at. All outlive the result.
// An aborted wait throws Errc::device, with the layer.
std::unique_ptr<Ops> make_ram_ops(RamDevice& device, ThreadPool& threads, Mailbox& mailbox,
                                  double gbps);

}  // namespace sluice::backend
