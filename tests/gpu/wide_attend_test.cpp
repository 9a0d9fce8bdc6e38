// Attention of steps of many rows on the device: against float64, with the keys and values as its
// cache holds them, within a derived bound; what it appended, and heads with norms and turns,
// against steps of 16 rows.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/wide_attend.h"

#include "backend/kv_rotation.h"
#include "backend/mailbox.h"
#include "gpu/ops_test.h"
#include "quant/half.h"

namespace sluice::backend::cuda::test {
namespace {

constexpr double kU = 0x1p-24;  // of one rounding
// Of a tensor core's product: 17 numbers are added with 24 bits at least, each cut, not rounded.
constexpr double kProduct = 34;
constexpr int kSlice = 16;
constexpr int kTokens = 16;  // of a page

// n rows of a sequence, from a position on.
struct Part {
  int sequence, first, n;
};

struct Case {
  Type k_type, v_type;
  int n_heads, n_kv_heads, head_dim;
  std::vector<Part> parts;
  int n_dead = 0;  // rows behind them
  HeadNorm norm = HeadNorm::none;
  RopePairing pairing = RopePairing::halves;
  int n_pairs = 0;

  int n_live() const {
    int n = 0;
    for (const Part& part : parts) n += part.n;
    return n;
  }
  int n_cols() const { return (n_heads + 2 * n_kv_heads) * head_dim; }
  std::string text() const {
    return cat(type_name(k_type), "/", type_name(v_type), ", ", n_heads, "/", n_kv_heads,
               " heads of ", head_dim, ", ", n_live(), " rows, the first at ", parts[0].first);
  }
};

class WideAttendTest : public OpsTest {
 protected:
  // What a step reads and writes, on the device.
  struct Run {
    StepView step;
    KvLayerView kv;
    RowsView qkv, out;
    std::vector<float> qkv_values;
    std::vector<int32_t> positions, sequences;
  };

  static int n_pages(const Case& c) {
    int n = 1;
    for (const Part& part : c.parts) n = std::max(n, (part.first + part.n + kTokens - 1) / kTokens);
    return n;
  }
  static int n_sequences(const Case& c) {
    int n = 1;
    for (const Part& part : c.parts) n = std::max(n, part.sequence + 1);
    return n;
  }
  static int page_of(const Case& c, int sequence, int position) {  // in a scattered order
    return n_sequences(c) * n_pages(c) - 1 - (sequence * n_pages(c) + position / kTokens);
  }
  KvPage page(const Case& c, Type type) const {
    return kv_page(type, c.n_kv_heads, c.head_dim, kTokens);
  }

  AttentionView attention_of(const Case& c) {
    AttentionView a;
    a.n_heads = c.n_heads;
    a.n_kv_heads = c.n_kv_heads;
    a.head_dim = c.head_dim;
    a.head_norm = c.norm;
    const auto n = count((c.norm == HeadNorm::whole ? c.n_heads : 1) * c.head_dim);
    if (c.norm != HeadNorm::none) {
      a.q_norm = {gpu->put(random_values(n, 21)), 1e-6f};
      a.k_norm = {gpu->put(random_values(n, 22)), 1e-6f};
    }
    frequencies.assign(count(c.n_pairs), 1.0f);
    a.rope = {c.pairing, frequencies, 1.0f};
    return a;
  }

  // With a cache of rows before the step's, which other rows have left there.
  Run prepare(const Case& c, const AttentionView& attention) {
    Run run;
    const auto cache = [&](Type type) {
      const int64_t n = page(c, type).page_bytes() * n_pages(c) * n_sequences(c);
      return gpu->put(std::vector<std::byte>(count(n), std::byte{0x7f}));  // no numbers
    };
    run.kv = {c.k_type, c.v_type, cache(c.k_type), cache(c.v_type), kTokens};
    Case before = c;
    before.parts.clear(), before.n_dead = 0;
    for (const Part& part : c.parts) {
      if (part.first > 0) before.parts.push_back({part.sequence, 0, part.first});
    }
    if (!before.parts.empty()) {
      const Run first = step_of(before, c, 31);
      attend_in_slices(before, attention, first, run.kv);
    }
    const KvLayerView kv = run.kv;
    run = step_of(c, c, 32);
    run.kv = kv;
    return run;
  }

