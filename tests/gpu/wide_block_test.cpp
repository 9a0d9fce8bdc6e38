// Products by large tiles (wide_block.cu) against those by small ones (wide_gemm.cu), which other
// tests compare with the CPU: equal in every bit, for lists of tiles and for all rows of a matrix.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "backend/cuda/wide_experts.h"
#include "base/error.h"
#include "gpu/device.h"

namespace sluice::backend::cuda::test {
namespace {

constexpr Type kTypes[] = {Type::q4_k, Type::q5_k, Type::q6_k, Type::q8_0};

// Random int8 rows on the device; what is behind their columns is no number.
struct WideInputs {
  WideInputs(int n_rows, int n_cols, uint64_t seed) : on_device(n_rows, n_cols) {
    HostInt8 rows(n_rows, n_cols);
    std::ranges::fill(rows.d, std::nanf(""));
    std::ranges::fill(rows.y, std::nanf(""));
    for (int r = 0; r < n_rows; ++r) {
      rows.quantize(r, random_values(static_cast<size_t>(n_cols), seed + static_cast<uint64_t>(r)));
    }
    on_device.set(rows);
  }
  Int8Rows rows() const { return on_device.rows(); }

  DeviceInt8 on_device;
};

class WideBlockTest : public DeviceTest {
 protected:
  // The same product twice.
  template <typename Run>
  void compare(WideGemm p, const std::string& what, const Run& run) {
    p.height = wide_tile_height(p.type, how);
    const auto want = run(p, wide_gemm);
    p.height = wide_block_height(p.type, p.n_cols, how);
    if (p.height == 0) GTEST_SKIP() << "no large tiles on this card";
    const auto got = run(p, wide_block);
    ASSERT_EQ(want.size(), got.size());
    size_t n = 0, first = 0;
    for (size_t i = want.size(); i-- > 0;) {
      if (std::memcmp(&want[i], &got[i], sizeof want[i]) != 0) ++n, first = i;
    }
    EXPECT_EQ(n, 0u) << what << ": of " << want.size() << " values; the first is " << first
                     << ", expected " << +want[first] << ", got " << +got[first];
  }
};

TEST_F(WideBlockTest, AllRowsOfMatricesSideBySide) {
  for (const Type type : kTypes) {
    const int n_cols = type == Type::q8_0 ? 448 : 768;
    const Weight a(type, n_cols, 152, 1), b(type, n_cols, 64, 2), c(type, n_cols, 72, 3);
    const Device<float> bias(random_values(152, 4)), other(random_values(72, 5));
    for (const int n_rows : {1, 17, 48, 65, 96, 128, 129, 300, 2100}) {
      const WideInputs in(n_rows, n_cols, 7);
      WideGemm p;
      p.type = type;
      p.n_cols = n_cols;
      p.n_out = 152;
      p.weights[0] = a.data();
      p.bias = bias.data();
      p.in = in.rows();
      p.rows.n_rows = n_rows;
      p.out_stride = 300;
      p.adds = n_rows % 2 == 1;
      p.more[0] = {b.data(), nullptr, 64};
      p.more[1] = {c.data(), other.data(), 72};
      p.n_more = 2;
      compare(p, cat(quant::type_name(type), ", ", n_rows, " rows"),
              [&](WideGemm q, auto multiply) {
                const Device<float> out(random_values(static_cast<size_t>(n_rows) * 300, 6));
                q.out = out.data();
                multiply(q, how);
                return out.get();
              });
    }
  }
}

// Experts with 0, 1, 2, .. of the pairs each, gate and up, then down.
class WideBlockExpertsTest : public WideBlockTest {
 protected:
  static constexpr int kExperts = 19, kUsed = 2;

