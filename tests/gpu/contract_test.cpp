// The numeric contract on the device against quant/ on the CPU: equal in every bit. Without a
// device these tests say SKIPPED.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/quantize_activation.h"
#include "base/random.h"
#include "quant/activation.h"
#include "quant/swiglu.h"

namespace sluice::backend::cuda {
namespace {

class DeviceArray {
 public:
  explicit DeviceArray(size_t n_bytes) { CHECK_CUDA(cudaMalloc(&data_, n_bytes)); }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

template <typename T>
std::vector<T> download(const DeviceArray& array, size_t n) {
  std::vector<T> values(n);
  CHECK_CUDA(cudaMemcpy(values.data(), array.as<T>(), n * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

void upload(const DeviceArray& array, const std::vector<float>& values) {
  CHECK_CUDA(cudaMemcpy(array.as<float>(), values.data(), values.size() * sizeof(float),
                        cudaMemcpyHostToDevice));
}

// Values of every size, whole blocks of zeros and of denormals, and exact ties among them.
std::vector<float> awkward_values(size_t n, uint64_t seed) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) {
    const uint64_t bits = random_bits(seed, i);
    const int exponent = static_cast<int>(random_bits(seed + 1, i / 32) % 60) - 40;
    values[i] = std::ldexp(random_signed(bits), exponent);
    if ((i / 32) % 7 == 3) values[i] = 0.0f;
    if ((i / 32) % 7 == 4) values[i] = 0x1p-140f * static_cast<float>(i % 32);
    if ((i / 32) % 7 == 5) values[i] = i % 32 == 0 ? 127.0f : static_cast<float>(i % 32) + 0.5f;
  }
  return values;
}

class DeviceContractTest : public testing::Test {
 protected:
  void SetUp() override {
    int n_devices = 0;
    if (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0) {
      GTEST_SKIP() << "no CUDA device on this machine";
    }
  }
};

TEST_F(DeviceContractTest, ActivationsQuantiseToTheSameBytes) {
  constexpr size_t kN = 32 * 4099;
  const std::vector<float> x = awkward_values(kN, 1);
  std::vector<int8_t> q(kN);
  std::vector<float> d(kN / 32);
  std::vector<float> y(kN / 32);
  quant::quantize_activation(x, q.data(), d.data(), y.data());

  const DeviceArray device_x(kN * 4), device_q(kN), device_d(kN / 8), device_y(kN / 8);
  upload(device_x, x);
  quantize_activation(device_x.as<float>(), kN, device_q.as<int8_t>(), device_d.as<float>(),
                      device_y.as<float>(), nullptr);
  EXPECT_EQ(download<int8_t>(device_q, kN), q);
  const auto got_d = download<uint32_t>(device_d, kN / 32);
  const auto got_y = download<uint32_t>(device_y, kN / 32);
  for (size_t b = 0; b < kN / 32; ++b) {
    ASSERT_EQ(got_d[b], std::bit_cast<uint32_t>(d[b])) << "scale of block " << b;
    ASSERT_EQ(got_y[b], std::bit_cast<uint32_t>(y[b])) << "sum of block " << b;
  }
}

TEST_F(DeviceContractTest, SwigluGivesTheSameBits) {
  constexpr size_t kN = 1'000'003;
  std::vector<float> gate(kN);
  for (size_t i = 0; i < kN; ++i) gate[i] = -100.0f + 200.0f * static_cast<float>(i) / kN;
  const std::vector<float> up = awkward_values(kN, 2);
  std::vector<float> h(kN);
  quant::swiglu(gate, up, h.data());

  const DeviceArray device_gate(kN * 4), device_up(kN * 4), device_h(kN * 4);
  upload(device_gate, gate);
  upload(device_up, up);
  swiglu(device_gate.as<float>(), device_up.as<float>(), kN, device_h.as<float>(), nullptr);
  const auto got = download<uint32_t>(device_h, kN);
  for (size_t i = 0; i < kN; ++i) {
    ASSERT_EQ(got[i], std::bit_cast<uint32_t>(h[i])) << "gate " << gate[i] << ", up " << up[i];
  }
}

}  // namespace
}  // namespace sluice::backend::cuda