  Run step_of(const Case& c, const Case& whole, uint64_t seed) {
    Run run;
    for (const Part& part : c.parts) {
      for (int i = 0; i < part.n; ++i) {
        run.sequences.push_back(part.sequence);
        run.positions.push_back(part.first + i);
      }
    }
    run.sequences.insert(run.sequences.end(), count(c.n_dead), 0);
    run.positions.insert(run.positions.end(), count(c.n_dead), 0);
    const auto n = static_cast<int64_t>(run.positions.size());
    std::vector<int32_t> table;
    for (int s = 0; s < n_sequences(whole); ++s) {
      for (int p = 0; p < n_pages(whole); ++p) table.push_back(page_of(whole, s, p * kTokens));
    }
    run.qkv_values = random_values(count(n * c.n_cols()), seed);
    run.qkv = {gpu->put(run.qkv_values), n, c.n_cols()};
    run.out = {gpu->put(std::vector<float>(count(n * c.n_heads * c.head_dim), 7.0f)), n,
               c.n_heads * c.head_dim};
    run.step.n_rows = n;
    run.step.n_live = gpu->put(std::vector<int32_t>{c.n_live()});
    run.step.positions = gpu->put(run.positions);
    run.step.sequences = gpu->put(run.sequences);
    run.step.angles = gpu->put(angles(n, c.n_pairs));
    run.step.page_table = gpu->put(table);
    run.step.table_stride = n_pages(whole);
    run.step.n_past = std::ranges::max(run.positions) + 1;
    return run;
  }

  // Of turns as large as they come, [n, 2 n_pairs]; at least one number.
  static std::vector<float> angles(int64_t n, int n_pairs) {
    std::vector<float> out(count(std::max<int64_t>(n * 2 * n_pairs, 1)));
    const auto turns = random_values(out.size(), 33);
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t i = r * 2 * n_pairs; i < r * 2 * n_pairs + n_pairs; ++i) {
        out[count(i)] = std::cos(turns[count(i)]);
        out[count(i + n_pairs)] = std::sin(turns[count(i)]);
      }
    }
    return out;
  }

  void attend_in_slices(const Case& c, const AttentionView& attention, const Run& run,
                        const KvLayerView& kv) {
    for (int first = 0; first < run.step.n_rows; first += kSlice) {
      StepView some = run.step;
      some.n_rows = std::min<int64_t>(kSlice, run.step.n_rows - first);
      const int live = static_cast<int>(std::ssize(run.positions)) - c.n_dead - first;
      some.n_live = gpu->put(std::vector<int32_t>{std::clamp(live, 0, kSlice)});
      some.positions += first, some.sequences += first, some.angles += first * 2 * c.n_pairs;
      gpu_ops->attend({run.qkv.row(first), some.n_rows, run.qkv.n_cols}, attention, some, kv,
                      {run.out.row(first), some.n_rows, run.out.n_cols});
    }
  }

  template <typename T>
  std::vector<T> read(const T* at, int64_t n) {
    stream->finish();
    return gpu->get(at, count(n));
  }

  void check(const Case& c);
  // By warps, and with more rows by groups of them.
  void check_few_and_many(Case c) {
    check(c);
    c.parts.back().n += kLeastGroupRows;
    check(c);
  }
  void check_against_slices(const Case& c);

  std::vector<float> frequencies;
};

// A cache on the host.
struct Cached {
  Type type;
  KvPage page;
  std::vector<std::byte> bytes;

  double value(int id, int kv_head, int token, int i) const {
    const auto* const row =
        reinterpret_cast<const uint8_t*>(bytes.data()) + page.row_at(id, kv_head, token);
    const auto* const scales = reinterpret_cast<const uint16_t*>(
        reinterpret_cast<const uint8_t*>(bytes.data()) + page.scales_of(id, kv_head, token));
    const auto half = [&](int at) { return reinterpret_cast<const uint16_t*>(row)[at]; };
    switch (type) {
      case Type::f16:
        return quant::f16_to_f32(half(i));
      case Type::bf16:
        return quant::bf16_to_f32(half(i));
      case Type::q8_0:
        return double{quant::f16_to_f32(scales[i / 32])} * static_cast<int8_t>(row[i]);
      default: {
        const int both = row[i / 32 * 16 + i % 16];
        return double{quant::f16_to_f32(scales[i / 32])} *
               ((i % 32 < 16 ? both & 15 : both >> 4) - 8);
      }
    }
  }
};

