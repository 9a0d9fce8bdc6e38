// Ops::attend against the arithmetic of backend/cpu/attend_tile.h written out one number at a time,
// bit for bit: every cache type and head width, over several blocks and spans, and in every
// division into tiles and parts that pages, steps and threads lead to.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "quant/decode.h"
#include "quant/dot.h"
#include "quant/float8.h"
#include "quant/swiglu.h"
#include "unit/backend/attention.h"
#include "unit/backend/expect.h"

namespace sluice::backend::test {
namespace {

using quant::contract_exp;
using quant::Type;

constexpr int kBlock = 64, kSpan = 1024;

struct Softmax {
  float m = -INFINITY, l = 0;
  std::vector<float> o;
};

// Keys and values of one kv head, by position.
struct History {
  std::vector<std::vector<float>> keys, values;
};

// Positions [begin, end), all of one block.
void take_block(std::span<const float> q, const History& seen, size_t begin, size_t end,
                Softmax& state) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(q.size()));
  std::vector<float> weights;
  float m = state.m;
  for (size_t t = begin; t < end; ++t) {
    const auto n = static_cast<int64_t>(q.size());
    weights.push_back(quant::dot_f32(q.data(), seen.keys[t].data(), n) * scale);
    m = std::max(m, weights.back());
  }
  float chain[8] = {};
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = contract_exp(weights[i] - m);
    chain[i % 8] += weights[i];
  }
  const float factor = contract_exp(state.m - m);
  state.l = std::fma(state.l, factor, quant::sum_of_chains(chain));
  for (size_t i = 0; i < q.size(); ++i) {
    state.o[i] *= factor;
    for (size_t t = begin; t < end; ++t) {
      state.o[i] = std::fma(weights[t - begin], seen.values[t][i], state.o[i]);
    }
  }
  state.m = m;
}

std::vector<float> attend_one(std::span<const float> q, const History& seen, size_t n) {
  Softmax all;
  for (size_t span = 0; span < n; span += kSpan) {
    Softmax part{.o = std::vector<float>(q.size(), 0.0f)};
    for (size_t t = span; t < std::min(n, span + kSpan); t += kBlock) {
      take_block(q, seen, t, std::min(n, t + kBlock), part);
    }
    if (span == 0) {
      all = part;
      continue;
    }
    const float m = std::max(all.m, part.m);
    const float left = contract_exp(all.m - m), right = contract_exp(part.m - m);
    all.m = m;
    all.l = std::fma(all.l, left, part.l * right);
    for (size_t i = 0; i < q.size(); ++i) all.o[i] = std::fma(all.o[i], left, part.o[i] * right);
  }
  for (float& o : all.o) o /= all.l;
  return all.o;
}

// kv_rotation.h's order of sums: both halves first, then one with the other.
void add_halves(std::span<float> x) {
  const size_t half = x.size() / 2;
  if (half == 0) return;
  add_halves(x.first(half));
  add_halves(x.last(half));
  for (size_t i = 0; i < half; ++i) {
    const float a = x[i], b = x[i + half];
    x[i] = a + b;
    x[i + half] = a - b;
  }
}

// What a query becomes where keys are of 4 bits; heads here are of one block of 32, whose signs are
// the lower half of the first word.
std::vector<float> rotated(std::span<const float> q) {
  EXPECT_EQ(q.size(), 32u);
  std::vector<float> out(q.begin(), q.end());
  for (size_t i = 0; i < 32; ++i) out[i] = (0x85a308d3u >> i & 1) != 0 ? -out[i] : out[i];
  add_halves(out);
  for (float& x : out) x *= 1.0f / std::sqrt(32.0f);
  return out;
}

// Without norms and turns, so that q is what was given.
AttentionShape plain(int n_heads, int n_kv_heads, int head_dim, Type k, Type v) {
  return {.n_heads = n_heads,
          .n_kv_heads = n_kv_heads,
          .head_dim = head_dim,
          .n_rot = 0,
          .k_type = k,
          .v_type = v};
}

History history_of(const Cache& cache, const AttentionShape& s, int n_positions, int kv_head) {
  History out;
  const auto decoded = [&](Type type, std::span<const std::byte> entry) {
    std::vector<float> row(static_cast<size_t>(s.head_dim));
    quant::decode_row(type, entry.data(), row);
    return row;
  };
  for (int p = 0; p < n_positions; ++p) {
    out.keys.push_back(decoded(s.k_type, cache.key(0, p, kv_head)));
    out.values.push_back(decoded(s.v_type, cache.value(0, p, kv_head)));
  }
  return out;
}

struct Division {
  int page_tokens;
  int n_threads;
  std::vector<int> steps;  // rows at a time; the last repeats
};

std::string describe(const Division& d) {
  return " pages of " + std::to_string(d.page_tokens) + " threads " + std::to_string(d.n_threads) +
         " steps of " + std::to_string(d.steps.front()) + ".." + std::to_string(d.steps.back());
}

