// Part D of the contract: the order in which expert outputs are added.
// SPDX-License-Identifier: Apache-2.0
#include "quant/combine.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace sluice::quant {
namespace {

struct Case {
  std::vector<float> weights, rows, shared, x;
  int64_t stride;
};

Case random_case(int n_experts, int n, int64_t stride) {
  Case c;
  c.stride = stride;
  c.rows.resize(static_cast<size_t>(stride * n_experts), NAN);  // NaN between the rows
  for (int k = 0; k < n_experts; ++k) {
    c.weights.push_back(
        0.1f + 0.2f * static_cast<float>(random_bits(1, static_cast<uint64_t>(k)) % 100) / 99.0f);
    for (int i = 0; i < n; ++i) {
      const uint64_t index = static_cast<uint64_t>(k) * 10000 + static_cast<uint64_t>(i);
      c.rows[static_cast<size_t>(k * stride + i)] = random_signed(random_bits(2, index));
    }
  }
  for (int i = 0; i < n; ++i) {
    c.shared.push_back(random_signed(random_bits(3, static_cast<uint64_t>(i))));
    c.x.push_back(random_signed(random_bits(4, static_cast<uint64_t>(i))));
  }
  return c;
}

enum class Order { contract, reversed, shared_first, residual_first, unfused };

float literal(const Case& c, size_t i, bool has_shared, float shared_weight, Order order) {
  std::vector<size_t> ranks;
  for (size_t k = 0; k < c.weights.size(); ++k) ranks.push_back(k);
  if (order == Order::reversed) ranks.assign(ranks.rbegin(), ranks.rend());
  const auto o = [&](size_t k) { return c.rows[k * static_cast<size_t>(c.stride) + i]; };
  float v = c.weights[ranks[0]] * o(ranks[0]);
  if (order == Order::residual_first) v = std::fma(c.weights[0], o(0), c.x[i]);
  if (order == Order::shared_first) v = std::fma(c.weights[0], o(0), shared_weight * c.shared[i]);
  for (size_t r = 1; r < ranks.size(); ++r) {
    const float product = c.weights[ranks[r]] * o(ranks[r]);
    v = order == Order::unfused ? v + product : std::fma(c.weights[ranks[r]], o(ranks[r]), v);
  }
  if (has_shared && order != Order::shared_first) v = std::fma(shared_weight, c.shared[i], v);
  return order == Order::residual_first ? v : c.x[i] + v;
}

TEST(Combine, AddsByRankThenSharedThenResidual) {
  for (const int n_experts : {1, 2, 4, 8, 10}) {
    for (const int n : {1, 31, 256, 257, 600}) {
      for (const bool has_shared : {false, true}) {
        const Case c = random_case(n_experts, n, n + 3);
        std::vector<float> got = c.x;
        combine(c.weights, c.rows.data(), c.stride, has_shared ? c.shared.data() : nullptr, 0.7f,
                got);
        for (size_t i = 0; i < got.size(); ++i) {
          const float expected = literal(c, i, has_shared, 0.7f, Order::contract);
          ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected))
              << n_experts << " experts, element " << i << " of " << n << ", shared " << has_shared
              << " expected " << expected << " got " << got[i];
        }
      }
    }
  }
}

TEST(Combine, EveryOtherOrderGivesOtherBits) {
  const Case c = random_case(8, 600, 600);
  std::vector<float> got = c.x;
  combine(c.weights, c.rows.data(), c.stride, c.shared.data(), 0.7f, got);
  for (const Order order :
       {Order::reversed, Order::shared_first, Order::residual_first, Order::unfused}) {
    int n_different = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      n_different += got[i] != literal(c, i, true, 0.7f, order);
    }
    EXPECT_GT(n_different, 30) << "order " << static_cast<int>(order);
  }
}

}  // namespace
}  // namespace sluice::quant