void WideAttendTest::check(const Case& c) {
  const AttentionView attention = attention_of(c);
  const Run run = prepare(c, attention);
  gpu_ops->attend(run.qkv, attention, run.step, run.kv, run.out);
  const auto out = read(run.out.data, run.out.n_rows * run.out.n_cols);
  const auto cached = [&](Type type, const std::byte* at) {
    const KvPage p = page(c, type);
    return Cached{type, p, read(at, p.page_bytes() * n_pages(c) * n_sequences(c))};
  };
  const Cached k = cached(c.k_type, run.kv.k), v = cached(c.v_type, run.kv.v);
  const double factor = 1 / std::sqrt(double(c.head_dim));
  const bool bf16 = c.k_type == Type::bf16;
  // Two parts of a number: of f16 2^-22 of it, of bf16 2^-16.
  const double parts = bf16 ? 0x1p-16 : 0x1p-22;
  for (int r = 0; r < c.n_live(); ++r) {
    const int sequence = run.sequences[count(r)], length = run.positions[count(r)] + 1;
    for (int h = 0; h < c.n_heads; h += std::max(1, c.n_heads / 3)) {
      const int kv_head = h / (c.n_heads / c.n_kv_heads);
      std::vector<float> q(run.qkv_values.begin() + r * c.n_cols() + h * c.head_dim,
                           run.qkv_values.begin() + r * c.n_cols() + (h + 1) * c.head_dim);
      if (rotates_keys(c.k_type)) rotate_head(q);
      double largest = 0, peak = -1e300, error = 0, sum = 0, spread = 0;
      for (const float x : q) largest = std::max(largest, std::abs(double{x}));
      std::vector<double> scores;
      for (int t = 0; t < length; ++t) {
        double dot = 0, size = 0, keys = 0;
        for (int i = 0; i < c.head_dim; ++i) {
          const double key = k.value(page_of(c, sequence, t), kv_head, t % kTokens, i);
          dot += q[count(i)] * key, size += std::abs(q[count(i)] * key), keys += std::abs(key);
        }
        scores.push_back(factor * dot);
        peak = std::max(peak, factor * dot);
        // A chain of products of a tensor core, two for 16 dimensions; the factor's roundings; the
        // query's parts, of which the second has steps of 2^-24 of the largest.
        error = std::max(error, factor * (((c.head_dim / 8 + 1) * kProduct + 4) * kU * size +
                                          parts * size + kU * largest * keys));
      }
      for (const double s : scores) sum += std::exp(s - peak), spread = std::max(spread, peak - s);
      // A power of two errs by two scores' errors, the rounding of what is up to 1.5 spread + 16,
      // and 2^-22; sums by their chains, two products for 16 positions and a scaling; the quotient.
      const double weight = 2 * error + (1.5 * spread + 16 + 4) * kU + parts;
      const double chain = ((length / 8.0 + 2) * (kProduct + 1) + 16) * kU;
      for (int i = 0; i < c.head_dim; ++i) {
        double value = 0, size = 0;
        for (int t = 0; t < length; ++t) {
          const double share = std::exp(scores[count(t)] - peak) / sum;
          const double number = v.value(page_of(c, sequence, t), kv_head, t % kTokens, i);
          value += share * number, size += share * std::abs(number);
        }
        const double bound = 2 * (weight + chain) * size;
        const float got = out[count((r * c.n_heads + h) * c.head_dim + i)];
        ASSERT_LE(std::abs(got - value), bound) << c.text() << ", row " << r << ", head " << h
                                                << ", dimension " << i << ", expected " << value;
        ASSERT_LT(bound, 0.05 * size + 1e-6) << "the bound shows nothing";
      }
    }
  }
  for (size_t i = count(c.n_live() * run.out.n_cols); i < out.size(); ++i) {
    ASSERT_EQ(0.0f, out[i]) << c.text() << ": a row that is not live";
  }
}

