// What the NVIDIA driver says of a card's memory before this process has a context there: the CUDA
// runtime can only be asked afterwards. By NVML, the library that nvidia-smi reads, which comes
// with the driver; it is opened when it is first needed, so that nothing depends on it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::backend::cuda {

// Of the GPU with that number of CUDA's; 0 where the library is not there, or does not know.
uint64_t driver_free_bytes(int index);

}  // namespace sluice::backend::cuda
