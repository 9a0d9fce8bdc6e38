// What the tests of kernels share: device memory, random stripes, int8 rows, and the device's norm
// spelled out on the CPU. Without a device these tests say SKIPPED.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/int8_rows.h"
#include "backend/cuda/launch.h"
#include "base/random.h"
#include "quant/activation.h"
#include "quant/dot.h"
#include "quant/random_rows.h"
#include "quant/stripes.h"

namespace sluice::backend::cuda::test {

using quant::Type;

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    int n_devices = 0;
    if (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0) {
      GTEST_SKIP() << "no CUDA device on this machine";
    }
    how = launch_on(nullptr);
  }
  Launch how;
};

// As if a block had no more than this shared memory: 64 KB on sm_75, 99 on sm_86, 89 and 120.
inline Launch with_little_shared(Launch how, int kilobytes) {
  how.shared_bytes = std::min(how.shared_bytes, kilobytes << 10);
  how.shared_per_sm = std::min(how.shared_per_sm, (kilobytes == 64 ? 64 : kilobytes + 1) << 10);
  return how;
}

// n values of T in device memory. As the kernels ask for it, whole lines of 128 bytes; and what a
// test did not write is a pattern that is no number.
template <typename T>
class Device {
 public:
  explicit Device(size_t n) : n_(n) {
    const size_t n_bytes = (n * sizeof(T) + 127) / 128 * 128;
    CHECK_CUDA(cudaMalloc(&data_, std::max<size_t>(n_bytes, 128)));
    CHECK_CUDA(cudaMemset(data_, 0xff, std::max<size_t>(n_bytes, 128)));
  }
  explicit Device(std::span<const T> values) : Device(values.size()) { set(values); }
  explicit Device(const std::vector<T>& values) : Device(std::span<const T>(values)) {}
  ~Device() { cudaFree(data_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void set(std::span<const T> values) {
    CHECK_CUDA(cudaMemcpy(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice));
  }
  std::vector<T> get() const {
    std::vector<T> values(n_);
    CHECK_CUDA(cudaMemcpy(values.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  T* data() const { return static_cast<T*>(data_); }

 private:
  size_t n_;
  void* data_ = nullptr;
};

inline std::vector<float> random_values(size_t n, uint64_t seed, float size = 1.0f) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) {
    const auto group = static_cast<float>(1 + random_bits(seed ^ 77, i / 32) % 4);
    values[i] = size * group * random_signed(random_bits(seed, i));
  }
  return values;
}

// A weight as rows, and as stripes on the device.
struct Weight {
  Weight(Type t, int n_cols_, int n_rows_, uint64_t seed)
      : type(t), n_cols(n_cols_), n_rows(n_rows_), rows(make_rows(seed)), stripes(woven()) {}

  float dot(int row, const quant::ActivationView& in) const {
    return quant::dot(type, rows.data() + static_cast<size_t>(row) * quant::row_bytes(type, n_cols),
                      n_cols, in);
  }

  Type type;
  int n_cols, n_rows;
  std::vector<std::byte> rows;
  Device<std::byte> stripes;

  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(stripes.data()); }

 private:
  std::vector<std::byte> make_rows(uint64_t seed) const {
    std::vector<std::byte> bytes(static_cast<size_t>(n_rows) * quant::row_bytes(type, n_cols));
    quant::random_row_blocks(
        type, seed, 0, static_cast<int64_t>(bytes.size() / quant::type_info(type).block_bytes),
        0.1f, bytes.data());
    return bytes;
  }
  std::vector<std::byte> woven() const {
    std::vector<std::byte> out(rows.size());
    const size_t stripe = 8 * quant::row_bytes(type, n_cols);
    for (size_t at = 0; at < rows.size(); at += stripe) {
      quant::weave_rows(type, n_cols, rows.data() + at, out.data() + at);
    }
    return out;
  }
};

// Int8 rows on the host, in the padded form kernels use.
struct HostInt8 {
  HostInt8(int n_rows, int n_cols_)
      : n_cols(n_cols_),
        n_chunks((n_cols_ + 255) / 256),
        q(static_cast<size_t>(n_rows * n_chunks) * 256),
        d(static_cast<size_t>(n_rows * n_chunks) * 8),
        y(d.size()) {}
  void quantize(int row, std::span<const float> x) {
    const auto at = static_cast<size_t>(row * n_chunks);
    quant::quantize_activation(x, q.data() + 256 * at, d.data() + 8 * at, y.data() + 8 * at);
  }
  quant::ActivationView view(int row) const {
    const auto at = static_cast<size_t>(row * n_chunks);
    return {q.data() + 256 * at, d.data() + 8 * at, y.data() + 8 * at};
  }

  int n_cols, n_chunks;
  std::vector<int8_t> q;
  std::vector<float> d, y;
};

struct DeviceInt8 {
  DeviceInt8(int n_rows, int n_cols)
      : n_chunks((n_cols + 255) / 256),
        q(static_cast<size_t>(n_rows * n_chunks) * 256),
        d(static_cast<size_t>(n_rows * n_chunks) * 8),
        y(static_cast<size_t>(n_rows * n_chunks) * 8) {}
  void set(const HostInt8& in) {
    q.set(in.q);
    d.set(in.d);
    y.set(in.y);
  }
  Int8Rows rows() const { return {q.data(), d.data(), y.data(), n_chunks}; }

  int n_chunks;
  Device<int8_t> q;
  Device<float> d, y;
};

// The columns of a row: the rest of its last chunk may be anything.
inline void expect_same_int8(const HostInt8& want, const DeviceInt8& got, int n_rows,
                             const std::string& what) {
  const auto q = got.q.get();
  const auto d = got.d.get(), y = got.y.get();
  for (int r = 0; r < n_rows; ++r) {
    const auto at = static_cast<size_t>(r * want.n_chunks);
    for (size_t i = 0; i < static_cast<size_t>(want.n_cols); ++i) {
      ASSERT_EQ(want.q[256 * at + i], q[256 * at + i]) << what << ", row " << r << ", column " << i;
    }
    for (size_t b = 0; b < static_cast<size_t>(want.n_cols / 32); ++b) {
      ASSERT_EQ(std::bit_cast<uint32_t>(want.d[8 * at + b]), std::bit_cast<uint32_t>(d[8 * at + b]))
          << what << ", row " << r << ", scale " << b;
      ASSERT_EQ(std::bit_cast<uint32_t>(want.y[8 * at + b]), std::bit_cast<uint32_t>(y[8 * at + b]))
          << what << ", row " << r << ", sum " << b;
    }
  }
}

inline void expect_same_bits(std::span<const float> want, std::span<const float> got,
                             const std::string& what) {
  ASSERT_EQ(want.size(), got.size()) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(want[i]), std::bit_cast<uint32_t>(got[i]))
        << what << ", index " << i << ", expected " << want[i] << ", got " << got[i];
  }
}

