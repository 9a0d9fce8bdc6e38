// The kernels of each kind of CPU, one file each. kernels.cpp chooses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cpu/kernels/kernels.h"

namespace sluice::backend::cpu {

extern const Kernels kAvx2Kernels;
extern const Kernels kAvxVnniKernels;
extern const Kernels kAvx512Kernels;

}  // namespace sluice::backend::cpu
