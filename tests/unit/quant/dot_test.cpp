// Part B of the contract for the quantised types: against a re-implementation in its most literal
// form (from the contract's text and the spec's index formulas), and against float64.
// SPDX-License-Identifier: Apache-2.0
#include "quant/dot.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "unit/quant/spec_walk.h"

namespace sluice::quant {
namespace {

struct Activations {
  std::vector<float> x, d, y;
  std::vector<int8_t> q;
  ActivationView view() const { return {q.data(), d.data(), y.data()}; }
};

Activations random_activations(int64_t n, uint64_t seed) {
  const auto count = static_cast<size_t>(n);
  Activations a;
  a.x.resize(count), a.q.resize(count), a.d.resize(count / 32), a.y.resize(count / 32);
  for (size_t i = 0; i < count; ++i) {
    // A different size in each block, so that mixing up blocks shows.
    a.x[i] = random_signed(random_bits(seed, i)) * (1.0f + static_cast<float>(i / 32 % 7));
  }
  quantize_activation(a.x, a.q.data(), a.d.data(), a.y.data());
  return a;
}

bool is_super(Type type) { return type_info(type).block_elems == 256; }

std::vector<int64_t> lengths(Type type) {
  if (is_super(type)) return {256, 512, 768, 2048};
  return {32, 64, 96, 160, 256, 288, 512, 768, 2048};
}

// The contract, read aloud. `groups`: scale groups per block of 32.
float literal_dot(Type type, const std::byte* row, int64_t n, const Activations& a) {
  const int groups = type == Type::q2_k || type == Type::q3_k || type == Type::q6_k ? 2 : 1;
  float acc = 0.0f;
  for (int64_t chunk = 0; chunk < n; chunk += 256) {
    float P = 0.0f, N = 0.0f;
    for (int64_t block = chunk; block < std::min(chunk + 256, n); block += 32) {
      const float d_b = a.d[static_cast<size_t>(block / 32)];
      const float y_b = a.y[static_cast<size_t>(block / 32)];
      int64_t I = 0, i_min = 0;
      SpecElement e;
      for (int g = 0; g < groups; ++g) {
        int64_t sum_wq = 0, sum_q = 0;
        for (int64_t k = block + g * 32 / groups; k < block + (g + 1) * 32 / groups; ++k) {
          e = spec_element(type, row, k);
          sum_wq += e.w * a.q[static_cast<size_t>(k)];
          sum_q += a.q[static_cast<size_t>(k)];
        }
        I += e.s * sum_wq;
        i_min += e.m * sum_q;
      }
      EXPECT_LT(std::abs(I), 1 << 24) << type_name(type);
      EXPECT_LT(std::abs(i_min), 1 << 24) << type_name(type);
      if (is_super(type)) {
        P = std::fma(d_b, static_cast<float>(I), P);
        if (type == Type::q4_k || type == Type::q5_k) N = std::fma(static_cast<float>(e.m), y_b, N);
        if (type == Type::q2_k) N = std::fma(d_b, static_cast<float>(i_min), N);
      } else {
        const float s = d_b * static_cast<float>(e.d);
        P = std::fma(s, static_cast<float>(I), P);
        if (spec_adds_min(type)) N = std::fma(static_cast<float>(e.dmin), y_b, N);
      }
    }
    const SpecElement e = spec_element(type, row, chunk);
    const auto d_i = static_cast<float>(e.d), dmin_i = static_cast<float>(e.dmin);
    float C = P;
    if (type == Type::q6_k || type == Type::iq4_xs || type == Type::q3_k) C = d_i * P;
    if (type == Type::q4_k || type == Type::q5_k || type == Type::q2_k) {
      const float scaled_min = dmin_i * N;
      C = std::fma(d_i, P, -scaled_min);
    }
    if (spec_adds_min(type)) C = P + N;
    acc = acc + C;
  }
  return acc;
}

TEST(Dot, EqualsTheLiteralContractBitForBit) {
  for (const Type type : quantised_types()) {
    for (const int64_t n : lengths(type)) {
      for (uint64_t seed = 0; seed < 8; ++seed) {
        const std::vector<std::byte> row = random_bytes_row(type, n, 100 + seed);
        const Activations a = random_activations(n, 200 + seed);
        const float expected = literal_dot(type, row.data(), n, a);
        const float got = dot(type, row.data(), n, a.view());
        ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected))
            << type_name(type) << " n " << n << " seed " << seed << " expected " << expected
            << " got " << got;
      }
    }
  }
}

