// The kernels for ARM's NEON with dot products, as on most cores since 2018: 8 rows at a time.
// Compiled with these instructions switched on: nothing here may run before kernels.cpp has asked
// the CPU.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernels/families.h"
#include "backend/cpu/kernels/lanes_neon.h"
#include "backend/cpu/kernels/multiply.h"

namespace sluice::backend::cpu {
namespace {

struct Sdot {
  SLUICE_INLINE static uint32x4_t dot4(uint32x4_t acc, uint32x4_t w, uint32x4_t q) {
    return vreinterpretq_u32_s32(
        vdotq_s32(vreinterpretq_s32_u32(acc), vreinterpretq_s8_u32(w), vreinterpretq_s8_u32(q)));
  }
};

using Lanes = LanesNeon<Sdot>;

}  // namespace

const Kernels kNeonKernels = {"NEON dotprod", multiply_rows_of<Lanes, Lanes>};

}  // namespace sluice::backend::cpu