// Caches in every byte; results by as much as the bound above leaves at least, of the largest
// value.
void WideAttendTest::check_against_slices(const Case& c) {
  const AttentionView attention = attention_of(c);
  const Run wide = prepare(c, attention), narrow = prepare(c, attention);
  gpu_ops->attend(wide.qkv, attention, wide.step, wide.kv, wide.out);
  attend_in_slices(c, attention, narrow, narrow.kv);
  for (const bool is_key : {true, false}) {
    const int64_t n =
        page(c, is_key ? c.k_type : c.v_type).page_bytes() * n_pages(c) * n_sequences(c);
    EXPECT_EQ(read(is_key ? narrow.kv.k : narrow.kv.v, n), read(is_key ? wide.kv.k : wide.kv.v, n))
        << c.text();
  }
  const int64_t n = wide.out.n_rows * wide.out.n_cols;
  const auto want = read(narrow.out.data, n), got = read(wide.out.data, n);
  float largest = 0;
  for (const float x : want) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(want[i], got[i], (c.k_type == Type::bf16 ? 0x1p-10f : 0x1p-12f) * largest)
        << c.text() << ", index " << i;
  }
}

TEST_F(WideAttendTest, EveryNumberOfRowsWithinTheBound) {
  for (const int n : {17, 18, 31, 32, 33, 69, 100, 130, kLeastGroupRows - 1, kLeastGroupRows,
                      kLeastGroupRows + 1, kLeastGroupRows + 53}) {
    check({Type::f16, Type::f16, 16, 2, 128, {{0, 0, n}}});
  }
}

TEST_F(WideAttendTest, FromAnyPositionOn) {
  for (const int first : {1, 15, 63, 64, 65, 500}) {
    check_few_and_many({Type::f16, Type::f16, 16, 2, 128, {{0, first, 40}}});
  }
  check({Type::f16, Type::f16, 16, 2, 128, {{0, kLeastGroupLength, 40}}});
}

// Few rows at long texts attend by groups of warps where the card has them, in other orders; only
// what StepView says of the length decides.
TEST_F(WideAttendTest, FewRowsOfALongTextAttendByGroups) {
  for (const int n_past : {kLeastGroupLength - 1, kLeastGroupLength}) {
    const Case c{Type::f16, Type::f16, 16, 2, 128, {{0, n_past - 40, 40}}};
    const AttentionView attention = attention_of(c);
    const auto out_of = [&](bool is_told) {
      Run run = prepare(c, attention);
      EXPECT_EQ(run.step.n_past, n_past);
      if (!is_told) run.step.n_past = 0;
      gpu_ops->attend(run.qkv, attention, run.step, run.kv, run.out);
      return read(run.out.data, run.out.n_rows * run.out.n_cols);
    };
    const auto told = out_of(true), not_told = out_of(false);
    EXPECT_EQ(told != not_told, how.has_group_products && n_past >= kLeastGroupLength) << n_past;
  }
}

TEST_F(WideAttendTest, EveryShapeWithinTheBound) {
  for (const Type type : {Type::f16, Type::bf16}) {
    check_few_and_many({type, type, 4, 4, 64, {{0, 3, 150}}});
    check_few_and_many({type, type, 6, 2, 96, {{0, 70, 30}}, 2});
    check({type, type, 16, 1, 256, {{0, 20, 50}}});
    check({type, type, 10, 2, 160, {{0, 9, 41}}, 5});
    check_few_and_many({type, type, 7, 1, 128, {{0, 9, 41}}});
    check_few_and_many({type, type, 8, 8, 32, {{0, 0, 44}}});
  }
}

TEST_F(WideAttendTest, EveryTypeOfCacheWithinTheBound) {
  for (const Type k : {Type::f16, Type::q8_0, Type::q4_0}) {
    for (const Type v : {Type::f16, Type::q8_0, Type::q4_0}) {
      check({k, v, 8, 2, 128, {{0, 37, 70}}, 1});
    }
    check({k, k, 4, 2, 256, {{0, 37, 30}}, 1});
    check({k, k, 4, 2, 96, {{0, 5, 30}}, 1});
  }
}

// Prompts of two sequences, and rows of others between them.
TEST_F(WideAttendTest, SequencesOfOneStepWithinTheBound) {
  for (const Type type : {Type::f16, Type::bf16, Type::q8_0}) {
    check_few_and_many({type,
                        type,
                        16,
                        2,
                        128,
                        {{3, 200, 1}, {0, 0, 21}, {2, 7, 1}, {4, 90, 1}, {1, 130, 50}, {5, 16, 2}},
                        3});
    check_few_and_many({type, type, 4, 4, 64, {{1, 0, 90}, {0, 33, 60}, {2, 150, 1}}, 1});
  }
}

