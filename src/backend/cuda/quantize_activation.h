// Launchers of the numeric contract's first and third part on the device. Pointers are device
// memory; nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sluice::backend::cuda {

// x: [n] f32, n % 32 == 0 -> q: [n], d: [n / 32], y: [n / 32].
void quantize_activation(const float* x, int64_t n, int8_t* q, float* d, float* y,
                         cudaStream_t stream);

// h[i] = swiglu(gate[i], up[i]). gate, up, h: [n] f32; h may be gate or up.
void swiglu(const float* gate, const float* up, int64_t n, float* h, cudaStream_t stream);

}  // namespace sluice::backend::cuda
