// The kernels' stripe dots (backend/cuda/stripe_dot.h), compiled by g++ with a warp as 32 loops,
// against quant/ on the rows the stripe was woven from: equal in every bit.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/stripe_dot.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/stripe_dispatch.h"
#include "base/random.h"
#include "quant/activation.h"
#include "quant/blocks.h"
#include "quant/dot.h"
#include "quant/random_rows.h"
#include "quant/stripes.h"

namespace sluice::backend::cuda {
namespace {

using quant::kStripeRows;

// Exactly the stripe's bytes, so that ASan sees a read behind them; aligned as a kernel has them.
struct AlignedBytes {
  explicit AlignedBytes(size_t n)
      : size(n), data(static_cast<uint8_t*>(::operator new (n, std::align_val_t{128}))) {}
  ~AlignedBytes() { ::operator delete (data, std::align_val_t{128}); }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;

  size_t size;
  uint8_t* data;
};

// Inputs whose memory ends with their last chunk. What is behind their columns is not a number.
struct Inputs {
  Inputs(int n_rows, int64_t n_cols, uint64_t seed) : shape(row_shape(n_cols)) {
    const auto padded = static_cast<size_t>(shape.n_chunks * kChunk);
    for (int r = 0; r < n_rows; ++r) {
      std::vector<float> x(static_cast<size_t>(n_cols));
      for (size_t i = 0; i < x.size(); ++i) {
        const auto bits = random_bits(seed + static_cast<uint64_t>(r), i);
        // The last row holds extreme integers, all others numbers of many sizes.
        x[i] = r == n_rows - 1 ? (bits & 1 ? 1.0f : -1.0f)
                               : std::ldexp(random_signed(bits), static_cast<int>(i / 32 % 9) - 4);
      }
      q.emplace_back(padded, int8_t{99});
      d.emplace_back(padded / 32, std::nanf(""));
      y.emplace_back(padded / 32, std::nanf(""));
      quant::quantize_activation(x, q.back().data(), d.back().data(), y.back().data());
    }
  }
  InputRow row(int r) const {
    const auto i = static_cast<size_t>(r);
    return {q[i].data(), d[i].data(), y[i].data()};
  }

  RowShape shape;
  std::vector<std::vector<int8_t>> q;
  std::vector<std::vector<float>> d, y;
};

class StripeDotTest : public testing::TestWithParam<Type> {
 protected:
  void SetUpStripe(int64_t n_cols, uint64_t seed) {
    const Type type = GetParam();
    const size_t bytes = quant::row_bytes(type, n_cols);
    rows_.resize(kStripeRows * bytes);
    const auto n_blocks = static_cast<int64_t>(rows_.size() / quant::type_info(type).block_bytes);
    quant::random_row_blocks(type, seed, 0, n_blocks, 0.25f, rows_.data());
    stripe_ = std::make_unique<AlignedBytes>(rows_.size());
    quant::weave_rows(type, n_cols, rows_.data(), reinterpret_cast<std::byte*>(stripe_->data));
    n_cols_ = n_cols;
    shape_ = row_shape(n_cols);
  }

  void expect_dot(const Inputs& in, int row, int r, float got) const {
    const std::byte* const weights = rows_.data() + row * quant::row_bytes(GetParam(), n_cols_);
    const InputRow input = in.row(r);
    const float want = quant::dot(GetParam(), weights, n_cols_, {input.q, input.d, input.y});
    ASSERT_EQ(std::bit_cast<uint32_t>(want), std::bit_cast<uint32_t>(got))
        << n_cols_ << " columns, weight row " << row << ", input " << r << ": expected " << want
        << ", got " << got;
  }

  Unit unit(int u) const {
    const int first = kUnitChunks * u;
    const int left = shape_.n_chunks - first;
    return {stripe_->data + 8 * quant::row_bytes(GetParam(), int64_t{kChunk} * first), first,
            left < kUnitChunks ? left : kUnitChunks};
  }

  template <Type type, int n_early>
  void run_one_input(const Inputs& in, int r) {
    PerLane<float> acc{}, sums;
    for (int u = 0; u < shape_.n_units(); ++u) {
      UnitWeights weights;
      std::memset(&weights, 0x5a, sizeof weights);  // chunks that are not unpacked must not count
      unpack_unit<type, n_early>(unit(u), shape_, weights);
      dot_unit<type, PlainLoad, n_early>(unit(u), shape_, weights, in.row(r), sums);
      add_in_order(sums, unit(u).n, acc);
    }
    EACH_LANE(lane) { expect_dot(in, lane / 4, r, acc[lane]); }
  }

  template <Type type, int at_once>
  void run_inputs(const Inputs& in, int n_inputs) {
    PerLane<float> acc[4] = {};
    for (int u = 0; u < shape_.n_units(); ++u) {
      dot_unit_4<type, PlainLoad, at_once>(
          unit(u), shape_, n_inputs, [&](int r) { return in.row(r); },
          [&](int, int group, const PerLane<float>& sums) {
            EACH_LANE(lane) { acc[group][lane] = add_rn(acc[group][lane], sums[lane]); }
          });
    }
    EACH_LANE(lane) {
      for (int group = 0; group * 4 < n_inputs; ++group) {
        const int r = 4 * group + lane % 4;
        if (r < n_inputs) expect_dot(in, lane / 4, r, acc[group][lane]);
      }
    }
  }

  template <Type type>
  void run_all(int64_t n_cols) {
    if (n_cols % quant::type_info(type).block_elems != 0) return;
    SetUpStripe(n_cols, static_cast<uint64_t>(n_cols));
    const Inputs in(16, n_cols, 7);
    for (const int r : {0, 7, 15}) {
      run_one_input<type, 0>(in, r);
      run_one_input<type, 1>(in, r);
      run_one_input<type, kEarlyChunks>(in, r);
    }
    for (const int n : {1, 2, 3, 4, 5, 8, 11, 16}) {
      run_inputs<type, 1>(in, n);
      run_inputs<type, 2>(in, n);
    }
  }

  std::vector<std::byte> rows_;
  std::unique_ptr<AlignedBytes> stripe_;
  int64_t n_cols_ = 0;
  RowShape shape_{};
};

// Lengths of one block, of less than a unit, of short last chunks (2880 ends with two blocks), and
// of whole units.
TEST_P(StripeDotTest, EqualsTheContractInEveryBit) {
  for (const int64_t n_cols : {32, 96, 256, 768, 800, 1024, 1280, 2048, 2880}) {
    with_stripe_type(GetParam(), [&]<Type type>() { run_all<type>(n_cols); });
  }
}

std::vector<Type> woven_types() {
  std::vector<Type> types;
  for (const Type type : quant::supported_types()) {
    if (!quant::is_float(type)) types.push_back(type);
  }
  return types;
}

INSTANTIATE_TEST_SUITE_P(Types, StripeDotTest, testing::ValuesIn(woven_types()),
                         [](const auto& test) { return std::string(type_name(test.param)); });

}  // namespace
}  // namespace sluice::backend::cuda
