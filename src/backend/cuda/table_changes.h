// What comes and goes in the table of experts, at the head of a step, and copies of those that
// stand elsewhere in the device's memory. Pointers are device memory;
// nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/launch.h"
#include "backend/device_ops.h"

namespace sluice::backend::cuda {

// No entry is named twice.
void change_table(const TableChangesView& p, const Launch& how);

}  // namespace sluice::backend::cuda
