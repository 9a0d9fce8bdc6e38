// Why a GPU cannot be used, in words; on any machine, since the facts are made up. And what this
// machine says, where it has none.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "backend/cuda/cuda_probe.h"
#include "backend/device.h"
#include "support/error_of.h"

namespace sluice::backend::cuda::test {
namespace {

CudaProbe h200() {
  CudaProbe p;
  p.runtime_version = 13000;
  p.driver_version = 13010;
  p.n_devices = 1;
  p.card = "NVIDIA H200";
  p.major = 9;
  p.n_bytes = uint64_t{139} << 30;
  return p;
}

TEST(CudaProblem, NoneWithACardThatTheBuildKnows) {
  EXPECT_EQ(problem_of(h200()), "");
  EXPECT_EQ(name_of(h200()), "GPU 0: NVIDIA H200 (sm_90), 139 GiB, driver for CUDA 13.1");
}

TEST(CudaProblem, AListNamesEachCardWithItsMemoryAndItsProblem) {
  CudaProbe first = h200(), second = h200();
  first.n_devices = second.n_devices = 2;
  first.free_bytes = 7;
  first.own_bytes = 5;
  second.index = 1;
  second.major = 7, second.minor = 0;
  const GpuList list = list_of(std::vector{first, second});
  EXPECT_EQ(list.problem, "");
  ASSERT_EQ(list.gpus.size(), 2u);
  EXPECT_EQ(list.gpus[0].name, "NVIDIA H200");
  EXPECT_EQ(list.gpus[0].vram_bytes, uint64_t{139} << 30);
  EXPECT_EQ(list.gpus[0].vram_free, 7u + 5u) << "as if there were no context yet";
  EXPECT_EQ(list.gpus[0].vram_overhead, 5u);
  EXPECT_EQ(list.gpus[0].problem, "");
  EXPECT_EQ(list.gpus[1].index, 1);
  EXPECT_EQ(list.gpus[1].problem, problem_of(second));
}

TEST(CudaProblem, ACardWithADisplayKeepsSomeMemoryForIt) {
  CudaProbe p = h200();
  p.own_bytes = 5;
  p.has_display = true;
  EXPECT_EQ(list_of(std::span(&p, 1)).gpus[0].vram_overhead, 5u + (uint64_t{512} << 20));
}

TEST(CudaProblem, AListWithoutGpusSaysWhy) {
  CudaProbe p = h200();
  p.n_devices = 0;
  const GpuList list = list_of(std::span(&p, 1));
  EXPECT_TRUE(list.gpus.empty());
  EXPECT_EQ(list.problem, problem_of(p));
}

TEST(CudaProblem, NoDriver) {
  CudaProbe p;
  p.runtime_version = 13000;
  p.count_error = "CUDA driver version is insufficient for CUDA runtime version";
  EXPECT_EQ(
      problem_of(p),
      "this machine has no NVIDIA driver; install one for CUDA 13.0 or later, or use the CPU");
}

TEST(CudaProblem, AnOldDriverWithBothVersions) {
  CudaProbe p = h200();
  p.driver_version = 12040;
  p.count_error = "CUDA driver version is insufficient for CUDA runtime version";
  EXPECT_EQ(problem_of(p),
            "the NVIDIA driver is too old: it runs CUDA 12.4, this build needs CUDA 13.0; update "
            "the driver, or use the CPU");
}

TEST(CudaProblem, AnOlderMinorVersionIsNone) {
  CudaProbe p = h200();
  p.runtime_version = 13020;
  p.driver_version = 13000;
  EXPECT_EQ(problem_of(p), "");
}

TEST(CudaProblem, ADriverThatDoesNotAnswer) {
  CudaProbe p = h200();
  p.n_devices = 0;
  p.count_error = "unknown error";
  EXPECT_EQ(problem_of(p),
            "the NVIDIA driver cannot be used: unknown error; see what nvidia-smi says");
}

TEST(CudaProblem, NoGpu) {
  CudaProbe p = h200();
  p.n_devices = 0;
  EXPECT_EQ(problem_of(p),
            "the NVIDIA driver sees no GPU; see what nvidia-smi and CUDA_VISIBLE_DEVICES say");
}

TEST(CudaProblem, NoSuchGpu) {
  CudaProbe p = h200();
  p.index = 1;
  EXPECT_EQ(problem_of(p), "there is no GPU 1: this machine has 1, GPU 0");
  p.n_devices = 4;
  p.index = 4;
  EXPECT_EQ(problem_of(p), "there is no GPU 4: this machine has 4, GPU 0 to 3");
  p.index = -1;
  EXPECT_EQ(problem_of(p), "there is no GPU -1: this machine has 4, GPU 0 to 3");
}

TEST(CudaProblem, ACardThatIsTooOld) {
  CudaProbe p = h200();
  p.card = "Tesla V100";
  p.major = 7;
  EXPECT_EQ(problem_of(p),
            "GPU 0 (Tesla V100, sm_70) is too old: sm_75 (Turing) is the least; use the CPU");
}

TEST(CudaProblem, ACardThatTheBuildHasNoKernelsFor) {
  CudaProbe p = h200();
  p.card = "NVIDIA B200";
  p.major = 10;
  p.kernel_error = "no kernel image is available for execution on the device";
  EXPECT_EQ(problem_of(p),
            "this build has no kernels for GPU 0 (NVIDIA B200, sm_100): no kernel image is "
            "available for execution on the device; build with -DCMAKE_CUDA_ARCHITECTURES=100");
}

TEST(CudaProblem, ALostGpu) {
  CudaProbe p = h200();
  p.device_error = "an illegal memory access was encountered";
  EXPECT_EQ(problem_of(p),
            "GPU 0 (NVIDIA H200) cannot be used: an illegal memory access was encountered; start "
            "the program again, or see what nvidia-smi says");
}

TEST(CudaProblem, ThisMachineHasAGpuOrSaysWhyNot) {
  const CudaProbe probe = probe_gpu(0);
  const std::string problem = problem_of(probe);
  if (problem.empty()) {
    EXPECT_EQ(make_cuda_device(0)->name(), name_of(probe));
  } else {
    EXPECT_EQ(sluice::test::error_of(Errc::device, [] { make_cuda_device(0); }), problem);
  }
  int driver = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  EXPECT_EQ(problem.starts_with("this machine has no NVIDIA driver"), driver == 0) << problem;
}

}  // namespace
}  // namespace sluice::backend::cuda::test
