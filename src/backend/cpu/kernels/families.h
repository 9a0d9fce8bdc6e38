// The kernels of each kind of CPU, one file each. kernels.cpp chooses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cpu/kernels/kernels.h"

namespace sluice::backend::cpu {

extern const Kernels kAvx2Kernels;
extern const Kernels kAvxVnniKernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kNeonKernels;

// Whether this CPU fetches a stripe ahead by itself better than we could ask it to: AMD's does
// (Zen 4, Q8_0: 93 % of the read bandwidth, with our fetches 68), Intel's does not (Sapphire
// Rapids, Q4_K: 69 %, with them 77).
extern const bool kStripesAreFollowed;

}  // namespace sluice::backend::cpu