// Runs the sequence, then compares the given rows with the definition.
void check(const AttentionShape& shape, const Rows& qkv, const Division& d,
           std::span<const int> rows) {
  const Attention attention(shape);
  ThreadPool pool(d.n_threads);
  const auto ops = make_cpu_ops(pool);
  const int n = static_cast<int>(qkv.n_rows);
  Cache cache(attention, 1, n, d.page_tokens, 3);
  std::vector<Rows> outs = {Rows(n, attention.view.q_cols())};
  size_t i = 0;
  for (int p = 0, end = 0; p < n; p = end) {
    end = std::min(n, p + d.steps[std::min(i++, d.steps.size() - 1)]);
    run_step(*ops, attention, cache, {&qkv, 1}, span_of(0, p, end), outs);
  }
  const auto dim = static_cast<size_t>(shape.head_dim);
  const int group = shape.n_heads / shape.n_kv_heads;
  for (int kv = 0; kv < shape.n_kv_heads; ++kv) {
    const History history = history_of(cache, shape, n, kv);
    for (const int row : rows) {
      for (int h = kv * group; h < (kv + 1) * group; ++h) {
        const size_t at = static_cast<size_t>(h) * dim;
        const auto given = qkv.row(row).subspan(at, dim);
        const std::vector<float> q =
            shape.k_type == Type::q4_0 ? rotated(given) : std::vector(given.begin(), given.end());
        expect_same_bits(attend_one(q, history, static_cast<size_t>(row) + 1),
                         outs[0].row(row).subspan(at, dim),
                         describe(shape) + describe(d) + " row " + std::to_string(row) + " head " +
                             std::to_string(h));
      }
    }
  }
}

Rows random_qkv(const AttentionShape& s, int n, uint64_t seed, float size = 1.0f) {
  return Rows::random(n, int64_t{s.n_heads + 2 * s.n_kv_heads} * s.head_dim, seed, size);
}

TEST(AttendBits, EveryRowIsTheDefinitionForEveryCacheType) {
  std::vector<int> rows(150);
  for (int r = 0; r < 150; ++r) rows[static_cast<size_t>(r)] = r;
  for (const Type type : {Type::f32, Type::f16, Type::bf16, Type::q8_0, Type::q4_0}) {
    const AttentionShape shape = plain(4, 2, 32, type, type);
    const Rows qkv = random_qkv(shape, 150, 5);
    check(shape, qkv, {64, 1, {150}}, rows);
    check(shape, qkv, {64, 2, {1}}, rows);
    check(shape, qkv, {7, 5, {60, 11, 1, 1, 30}}, rows);
  }
}

TEST(AttendBits, EveryHeadWidthAndGroupIsTheDefinition) {
  const int rows[] = {0, 1, 8, 31, 62, 63, 64, 65, 127, 128, 129};
  for (const int dim : {2, 6, 40, 64, 80, 96, 112, 128, 256}) {
    for (const auto& [n_heads, n_kv_heads] : {std::pair(1, 1), {3, 3}, {8, 1}, {14, 2}, {10, 2}}) {
      const AttentionShape shape = plain(n_heads, n_kv_heads, dim, Type::f16, Type::f16);
      const Rows qkv = random_qkv(shape, 130, 6);
      check(shape, qkv, {64, 1, {130}}, rows);
      check(shape, qkv, {32, 3, {100, 20, 7, 1}}, rows);
    }
  }
}

// One thread takes the spans of a tile in turn; with more threads than tiles they are apart.
TEST(AttendBits, SpansAreMergedTheSameWayWhoeverTakesThem) {
  const int rows[] = {0, 1000, 1023, 1024, 1025, 1100, 2047, 2048, 2110, 2113, 2114};
  for (const auto& [k, v] : {std::pair(Type::f32, Type::f32), {Type::q8_0, Type::f16}}) {
    const AttentionShape shape = plain(4, 2, 32, k, v);
    const Rows qkv = random_qkv(shape, 2115, 7);
    check(shape, qkv, {64, 1, {2115}}, rows);
    check(shape, qkv, {64, 5, {2112, 1}}, rows);
    check(shape, qkv, {256, 2, {1020, 10, 1080, 3, 1}}, rows);
    check(shape, qkv, {100, 1, {1000, 1110, 2}}, rows);
  }
}

// Scores of up to 1e30, both signs: whoever is largest takes all, and nothing overflows.
TEST(AttendBits, ExtremeScoresNeitherOverflowNorVanish) {
  const int rows[] = {0, 3, 64, 100, 199, 1030, 1099};
  for (const float size : {1e-20f, 1e3f, 1e7f, 1e14f}) {
    const AttentionShape shape = plain(3, 1, 16, Type::f32, Type::f32);
    const Rows qkv = random_qkv(shape, 1100, 8, size);
    check(shape, qkv, {64, 2, {1099, 1}}, rows);
    const Attention attention(shape);
    ThreadPool pool(1);
    const auto ops = make_cpu_ops(pool);
    Cache cache(attention, 1, 1100, 64, 3);
    std::vector<Rows> outs = {Rows(1100, 48)};
    run_step(*ops, attention, cache, {&qkv, 1}, span_of(0, 0, 1100), outs);
    for (const float x : outs[0].values) ASSERT_LE(std::abs(x), 4 * size) << "size " << size;
  }
}

// A later row whose value is no number must not reach earlier ones of its tile.
TEST(AttendBits, ANotANumberStaysWithTheRowsThatSeeIt) {
  const AttentionShape shape = plain(2, 2, 32, Type::f32, Type::f32);
  Rows qkv = random_qkv(shape, 12, 9);
  const Attention attention(shape);
  const auto run = [&](int n_threads) {
    ThreadPool pool(n_threads);
    const auto ops = make_cpu_ops(pool);
    Cache cache(attention, 1, 12, 4, 3);
    std::vector<Rows> outs = {Rows(12, attention.view.q_cols())};
    run_step(*ops, attention, cache, {&qkv, 1}, span_of(0, 0, 12), outs);
    return outs[0];
  };
  const Rows before = run(1);
  std::ranges::fill(std::span(qkv.values).subspan(static_cast<size_t>(7 * qkv.n_cols) + 64), NAN);
  const Rows after = run(1);
  for (int r = 0; r < 7; ++r) {
    expect_same_bits(before.row(r), after.row(r), "row " + std::to_string(r));
  }
  EXPECT_TRUE(std::isnan(after.row(8)[0])) << "the test shows nothing";
}

}  // namespace
}  // namespace sluice::backend::test
