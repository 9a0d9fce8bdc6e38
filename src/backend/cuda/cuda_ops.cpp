// The CUDA side of the Ops seam. The device computes the numeric contract's activation steps so
// far; a whole model does not run on it yet, and asking for that says so.
// SPDX-License-Identifier: Apache-2.0
#include "backend/ops.h"
#include "base/error.h"

namespace sluice::backend {

std::unique_ptr<Ops> make_cuda_ops() {
  throw Error(Errc::device, "models do not run on CUDA devices yet; use the CPU");
}

}  // namespace sluice::backend
