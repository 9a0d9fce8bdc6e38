// The operations of the CPU and those of the GPU, side by side: what tests compare.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/cuda_device.h"
#include "backend/mailbox.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "gpu/tiny_model.h"
#include "quant/activation.h"
#include "support/error_of.h"

namespace sluice::backend::cuda::test {

inline size_t count(int64_t n) { return static_cast<size_t>(n); }

class OpsTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    device = make_cuda_device(0);
    stream = device->make_stream("main");
    gpu = std::make_unique<Side>(device.get());
    gpu_ops = make_gpu_ops();
    cpu_ops = make_cpu_ops(pool);
  }
  virtual std::unique_ptr<DeviceOps> make_gpu_ops() { return device->make_ops(*stream, {}, {}); }

  static RowsView rows(Side& side, int64_t n_rows, int64_t n_cols, uint64_t seed) {
    return {side.put(random_values(count(n_rows * n_cols), seed)), n_rows, n_cols};
  }

  // Random rows, as they are and in int8.
  static ExpertInputView expert_rows(Side& side, int64_t n_rows, int64_t d) {
    const auto a = random_values(count(n_rows * d), 20);
    std::vector<int8_t> q(a.size());
    std::vector<float> scales(a.size() / 32), sums(scales.size());
    for (int64_t r = 0; r < n_rows; ++r) {
      quant::quantize_activation(std::span(a).subspan(count(r * d), count(d)), q.data() + r * d,
                                 scales.data() + r * d / 32, sums.data() + r * d / 32);
    }
    return {n_rows, d, side.put(a), side.put(q), side.put(scales), side.put(sums)};
  }

  ThreadPool pool{2};
  Side host{nullptr};
  std::unique_ptr<backend::Device> device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Side> gpu;
  std::unique_ptr<DeviceOps> gpu_ops;
  std::unique_ptr<Ops> cpu_ops;
};

// With scratch for some of what the GPU's operations need, and what they say they cannot do.
class CudaOpsTest : public OpsTest {
 protected:
  std::unique_ptr<DeviceOps> make_gpu_ops() override {
    scratch = device->allocate(MemoryKind::device, kMiB);  // some of what it needs
    return device->make_ops(*stream, {}, {scratch.data() + 8, kMiB - 8});
  }

  std::vector<float> read(Side& side, const RowsView& v) {
    if (&side == gpu.get()) stream->finish();
    return side.get(v.data, count(v.n_rows * v.n_cols));
  }
  std::string fault(const std::function<void()>& ask) {
    ask();
    return sluice::test::error_of(Errc::device, [&] { stream->finish(); });
  }

  Buffer scratch;
};

}  // namespace sluice::backend::cuda::test