// Against the exact sum of d_b q_i w_i in float64. The roundings on the way of one term: s (1), the
// chain P or N (at most 8), y (1), dmin*N and the fma of C (2), one per chunk in acc. Each adds at
// most 2^-24 of the sum of magnitudes of the block terms.
TEST(Dot, IsAsNearToFloat64AsItsRoundingsAllow) {
  for (const Type type : quantised_types()) {
    for (const int64_t n : lengths(type)) {
      const std::vector<std::byte> row = random_bytes_row(type, n, 31);
      const Activations a = random_activations(n, 32);
      double exact = 0, magnitude = 0;
      for (int64_t block = 0; block < n; block += 32) {
        double weighted = 0, minima = 0;
        for (int64_t k = block; k < block + 32; ++k) {
          const SpecElement e = spec_element(type, row.data(), k);
          const double x = static_cast<double>(a.d[static_cast<size_t>(block / 32)]) *
                           a.q[static_cast<size_t>(k)];
          weighted += e.d * e.s * e.w * x;
          minima += (spec_adds_min(type) ? e.dmin : -e.dmin * e.m) * x;
        }
        exact += weighted + minima;
        magnitude += std::abs(weighted) + std::abs(minima);
      }
      const int64_t n_chunks = (n + 255) / 256;
      const double bound = 1.001 * static_cast<double>(12 + n_chunks) * 0x1p-24 * magnitude;
      const float got = dot(type, row.data(), n, a.view());
      EXPECT_LE(std::abs(got - exact), bound)
          << type_name(type) << " n " << n << " expected " << exact << " got " << got;
      EXPECT_LT(bound, 1e-5 * magnitude);
    }
  }
}

TEST(Dot, SurvivesTheLargestIntegersOfEveryType) {
  // Every weight at its largest negative value, every activation at -127 or 127.
  struct Extreme {
    Type type;
    uint8_t fill;     // of the quants and scales
    int64_t largest;  // of one block
  };
  for (const Extreme& c :
       {Extreme{Type::q8_0, 0x80, 32 * 128 * 127}, Extreme{Type::q4_0, 0x00, 32 * 8 * 127},
        Extreme{Type::q5_0, 0x00, 32 * 16 * 127}, Extreme{Type::iq4_nl, 0x00, 32 * 127 * 127},
        Extreme{Type::mxfp4, 0xff, 32 * 12 * 127}, Extreme{Type::q3_k, 0x00, -32 * 4 * 127 * 32},
        Extreme{Type::iq4_xs, 0x00, -32 * 32 * 127 * 127},
        Extreme{Type::q4_1, 0xff, -32 * 15 * 127}, Extreme{Type::q5_1, 0xff, -32 * 31 * 127},
        Extreme{Type::q4_k, 0xff, -63 * 32 * 15 * 127},
        Extreme{Type::q5_k, 0xff, -63 * 32 * 31 * 127},
        Extreme{Type::q2_k, 0xff, -15 * 32 * 3 * 127}}) {
    const int64_t n = type_info(c.type).block_elems;
    std::vector<std::byte> row(row_bytes(c.type, n), static_cast<std::byte>(c.fill));
    const HalfFields fields = spec_half_fields(c.type);
    const auto set_half = [&](int at, int bits) {
      if (at < 0) return;
      row[static_cast<size_t>(at)] = static_cast<std::byte>(bits & 255);
      row[static_cast<size_t>(at) + 1] = static_cast<std::byte>(bits >> 8);
    };
    set_half(fields.first, 0x3c00);  // d = 1
    set_half(fields.second, 0);      // no minimum
    if (c.type == Type::mxfp4) row[0] = std::byte{128};
    Activations a = random_activations(n, 1);
    for (int8_t& q : a.q) q = -127;
    for (float& d : a.d) d = 1.0f;
    const int64_t n_blocks = n / 32;
    const auto expected = static_cast<float>(c.largest * n_blocks);
    EXPECT_EQ(dot(c.type, row.data(), n, a.view()), expected) << type_name(c.type);
  }
  // Q6_K: w = -32 with scale -128; the bound nearest to 2^24.
  std::vector<std::byte> row(210, std::byte{0});
  for (size_t g = 192; g < 208; ++g) row[g] = std::byte{0x80};
  row[209] = std::byte{0x3c};
  Activations a = random_activations(256, 1);
  for (int8_t& q : a.q) q = 127;
  for (float& d : a.d) d = 1.0f;
  EXPECT_EQ(dot(Type::q6_k, row.data(), 256, a.view()), 8.0f * 16646144.0f);
}