inline float warp_tree(std::vector<float> v) {
  for (size_t m = 16; m > 0; m >>= 1) {
    const std::vector<float> before = v;
    for (size_t i = 0; i < 32; ++i) v[i] = before[i] + before[i ^ m];
  }
  return v[0];
}

// norm(x) in the device's order of sums (stage_rows.cuh).
inline std::vector<float> device_norm(std::span<const float> x, std::span<const float> weight,
                                      float eps) {
  std::vector<float> lanes(32);
  for (size_t s = 0; s * 128 < x.size(); ++s) {
    std::vector<float> squares(32);
    for (size_t lane = 0; lane < 32; ++lane) {
      const size_t at = 128 * s + 4 * lane;
      const auto v = [&](size_t k) { return at + k < x.size() ? x[at + k] : 0.0f; };
      squares[lane] = std::fma(v(3), v(3), std::fma(v(2), v(2), std::fma(v(1), v(1), v(0) * v(0))));
    }
    lanes[s % 32] = lanes[s % 32] + warp_tree(squares);
  }
  const float mean = warp_tree(lanes) / static_cast<float>(x.size());
  const float scale = 1.0f / std::sqrt(mean + eps);
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
  return y;
}

inline std::vector<Type> woven_types() {
  std::vector<Type> types;
  for (const Type type : quant::supported_types()) {
    if (!quant::is_float(type)) types.push_back(type);
  }
  return types;
}

}  // namespace sluice::backend::cuda::test
