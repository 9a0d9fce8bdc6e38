// The kernels' stripe dots (backend/cuda/stripe_dot.h), compiled by g++ with a warp as 32 loops,
// against quant/ on the rows the stripe was woven from: equal in every bit.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/stripe_dot.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/stripe_dispatch.h"
#include "backend/cuda/stripe_two.h"
#include "base/random.h"
#include "quant/activation.h"
#include "quant/blocks.h"
#include "quant/dot.h"
#include "quant/random_rows.h"
#include "quant/stripes.h"

namespace sluice::backend::cuda {
namespace {

using quant::kStripeRows;

// Exactly so many bytes, so that ASan sees a read behind them; aligned as a kernel has them.
struct AlignedBytes {
  explicit AlignedBytes(size_t n)
      : size(n), data(static_cast<uint8_t*>(::operator new (n, std::align_val_t{128}))) {}
  ~AlignedBytes() { ::operator delete (data, std::align_val_t{128}); }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;

  size_t size;
  uint8_t* data;
};

// A stripe's bytes as `fill` writes them, and behind them what no weight is, up to a whole chunk.
template <typename Fill>
std::unique_ptr<AlignedBytes> whole_chunks(Type type, int64_t n_cols, const Fill& fill) {
  const int n_chunks = row_shape(n_cols).n_chunks;
  auto out = std::make_unique<AlignedBytes>(8 * quant::row_bytes(type, int64_t{kChunk} * n_chunks));
  std::memset(out->data, 0xff, out->size);
  fill(reinterpret_cast<std::byte*>(out->data));
  return out;
}

// Weights in memory that ends with them.
struct ShortLoad : PlainLoad {
  static constexpr bool kWhole = false;
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
    stripe_ = whole_chunks(
        type, n_cols, [&](std::byte* out) { quant::weave_rows(type, n_cols, rows_.data(), out); });
    short_stripe_ = std::make_unique<AlignedBytes>(rows_.size());
    std::memcpy(short_stripe_->data, stripe_->data, rows_.size());
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

  Unit unit(int u, bool whole = true, int n_chunks = kUnitChunks) const {
    const int first = n_chunks * u;
    const int left = shape_.n_chunks - first;
    return {(whole ? stripe_ : short_stripe_)->data +
                8 * quant::row_bytes(GetParam(), int64_t{kChunk} * first),
            first, left < n_chunks ? left : n_chunks};
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

  template <Type type, int n, typename Load = PlainLoad>
  void run_inputs(const Inputs& in, int first) {
    // Units are shorter where a block has little shared memory.
    for (const int n_chunks : {kUnitChunks, 2}) {
      PerLane<float> acc = {};
      for (int u = 0; n_chunks * u < shape_.n_chunks; ++u) {
        add_unit<type, Load, n>(
            unit(u, Load::kWhole, n_chunks), shape_, [&](int r) { return in.row(first + r); }, acc);
      }
      EACH_LANE(lane) { expect_dot(in, lane / 4, first + lane % n, acc[lane]); }
    }
  }

  // The stripe's rows in another order: its row r is row 7 - r of this one.
  std::unique_ptr<AlignedBytes> reversed() const {
    std::vector<std::byte> other(rows_.size());
    const size_t row = rows_.size() / 8;
    for (size_t r = 0; r < 8; ++r) {
      std::copy_n(rows_.begin() + static_cast<long>(row * r), row,
                  other.begin() + static_cast<long>(row * (7 - r)));
    }
    return whole_chunks(GetParam(), n_cols_, [&](std::byte* out) {
      quant::weave_rows(GetParam(), n_cols_, other.data(), out);
    });
  }

  template <Type type>
  void run_pair(const Inputs& in, int n_inputs) {
    const auto second = reversed();
    PerLane<float> acc[2][16] = {};  // by stripe and k
    for (int c = 0; c < shape_.n_chunks; ++c) {
      const size_t at = 8 * quant::row_bytes(GetParam(), int64_t{kChunk} * c);
      const uint8_t* const chunks[2] = {stripe_->data + at, second->data + at};
      dot_pair<type, PlainLoad>(
          chunks, c, blocks_of<type>(shape_, c), n_inputs, [&](int r) { return in.row(r); },
          [&](int k, int stripe, const PerLane<float>& sums) {
            EACH_LANE(lane) { acc[stripe][k][lane] = add_rn(acc[stripe][k][lane], sums[lane]); }
          });
    }
    EACH_LANE(lane) {
      for (const int k : {0, 1, 8, 9}) {
        const int r = k + 2 * (lane % 4), row_of_lane = lane / 4;
        if (r >= n_inputs) continue;
        expect_dot(in, row_of_lane, r, acc[0][k][lane]);
        expect_dot(in, 7 - row_of_lane, r, acc[1][k][lane]);
      }
    }
  }

  // Each chunk sum comes once, behind one call of before().
  template <Type type>
  void run_two(const Inputs& in, int n_inputs) {
    const auto second = reversed();
    std::vector<std::array<std::array<std::array<float, 8>, 4>, 2>> sums(
        static_cast<size_t>(shape_.n_chunks));
    int n_before = 0, n_taken = 0;
    for (int u = 0; u < shape_.n_units(); ++u) {
      const Unit one = unit(u);
      const TwoUnits two{{one.data, second->data + (one.data - stripe_->data)}, one.first, one.n};
      const TwoUnits late{{nullptr, nullptr}, one.first, one.n};
      const auto ready = [&](TwoUnits& units) { units = two; };
      const auto before = [&] { ++n_before; };
      const auto take = [&](int stripe, int chunk, int input, int lane, float sum) {
        ASSERT_EQ(u + 1, n_before);
        ASSERT_LT(input, n_inputs);
        sums[static_cast<size_t>(chunk)][static_cast<size_t>(stripe)][static_cast<size_t>(input)]
            [static_cast<size_t>(lane / 4)] = sum;
        ++n_taken;
      };
      const auto row = [&](int r) { return in.row(r); };
      if (n_inputs == 1) {
        dot_two<type, PlainLoad>(late, shape_, in.row(0), ready, before, take);
      } else if (n_inputs == 2) {
        dot_two<type, PlainLoad, 2>(late, shape_, n_inputs, row, ready, before, take);
      } else {
        dot_two<type, PlainLoad, 4>(late, shape_, n_inputs, row, ready, before, take);
      }
    }
    ASSERT_EQ(shape_.n_chunks * 2 * 8 * n_inputs, n_taken);
    for (int stripe = 0; stripe < 2; ++stripe) {
      for (int r = 0; r < n_inputs; ++r) {
        for (int row = 0; row < 8; ++row) {
          float sum = 0.0f;
          for (const auto& of : sums) {
            sum +=
                of[static_cast<size_t>(stripe)][static_cast<size_t>(r)][static_cast<size_t>(row)];
          }
          expect_dot(in, stripe == 0 ? row : 7 - row, r, sum);
        }
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
      run_one_input<type, kEarlyChunks<type>>(in, r);
    }
    for (const int first : {0, 5, 12}) {
      run_inputs<type, 1>(in, first);
      run_inputs<type, 1, ShortLoad>(in, first);
      run_inputs<type, 2>(in, first);
      run_inputs<type, 4>(in, first);
    }
    for (const int n : {1, 2, 3, 4, 5, 8, 11, 16}) run_pair<type>(in, n);
    if constexpr (takes_two<type>) {
      for (const int n : {1, 2, 3, 4}) run_two<type>(in, n);
    }
  }

  std::vector<std::byte> rows_;
  std::unique_ptr<AlignedBytes> stripe_, short_stripe_;
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
