// The end of gate_up as its kernels run it (backend/cuda/hidden.h, contract.h), compiled by g++
// with a warp as 32 loops, against quant/: equal in every bit.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/hidden.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "quant/activation.h"
#include "quant/swiglu.h"

namespace sluice::backend::cuda {
namespace {

// Numbers of every size; blocks of zeros, of subnormals, of values that round to ties, and of some
// on both sides of 2^-100, below which a block is zero.
std::vector<float> awkward_values(size_t n, uint64_t seed) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) {
    const int exponent = static_cast<int>(random_bits(seed + 1, i / 32) % 60) - 40;
    values[i] = std::ldexp(random_signed(random_bits(seed, i)), exponent);
    if (i / 32 % 7 == 2) values[i] = 0x1p-105f * static_cast<float>(i % 32 + i / 32 % 2);
    if (i / 32 % 7 == 3) values[i] = 0.0f;
    if (i / 32 % 7 == 4) values[i] = 0x1p-140f * static_cast<float>(i % 32);
    if (i / 32 % 7 == 5) values[i] = i % 32 == 0 ? 127.0f : static_cast<float>(i % 32) + 0.5f;
  }
  return values;
}

void expect_bits(float want, float got, const char* what, size_t at) {
  ASSERT_EQ(std::bit_cast<uint32_t>(want), std::bit_cast<uint32_t>(got))
      << what << " " << at << ": expected " << want << ", got " << got;
}

TEST(HiddenBodyTest, ExponentialHasTheBitsOfTheContract) {
  for (size_t i = 0; i <= 200'000; ++i) {  // beyond both ends of its range
    const float t = -100.0f + 0.001f * static_cast<float>(i);
    expect_bits(quant::contract_exp(t), contract_exp(t), "exponential of step", i);
  }
}

TEST(HiddenBodyTest, BlocksOfValuesBecomeTheContractsInt8) {
  constexpr size_t kBlocks = 700;
  const std::vector<float> x = awkward_values(32 * kBlocks, 5);
  std::vector<int8_t> want(x.size()), got(x.size());
  std::vector<float> want_d(kBlocks), want_y(kBlocks), got_d(kBlocks), got_y(kBlocks);
  quant::quantize_activation(x, want.data(), want_d.data(), want_y.data());
  for (size_t b = 0; b < kBlocks; ++b) {
    PerLane<float> values;
    EACH_LANE(lane) { values[lane] = x[32 * b + static_cast<size_t>(lane)]; }
    quantize_block(values, got.data() + 32 * b, &got_d[b], &got_y[b]);
    expect_bits(want_d[b], got_d[b], "scale of block", b);
    expect_bits(want_y[b], got_y[b], "sum of block", b);
  }
  ASSERT_EQ(want, got);
}

// Every slot and block of a step's hidden rows, whose memory ends with the last chunk.
TEST(HiddenBodyTest, HiddenRowsAreSwigluAndInt8OfTheContract) {
  for (const int d_ff : {32, 96, 256, 768, 800, 1024}) {
    constexpr int kSlots = 5;
    const int n_chunks = (d_ff + 255) / 256;
    const size_t n = static_cast<size_t>(d_ff), padded = static_cast<size_t>(256 * n_chunks);
    std::vector<int8_t> q(kSlots * padded);
    std::vector<float> d(kSlots * padded / 32), y(d.size());
    const Int8Rows h{q.data(), d.data(), y.data(), n_chunks};
    for (size_t slot = 0; slot < kSlots; ++slot) {
      const std::vector<float> gate = awkward_values(n, slot), up = awkward_values(n, 99 + slot);
      for (size_t b = 0; b < n / 32; ++b) {
        std::vector<float> dots(gate.begin() + static_cast<long>(32 * b),
                                gate.begin() + static_cast<long>(32 * b + 32));
        dots.insert(dots.end(), up.begin() + static_cast<long>(32 * b),
                    up.begin() + static_cast<long>(32 * b + 32));
        write_hidden(h, static_cast<int>(slot), static_cast<int>(b), dots.data());
      }
      std::vector<float> hidden(n), want_d(n / 32), want_y(n / 32);
      std::vector<int8_t> want(n);
      quant::swiglu(gate, up, hidden.data());
      quant::quantize_activation(hidden, want.data(), want_d.data(), want_y.data());
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(want[i], q[slot * padded + i]) << d_ff << " values, slot " << slot << ", " << i;
      }
      for (size_t b = 0; b < n / 32; ++b) {
        expect_bits(want_d[b], d[slot * padded / 32 + b], "scale of block", b);
        expect_bits(want_y[b], y[slot * padded / 32 + b], "sum of block", b);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::backend::cuda