TEST_F(WideAttendTest, HeadsAsInStepsOf16) {
  for (const Type type : {Type::f16, Type::bf16, Type::q8_0, Type::q4_0}) {
    for (const HeadNorm norm : {HeadNorm::none, HeadNorm::per_head, HeadNorm::whole}) {
      for (const int more : {0, kLeastGroupRows}) {
        check_against_slices({type,
                              type,
                              4,
                              2,
                              128,
                              {{0, 5, 33}, {1, 0, 9 + more}},
                              2,
                              norm,
                              RopePairing::halves,
                              64});
        check_against_slices(
            {type, type, 4, 4, 96, {{0, 0, 40 + more}}, 0, norm, RopePairing::adjacent, 32});
      }
    }
  }
}

// Where blocks have less shared memory a tile is copied when it is needed.
TEST_F(WideAttendTest, ARowsBytesDoNotDependOnTheRowsBesideNorOnTheCard) {
  const Case many{Type::f16, Type::f16, 16, 2, 128, {{0, 100, 60}, {1, 30, 20}}};
  const AttentionView attention = attention_of(many);
  const Run all = prepare(many, attention);
  gpu_ops->attend(all.qkv, attention, all.step, all.kv, all.out);
  const auto want = read(all.out.data, all.out.n_rows * all.out.n_cols);
  // The last 37 rows alone: their keys and those before are in the cache.
  constexpr int kFirst = 43;
  StepView some = all.step;
  some.n_rows -= kFirst, some.positions += kFirst, some.sequences += kFirst;
  some.n_live = gpu->put(std::vector<int32_t>{static_cast<int32_t>(some.n_rows)});
  gpu_ops->attend({all.qkv.row(kFirst), some.n_rows, all.qkv.n_cols}, attention, some, all.kv,
                  {all.out.row(kFirst), some.n_rows, all.out.n_cols});
  expect_same_bits(want, read(all.out.data, all.out.n_rows * all.out.n_cols), "rows alone");

  WideAttend p;
  p.of.qkv = all.qkv.data;
  p.of.n_rows = static_cast<int>(all.step.n_rows);
  p.of.n_heads = many.n_heads, p.of.n_kv_heads = many.n_kv_heads, p.of.head_dim = many.head_dim;
  p.of.angles = all.step.angles;
  p.of.positions = all.step.positions, p.of.sequences = all.step.sequences;
  p.of.page_table = all.step.page_table;
  p.of.table_stride = static_cast<int>(all.step.table_stride);
  p.of.page_shift = 4;
  p.of.k = reinterpret_cast<uint8_t*>(all.kv.k), p.of.v = reinterpret_cast<uint8_t*>(all.kv.v);
  p.page = page(many, Type::f16);
  const Device<uint16_t> queries(count(wide_query_halves(p.of.n_rows, 16, 128)));
  const Device<float> scales(count(p.of.n_rows * 16)), out(want.size());
  p.queries = queries.data(), p.scales = scales.data(), p.of.out = out.data();
  DeviceInt8 int8(p.of.n_rows, 16 * 128);
  p.of.out_int8 = int8.rows();
  const auto alone = [&](const Launch& launch) {
    wide_attend(p, launch);
    CHECK_CUDA(cudaDeviceSynchronize());
    const auto values = out.get();
    HostInt8 quantised(p.of.n_rows, 16 * 128);
    for (int r = 0; r < p.of.n_rows; ++r) {
      quantised.quantize(r, std::span(values).subspan(count(r * 16 * 128), 16 * 128));
    }
    expect_same_int8(quantised, int8, p.of.n_rows, "what the projection behind reads");
    return values;
  };
  expect_same_bits(want, alone(how), "without a device's buffers");
  expect_same_bits(want, alone(with_little_shared(how, 64)), "with one tile");
  // By groups of warps, where the card has them: other bits, and they do not depend on rows either.
  p.least_group_rows = 1;
  const auto by_groups = alone(how);
  float largest = 0;
  for (const float x : want) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(want[i], by_groups[i], 0x1p-12f * largest) << "by groups, index " << i;
  }
  p.of.qkv += kFirst * all.qkv.n_cols, p.of.n_rows -= kFirst;
  p.of.positions += kFirst, p.of.sequences += kFirst;
  const auto last = alone(how);
  const size_t n_before = count(kFirst * all.out.n_cols);
  expect_same_bits(std::span(by_groups).subspan(n_before),
                   std::span(last).first(by_groups.size() - n_before), "rows alone, by groups");
}

}  // namespace
}  // namespace sluice::backend::cuda::test
