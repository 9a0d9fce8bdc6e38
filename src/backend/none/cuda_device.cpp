// The stand-in for the CUDA device in a build without CUDA.
// SPDX-License-Identifier: Apache-2.0
#include "backend/device.h"
#include "base/error.h"

namespace sluice::backend {

GpuList list_gpus() {
  return {{}, "this build of sluice has no CUDA; build with the preset 'cuda' to use GPUs"};
}

std::unique_ptr<Device> make_cuda_device(int index) {
  throw Error(Errc::device,
              cat("GPU ", index, " cannot be used: this build of sluice has no CUDA; ",
                  "use the CPU, or build with the preset 'cuda'"));
}

}  // namespace sluice::backend
