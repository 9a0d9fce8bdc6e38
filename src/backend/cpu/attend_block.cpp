// See attend_block.h. Three queries by four keys (or four registers of a value) are twelve sums at
// once: enough to hide the latency of fma, few enough for the 16 registers of AVX2, and 7 loads for
// 12 fma.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/attend_block.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/cpu/attend_lanes.h"
#include "backend/cpu/attend_wide.h"
#include "base/check.h"
#include "quant/swiglu.h"

namespace sluice::backend::cpu {
namespace {

constexpr int kQueries = 3;
constexpr int kKeys = kKeysAtOnce;
constexpr int kRegisters = 4;  // of a value
constexpr int kColumns = 8 * kRegisters;

int n_runs(int n_queries) {
  const int n_wide = attends_wide() ? n_queries / kWideQueries : 0;
  return n_wide + (n_queries - n_wide * kWideQueries + kQueries - 1) / kQueries;
}

// Calls body<n>(first) for n_queries queries in runs of kWideQueries where that can be, then of
// kQueries, and of 2 and 1 at the end.
template <typename Body>
void for_runs(int n_queries, Body&& body) {
  int q = 0;
  if (attends_wide()) {
    for (; q + kWideQueries <= n_queries; q += kWideQueries) {
      body.template operator()<kWideQueries>(q);
    }
  }
  for (; q + kQueries <= n_queries; q += kQueries) body.template operator()<kQueries>(q);
  if (n_queries - q == 2) body.template operator()<2>(q);
  if (n_queries - q == 1) body.template operator()<1>(q);
}

template <typename Body>
void for_type(quant::Type type, Body&& body) {
  switch (type) {
    case quant::Type::f32:
      return body.template operator()<quant::Type::f32>();
    case quant::Type::f16:
      return body.template operator()<quant::Type::f16>();
    case quant::Type::bf16:
      return body.template operator()<quant::Type::bf16>();
    default:
      check_failed("a float type", __FILE__, __LINE__);
  }
}

// Not inlined, or GCC 12 keeps so much of the caller in registers that sums are spilled.
template <int n, quant::Type type>
[[gnu::noinline]] void dots(const float* queries, const std::byte* keys, int64_t key_bytes,
                            int head_dim, float* scores) {
  const int stride = row_stride(head_dim);
  Float8 chains[n][kKeys];
  for (int i = 0; i < head_dim; i += 8) {
    Float8 query[n];
    for (int q = 0; q < n; ++q) query[q] = load(queries + q * stride + i);
    for (int k = 0; k < kKeys; ++k) {
      const Float8 key = quant::load_8_floats<type>(keys + k * key_bytes, i);
      for (int q = 0; q < n; ++q) chains[q][k] = fma(query[q], key, chains[q][k]);
    }
  }
  [&]<size_t... q>(std::index_sequence<q...>) {  // a loop here would put the chains into memory
    (store_sums(chains[q][0], chains[q][1], chains[q][2], chains[q][3],
                scores + q * kBlockPositions),
     ...);
  }
  (std::make_index_sequence<n>());
}

// o[q] = o[q] * factors[q] + sum_{t < n_values} weights[q][t] values[t], 32 columns.
template <int n, quant::Type type>
void weigh(const float* weights, const float* factors, const std::byte* values, int64_t value_bytes,
           int n_values, int stride, float* o) {
  Float8 sums[n][kRegisters];
  for (int q = 0; q < n; ++q) {
    for (int r = 0; r < kRegisters; ++r) {
      sums[q][r] = product(load(o + q * stride + 8 * r), in_all_lanes(factors[q]));
    }
  }
  for (int t = 0; t < n_values; ++t) {
    Float8 weight[n];
    for (int q = 0; q < n; ++q) weight[q] = in_all_lanes(weights[q * kBlockPositions + t]);
    for (int r = 0; r < kRegisters; ++r) {
      const Float8 value = quant::load_8_floats<type>(values + t * value_bytes, 8 * r);
      for (int q = 0; q < n; ++q) sums[q][r] = fma(weight[q], value, sums[q][r]);
    }
  }
  for (int q = 0; q < n; ++q) {
    for (int r = 0; r < kRegisters; ++r) store(sums[q][r], o + q * stride + 8 * r);
  }
}

// Queries of different rows see different numbers of positions: what all of a run see is weighed
// together, the rest one by one, which continues the same chain.
template <int n, quant::Type type>
void weigh_run(const Weighed& by, int q, const FloatRows& values, int begin, int column, int stride,
               float* o) {
  constexpr int64_t kItemBytes = type == quant::Type::f32 ? 4 : 2;
  const std::byte* data = values.data + column * kItemBytes;
  const auto n_values = [&](int i) { return std::clamp(by.n_seen[i] - begin, 0, values.n); };
  int together = n_values(q);
  for (int i = 1; i < n; ++i) together = std::min(together, n_values(q + i));
  const float* const weights = by.weights + q * kBlockPositions + begin;
  float* const sums = o + q * stride + column;
  if constexpr (n == kWideQueries) {
    wide_weigh({weights, kBlockPositions, by.factors + q, together}, {type, data, values.row_bytes},
               sums, stride);
  } else {
    weigh<n, type>(weights, by.factors + q, data, values.row_bytes, together, stride, sums);
  }
  for (int i = q; i < q + n; ++i) {
    if (n_values(i) == together) continue;
    constexpr float kAsItIs = 1.0f;
    weigh<1, type>(by.weights + i * kBlockPositions + begin + together, &kAsItIs,
                   data + together * values.row_bytes, values.row_bytes, n_values(i) - together,
                   stride, o + i * stride + column);
  }
}

}  // namespace

int n_score_turns(int n_queries, int n_keys) {
  return n_runs(n_queries) * ((n_keys + kKeys - 1) / kKeys);
}

int n_weigh_turns(int n_queries, int head_dim) {
  return n_runs(n_queries) * ((head_dim + kColumns - 1) / kColumns);
}

void score_block(const float* queries, int n_queries, const FloatRows& keys, int head_dim,
                 float* scores, Ahead ahead) {
  for_type(keys.type, [&]<quant::Type type>() {
    for_runs(n_queries, [&]<int n>(int q) {
      for (int t = 0; t < keys.n; t += kKeys) {
        ahead.turn();
        const float* const some = queries + q * row_stride(head_dim);
        const std::byte* const four = keys.data + t * keys.row_bytes;
        float* const out = scores + q * kBlockPositions + t;
        if constexpr (n == kWideQueries) {
          wide_dots(some, row_stride(head_dim), {type, four, keys.row_bytes}, head_dim, out,
                    kBlockPositions);
        } else {
          dots<n, type>(some, four, keys.row_bytes, head_dim, out);
        }
      }
    });
  });
}

float soften_block(float* scores, int n, float scale, float& m, float& l) {
  const int n_padded = (n + 7) / 8 * 8;
  std::fill(scores + n, scores + n_padded, -INFINITY);
  Float8 peaks = in_all_lanes(m);
  for (int t = 0; t < n_padded; t += 8) {
    const Float8 scaled = product(load(scores + t), in_all_lanes(scale));
    store(scaled, scores + t);
    peaks = larger(scaled, peaks);
  }
  float peak[8];
  store(peaks, peak);
  const float new_m = *std::ranges::max_element(peak);
  for (int t = 0; t < n_padded; ++t) scores[t] = quant::contract_exp(scores[t] - new_m);
  std::fill(scores + n, scores + n_padded, 0.0f);
  Float8 chains;
  for (int t = 0; t < n_padded; t += 8) chains = sum(chains, load(scores + t));
  float chain[8];
  store(chains, chain);
  const float factor = quant::contract_exp(m - new_m);
  l = std::fma(l, factor, quant::sum_of_chains(chain));
  m = new_m;
  return factor;
}

void weigh_block(const Weighed& by, const FloatRows& values, int begin, int head_dim, float* o,
                 Ahead ahead) {
  for_type(values.type, [&]<quant::Type type>() {
    for (int column = 0; column < head_dim; column += kColumns) {
      for_runs(by.n_queries, [&]<int n>(int q) {
        ahead.turn();
        weigh_run<n, type>(by, q, values, begin, column, row_stride(head_dim), o);
      });
    }
  });
}

}  // namespace sluice::backend::cpu
