// The stand-in for backend/cuda in a build without CUDA.
// SPDX-License-Identifier: Apache-2.0
#include "backend/ops.h"
#include "base/error.h"

namespace sluice::backend {

std::unique_ptr<Ops> make_cuda_ops() {
  throw Error(Errc::device,
              "this build of sluice has no CUDA; use the CPU, or build with the preset 'cuda'");
}

}  // namespace sluice::backend