TEST(Dot, ManyRowsAtOnceEqualOneAtATimeBitForBit) {
  for (const Type type : quantised_types()) {
    for (const int64_t n : lengths(type)) {
      const std::vector<std::byte> row = random_bytes_row(type, n, 41);
      for (const int n_rows : {1, 2, 3, 7, 16}) {
        std::vector<Activations> a;
        std::vector<ActivationView> views;
        a.reserve(static_cast<size_t>(n_rows));
        views.reserve(static_cast<size_t>(n_rows));
        for (int r = 0; r < n_rows; ++r) {
          a.push_back(random_activations(n, 50 + static_cast<uint64_t>(r)));
          views.push_back(a.back().view());
        }
        std::vector<float> out(static_cast<size_t>(n_rows) + 1, -5.0f);
        dot_rows(type, row.data(), n, views.data(), n_rows, out.data());
        for (size_t r = 0; r < a.size(); ++r) {
          const float expected = dot(type, row.data(), n, views[r]);
          ASSERT_EQ(std::bit_cast<uint32_t>(out[r]), std::bit_cast<uint32_t>(expected))
              << type_name(type) << " n " << n << " row " << r << " of " << n_rows << " expected "
              << expected << " got " << out[r];
        }
        ASSERT_EQ(out.back(), -5.0f) << type_name(type) << ": wrote past the end";
      }
    }
  }
}

TEST(Dot, RowsMayStartAtAnyAddress) {
  for (const Type type : quantised_types()) {
    const std::vector<std::byte> row = random_bytes_row(type, 512, 61);
    const Activations a = random_activations(512, 62);
    std::vector<std::byte> shifted(row.size() + 1);
    std::copy(row.begin(), row.end(), shifted.begin() + 1);
    EXPECT_EQ(dot(type, row.data(), 512, a.view()), dot(type, shifted.data() + 1, 512, a.view()))
        << type_name(type);
  }
}

TEST(Dot, AnEmptyRowAndZeroActivationsGivePositiveZero) {
  for (const Type type : quantised_types()) {
    const std::vector<std::byte> row = random_bytes_row(type, 256, 71);
    Activations a = random_activations(256, 72);
    EXPECT_EQ(std::bit_cast<uint32_t>(dot(type, row.data(), 0, a.view())), 0u) << type_name(type);
    std::fill(a.x.begin(), a.x.end(), 0.0f);
    quantize_activation(a.x, a.q.data(), a.d.data(), a.y.data());
    EXPECT_EQ(std::bit_cast<uint32_t>(dot(type, row.data(), 256, a.view())), 0u) << type_name(type);
  }
}

}  // namespace
}  // namespace sluice::quant