  struct Pairs {
    explicit Pairs(int n_rows_) : n_rows(n_rows_) {
      const int n_slots = n_rows * kUsed;
      int at = 0;
      for (int e = 0; e < kExperts; ++e) {
        first.push_back(at);
        const int n = e == kExperts - 1 ? n_slots - at : std::min(n_slots - at, e * e + e % 3);
        at += n;
      }
      first.push_back(n_slots);
      // Slots in an order that is not theirs.
      for (int i = 0; i < n_slots; ++i) slots.push_back((i * 7 + 3) % n_slots);
    }
    int n_rows;
    std::vector<int32_t> first, slots;
  };

  template <typename Run>
  void with_tiles(WideGemm p, const Pairs& pairs, const std::vector<const uint8_t*>& table,
                  int slots_per_row, const Run& run) {
    const int n_slots = pairs.n_rows * kUsed, most = most_tiles(n_slots, kExperts, p.height);
    const Device<int32_t> first(pairs.first), slots(pairs.slots), n_tiles(1);
    const Device<const uint8_t*> experts(table);
    const Device<WideTile> tiles(static_cast<size_t>(most));
    cut_tiles({first.data(), experts.data(), kExperts, p.height, tiles.data(), n_tiles.data()},
              how);
    p.rows = {tiles.data(), n_tiles.data(), most, slots.data(), slots_per_row};
    run(p);
  }
};

TEST_F(WideBlockExpertsTest, GateAndUpOfAnyNumberOfPairs) {
  for (const Type type : kTypes) {
    const int n_cols = type == Type::q8_0 ? 320 : 512, n_out = 160;
    // n_rows * kUsed is no multiple of 7, so that all slots are there.
    for (const int n_rows : {20, 400, 1100}) {
      const Pairs pairs(n_rows);
      const Weight gate_up(type, n_cols, 2 * n_out, 11);
      std::vector<const uint8_t*> table(kExperts, gate_up.data());
      table[5] = nullptr;  // of this one nothing is computed
      const WideInputs in(n_rows, n_cols, 12);
      WideGemm p;
      p.type = type;
      p.n_cols = n_cols;
      p.n_out = n_out;
      p.weights_at[1] = static_cast<int64_t>(n_out * quant::row_bytes(type, n_cols));
      p.in = in.rows();
      const auto run = [&](WideGemm q, auto multiply) {
        const DeviceInt8 h(n_rows * kUsed, n_out);
        with_tiles(q, pairs, table, kUsed, [&](WideGemm of) {
          of.h = h.rows();
          multiply(of, how);
        });
        std::vector<int> all;
        for (const int8_t v : h.q.get()) all.push_back(v);
        for (const float v : h.d.get()) all.push_back(std::bit_cast<int>(v));
        for (const float v : h.y.get()) all.push_back(std::bit_cast<int>(v));
        return all;
      };
      compare(p, cat(quant::type_name(type), ", ", n_rows, " rows"), run);
    }
  }
}

TEST_F(WideBlockExpertsTest, DownOfAnyNumberOfPairs) {
  for (const Type type : kTypes) {
    const int n_cols = type == Type::q8_0 ? 64 : 256, n_out = 264;
    for (const int n_rows : {20, 400, 1100}) {
      const Pairs pairs(n_rows);
      const Weight down(type, n_cols, n_out, 21);
      const std::vector<const uint8_t*> table(kExperts, down.data());
      const WideInputs in(n_rows * kUsed, n_cols, 22);
      WideGemm p;
      p.type = type;
      p.n_cols = n_cols;
      p.n_out = n_out;
      p.in = in.rows();
      p.out_stride = n_out;
      compare(p, cat(quant::type_name(type), ", ", n_rows, " rows"),
              [&](WideGemm q, auto multiply) {
                const Device<float> out(static_cast<size_t>(n_rows * kUsed * n_out));
                with_tiles(q, pairs, table, 1, [&](WideGemm of) {
                  of.out = out.data();
                  multiply(of, how);
                });
                return out.get();
              });
    }
  }
}

}  // namespace
}  // namespace sluice::backend::cuda::test
