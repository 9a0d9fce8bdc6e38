// A build without CUDA says so when it is asked for a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backend/device.h"
#include "support/error_of.h"

namespace sluice::backend::test {
namespace {

TEST(CudaStandIn, SaysThatTheBuildHasNoCuda) {
  EXPECT_EQ(
      sluice::test::error_of(Errc::device, [] { make_cuda_device(1); }),
      "GPU 1 cannot be used: this build of sluice has no CUDA; use the CPU, or build with the "
      "preset 'cuda'");
}

TEST(CudaStandIn, ListsNoGpusAndSaysWhy) {
  EXPECT_TRUE(list_gpus().gpus.empty());
  EXPECT_EQ(list_gpus().problem,
            "this build of sluice has no CUDA; build with the preset 'cuda' to use GPUs");
}

}  // namespace
}  // namespace sluice::backend::test
