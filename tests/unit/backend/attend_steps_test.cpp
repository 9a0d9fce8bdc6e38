// Ops::attend bit for bit: neither pages, nor threads, nor the division into steps, nor other
// sequences in the step may change a row; and nothing but its own entries is written or read.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/backend/attention.h"
#include "unit/backend/expect.h"

namespace sluice::backend::test {
namespace {

using quant::Type;

constexpr Type kTypes[] = {Type::f32, Type::f16, Type::bf16, Type::q8_0, Type::q4_0};

std::vector<AttentionShape> shapes() {
  std::vector<AttentionShape> out;
  for (const Type type : kTypes) {
    out.push_back({.head_norm = HeadNorm::per_head, .k_type = type, .v_type = type});
  }
  out.push_back({.n_heads = 6, .head_norm = HeadNorm::whole, .pairing = RopePairing::adjacent});
  return out;
}

struct Schedule {
  int page_tokens = 4;
  int n_threads = 2;
  int step = 1;  // rows at a time
  uint64_t page_seed = 1;
};

// One sequence of 13 in such a division.
Rows run_alone(const Attention& attention, const Rows& qkv, const Schedule& d) {
  ThreadPool pool(d.n_threads);
  const auto ops = make_cpu_ops(pool);
  const int n = static_cast<int>(qkv.n_rows);
  Cache cache(attention, 1, n, d.page_tokens, d.page_seed);
  std::vector<Rows> outs = {Rows(n, attention.view.q_cols())};
  for (int p = 0; p < n; p += d.step) {
    run_step(*ops, attention, cache, {&qkv, 1}, span_of(0, p, std::min(p + d.step, n)), outs);
  }
  return outs[0];
}

TEST(AttendSteps, NoDivisionIntoPagesStepsOrThreadsChangesABit) {
  for (const AttentionShape& shape : shapes()) {
    const Attention attention(shape);
    const Rows qkv = attention.random_qkv(13, 21);
    const Rows expected = run_alone(attention, qkv, {});
    for (const Schedule& d : {
             Schedule{.page_tokens = 1},
             Schedule{.page_tokens = 64},
             Schedule{.page_tokens = 5, .page_seed = 9},
             Schedule{.n_threads = 1, .step = 13},
             Schedule{.n_threads = 3, .step = 13},
             Schedule{.page_tokens = 3, .n_threads = 5, .step = 7},
             Schedule{.n_threads = 2, .step = 2},
         }) {
      expect_same_bits(expected.values, run_alone(attention, qkv, d).values,
                       describe(shape) + " pages of " + std::to_string(d.page_tokens) +
                           " steps of " + std::to_string(d.step) + " threads " +
                           std::to_string(d.n_threads));
    }
  }
}

// Three sequences of 3, 9 and 1 rows, mixed in every step; rows of one stay in their order.
TEST(AttendSteps, SeveralSequencesInOneStepEqualEachAlone) {
  const std::vector<std::vector<StepEntry>> steps = {
      {{1, 0}, {0, 0}, {1, 1}, {1, 2}, {0, 1}, {1, 3}},
      {{2, 0}, {1, 4}, {0, 2}},
      {{1, 5}, {1, 6}, {1, 7}, {1, 8}},
  };
  const int lengths[] = {3, 9, 1};
  for (const AttentionShape& shape : shapes()) {
    const Attention attention(shape);
    ThreadPool pool(3);
    const auto ops = make_cpu_ops(pool);
    Cache cache(attention, 3, 9, 4, 7);
    std::vector<Rows> sequences, outs;
    for (size_t s = 0; s < 3; ++s) {
      sequences.push_back(attention.random_qkv(lengths[s], 31 + s));
      outs.emplace_back(lengths[s], attention.view.q_cols());
    }
    for (const auto& entries : steps) {
      run_step(*ops, attention, cache, sequences, entries, outs);
    }
    for (size_t s = 0; s < 3; ++s) {
      expect_same_bits(run_alone(attention, sequences[s], {}).values, outs[s].values,
                       describe(shape) + " sequence " + std::to_string(s));
    }
  }
}

TEST(AttendSteps, ALaterRowDoesNotReachAnEarlierOne) {
  const Attention attention({.head_norm = HeadNorm::per_head});
  Rows qkv = attention.random_qkv(8, 41);
  const Rows before = run_alone(attention, qkv, {.step = 8});
  const Rows other = attention.random_qkv(8, 42);
  for (int64_t i = 5 * qkv.n_cols; i < 8 * qkv.n_cols; ++i) {
    qkv.values[static_cast<size_t>(i)] = other.values[static_cast<size_t>(i)];
  }
  const Rows after = run_alone(attention, qkv, {.step = 8});
  for (int64_t p = 0; p < 5; ++p) {
    expect_same_bits(before.row(p), after.row(p), "position " + std::to_string(p));
  }
  for (int64_t p = 5; p < 8; ++p) {
    EXPECT_FALSE(std::ranges::equal(before.row(p), after.row(p))) << "position " << p;
  }
}

// The first position has nothing else to look at.
TEST(AttendSteps, TheFirstPositionGivesItsOwnValue) {
  const Attention attention({.n_heads = 4, .n_kv_heads = 2});
  const Rows qkv = attention.random_qkv(1, 51);
  const Rows out = run_alone(attention, qkv, {});
  const auto v = qkv.row(0).subspan(6 * 32);
  for (size_t h = 0; h < 4; ++h) {
    expect_same_bits(v.subspan(h / 2 * 32, 32), out.row(0).subspan(h * 32, 32),
                     "head " + std::to_string(h));
  }
}

TEST(AttendSteps, WritesOnlyTheEntriesOfItsRows) {
  for (const Type type : kTypes) {
    const Attention attention({.k_type = type, .v_type = type});
    ThreadPool pool(2);
    const auto ops = make_cpu_ops(pool);
    Cache cache(attention, 2, 8, 4, 3);
    const std::vector<Rows> sequences = {attention.random_qkv(8, 61), attention.random_qkv(8, 62)};
    std::vector<Rows> outs(2, Rows(8, attention.view.q_cols()));
    run_step(*ops, attention, cache, sequences, std::vector<StepEntry>{{0, 0}, {1, 0}, {1, 1}},
             outs);
    const auto n_written = [](std::span<const std::byte> entry) {
      return std::ranges::count_if(entry, [](std::byte b) { return b != Cache::kUnwritten; });
    };
    int64_t n_expected = 0;
    for (int s = 0; s < 2; ++s) {
      for (int p = 0; p < 8; ++p) {
        for (int h = 0; h < 2; ++h) {
          const bool is_written = p <= s;
          EXPECT_EQ(n_written(cache.key(s, p, h)) > 0, is_written)
              << name_of(type) << " sequence " << s << " position " << p << " head " << h;
          EXPECT_EQ(n_written(cache.value(s, p, h)) > 0, is_written)
              << name_of(type) << " sequence " << s << " position " << p << " head " << h;
          n_expected += n_written(cache.key(s, p, h));
        }
      }
    }
    EXPECT_EQ(n_written(cache.keys()), n_expected) << name_of(type) << ": a page of nobody's";
  }
}

}  // namespace
}  // namespace sluice::backend::test
