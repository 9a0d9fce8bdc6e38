// The operations of the RAM device: those of the CPU, on the device's own threads, in the device's
// memory, and in nothing else, unless it is read over the link.
//
// On the virtual clock an operation takes as long as its weights take to be read, or its products
// to be computed; and the host's rows come when the described machine would have had them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backend/device_ops.h"
#include "backend/mailbox.h"
#include "backend/ram/ram_device.h"

namespace sluice::backend {

// `threads` are the device's. All outlive the result.
std::unique_ptr<DeviceOps> make_ram_ops(RamDevice& device, ThreadPool& threads, Mailbox& mailbox);

}  // namespace sluice::backend
