// Ops on the CPU with kernels of one's own choice: make_cpu_ops(pool) of ops.h takes the best.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cpu/kernels/kernels.h"
#include "backend/ops.h"

namespace sluice::backend {

std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, const cpu::Kernels& kernels);

}  // namespace sluice::backend
