// Ops::attend against float64, in two halves so that both bounds stay sharp: the cache holds norm
// and rope of k (and v) up to the rounding of its type, and the output is the softmax formula over
// what the cache holds, up to roundings of f32.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>

#include "unit/backend/attention.h"
#include "unit/backend/reference.h"

namespace sluice::backend::test {
namespace {

using quant::Type;

// kv_rotation.h's formula. A value passes log2(n) sums, whose size is at most the sum of all
// magnitudes, and three roundings of the factor and its product.
void rotate_reference(std::span<Bounded> head) {
  constexpr uint64_t kPi[] = {0x243f6a8885a308d3, 0x13198a2e03707344};
  const size_t n = std::min<size_t>(128, head.size() & (~head.size() + 1));
  const double factor = 1 / std::sqrt(static_cast<double>(n));
  for (size_t begin = 0; begin < head.size(); begin += n) {
    const auto block = head.subspan(begin, n);
    const BoundedRow x(block.begin(), block.end());
    for (size_t i = 0; i < n; ++i) {
      block[i] = {};
      for (size_t j = 0; j < n; ++j) {
        const int n_signs = std::popcount(i & j) + static_cast<int>(kPi[j / 64] >> j % 64 & 1);
        block[i].value += factor * (n_signs % 2 == 0 ? x[j].value : -x[j].value);
        block[i].error +=
            factor * (x[j].error + x[j].magnitude() * kUnit * (std::bit_width(n) + 2));
      }
      block[i].error *= kSlack;
    }
  }
}

// The heads of q (or k) as float64: normalised, turned, and rotated where keys are of 4 bits.
BoundedRow heads_reference(std::span<const float> heads, const Attention& attention,
                           const NormView& norm, int32_t position) {
  const auto dim = static_cast<size_t>(attention.view.head_dim);
  const HeadNorm kind = attention.view.head_norm;
  BoundedRow out = kind == HeadNorm::whole ? norm_reference(heads, norm) : exactly(heads);
  for (size_t h = 0; h < heads.size(); h += dim) {
    if (kind == HeadNorm::per_head) {
      std::ranges::copy(norm_reference(heads.subspan(h, dim), norm), out.data() + h);
    }
    rope_reference(attention.view.rope, position, std::span(out).subspan(h, dim));
    if (attention.shape.k_type == Type::q4_0) rotate_reference(std::span(out).subspan(h, dim));
  }
  return out;
}

// What a cache type may be off by at element i of a block that holds `most` at its largest.
//   f16, bf16  half a unit of the last of 11 and 8 bits
//   q8_0       half a step; the step is most/127 rounded to f16
double storage_error(Type type, double value, double most) {
  switch (type) {
    case Type::f32:
      return 0;
    case Type::f16:
      return std::max(0x1p-11 * std::abs(value), 0x1p-25);
    case Type::bf16:
      return 0x1p-8 * std::abs(value);
    case Type::q8_0:
      return kSlack * 0.5 * most / 127 * (1 + 0x1p-11);
    default:
      ADD_FAILURE() << "no elementwise bound";
      return 0;
  }
}

// q4_0 is chosen by least squares among steps up to 1.06 most/8. At that widest step the levels
// -8..7 leave no value off by more than 0.55 steps, and the search can only lower the mean square;
// rounding the step to f16 adds 2^-11 of at most `most`.
double q4_0_rms_error(double most) { return kSlack * most * (0.55 * 1.06 / 8 + 0x1p-11); }

void check_stored(Type type, std::span<const std::byte> got, std::span<const Bounded> expected,
                  const std::string& what) {
  for (size_t begin = 0; begin < expected.size(); begin += 32) {
    const size_t end = std::min(begin + 32, expected.size());
    double most = 0, squares = 0, error = 0;
    for (size_t i = begin; i < end; ++i) {
      most = std::max(most, expected[i].magnitude());
      error = std::max(error, expected[i].error);
    }
    for (size_t i = begin; i < end; ++i) {
      const double value = stored_value(type, got.data(), static_cast<int64_t>(i)).value();
      const double off = std::abs(value - expected[i].value);
      squares += off * off;
      if (type == Type::q4_0) continue;
      const double bound = storage_error(type, expected[i].magnitude(), most) + expected[i].error;
      ASSERT_LE(off, bound) << what << ", index " << i << ", expected " << expected[i].value
                            << ", got " << value << ", bound " << bound;
    }
    if (type != Type::q4_0) continue;
    ASSERT_LE(std::sqrt(squares / 32), q4_0_rms_error(most) + error)
        << what << ", block " << begin / 32 << ", largest " << most;
  }
}

// The stored key or value as numbers.
std::vector<double> decoded(Type type, std::span<const std::byte> entry, int dim) {
  std::vector<double> out;
  for (int i = 0; i < dim; ++i) out.push_back(stored_value(type, entry.data(), i).value());
  return out;
}

// One head of one row: softmax(q k^T / sqrt(dim)) v over positions 0..n-1 of what the cache holds.
// A score has the error of q, the roundings of the dot, and those of 1/sqrt(dim) (2), its product
// and dot * scale (2). An output sums n products by fma.
BoundedRow attend_reference(std::span<const Bounded> q,
                            const std::vector<std::vector<double>>& keys,
                            const std::vector<std::vector<double>>& values) {
  const auto dim = static_cast<int64_t>(q.size());
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  BoundedRow scores(keys.size());
  for (size_t t = 0; t < keys.size(); ++t) {
    double lost = 0;
    for (size_t i = 0; i < q.size(); ++i) {
      scores[t].value += scale * q[i].value * keys[t][i];
      scores[t].error += scale * q[i].error * std::abs(keys[t][i]);
      lost += scale * q[i].magnitude() * std::abs(keys[t][i]);
    }
    scores[t].error = kSlack * (scores[t].error + (dot_roundings(dim) + 4) * kUnit * lost);
  }
  const BoundedRow p = softmax_reference(scores);
  BoundedRow out(values[0].size());
  for (size_t i = 0; i < out.size(); ++i) {
    double lost = 0;
    for (size_t t = 0; t < p.size(); ++t) {
      out[i].value += p[t].value * values[t][i];
      out[i].error += p[t].error * std::abs(values[t][i]);
      lost += p[t].magnitude() * std::abs(values[t][i]);
    }
    out[i].error = kSlack * (out[i].error + static_cast<double>(p.size()) * kUnit * lost);
  }
  return out;
}

// Eleven positions over pages of four: seven at once, then one at a time across a page's end.
void check_attend(const AttentionShape& shape) {
  constexpr int kLength = 11, kPageTokens = 4;
  ThreadPool pool(3);
  const auto ops = make_cpu_ops(pool);
  const Attention attention(shape);
  Cache cache(attention, 1, kLength, kPageTokens, 5);
  const std::vector<Rows> sequences = {attention.random_qkv(kLength, 81)};
  std::vector<Rows> outs = {Rows(kLength, attention.view.q_cols())};
  run_step(*ops, attention, cache, sequences, span_of(0, 0, 7), outs);
  for (int p = 7; p < kLength; ++p) {
    run_step(*ops, attention, cache, sequences, span_of(0, p, p + 1), outs);
  }

  const auto dim = static_cast<size_t>(shape.head_dim);
  const auto q_cols = static_cast<size_t>(attention.view.q_cols());
  const auto kv_cols = static_cast<size_t>(attention.view.kv_cols());
  std::vector<std::vector<std::vector<double>>> keys(static_cast<size_t>(shape.n_kv_heads)),
      values(keys);
  for (int p = 0; p < kLength; ++p) {
    const auto qkv = sequences[0].row(p);
    const BoundedRow q = heads_reference(qkv.first(q_cols), attention, attention.view.q_norm, p);
    const BoundedRow k =
        heads_reference(qkv.subspan(q_cols, kv_cols), attention, attention.view.k_norm, p);
    const BoundedRow v = exactly(qkv.subspan(q_cols + kv_cols));
    const std::string what = describe(shape) + " position " + std::to_string(p);
    for (int h = 0; h < shape.n_kv_heads; ++h) {
      const size_t at = static_cast<size_t>(h) * dim;
      const auto key = cache.key(0, p, h), value = cache.value(0, p, h);
      check_stored(shape.k_type, key, std::span(k).subspan(at, dim), what + " key");
      check_stored(shape.v_type, value, std::span(v).subspan(at, dim), what + " value");
      keys[static_cast<size_t>(h)].push_back(decoded(shape.k_type, key, shape.head_dim));
      values[static_cast<size_t>(h)].push_back(decoded(shape.v_type, value, shape.head_dim));
    }
    const int group = shape.n_heads / shape.n_kv_heads;
    for (int h = 0; h < shape.n_heads; ++h) {
      const size_t at = static_cast<size_t>(h) * dim, kv = static_cast<size_t>(h / group);
      const BoundedRow expected =
          attend_reference(std::span(q).subspan(at, dim), keys[kv], values[kv]);
      expect_within(expected, outs[0].row(p).subspan(at, dim), what + " head " + std::to_string(h));
      expect_sharp(expected, 1e-3, what);
    }
  }
}

TEST(Attend, IsItsFormulaForEveryCacheTypeAndHeadNorm) {
  for (const Type type : {Type::f32, Type::f16, Type::bf16, Type::q8_0, Type::q4_0}) {
    for (const HeadNorm norm : {HeadNorm::none, HeadNorm::per_head, HeadNorm::whole}) {
      check_attend({.head_norm = norm, .k_type = type, .v_type = type});
    }
  }
}

TEST(Attend, KeysAndValuesMayBeOfDifferentTypes) {
  check_attend({.k_type = Type::q8_0, .v_type = Type::q4_0});
  check_attend({.k_type = Type::f16, .v_type = Type::f32});
  check_attend({.k_type = Type::f32, .v_type = Type::bf16});
}

TEST(Attend, RotatesHeadsOfAnyWidthForKeysOf4Bits) {
  for (const int dim : {32, 64, 96, 128, 192}) {
    check_attend({.head_dim = dim, .n_rot = dim, .k_type = Type::q4_0, .v_type = Type::f32});
  }
}

TEST(Attend, TurnsBothPairingsWhollyOrInPart) {
  for (const RopePairing pairing : {RopePairing::halves, RopePairing::adjacent}) {
    for (const int n_rot : {32, 16, 2}) {
      check_attend({.n_rot = n_rot, .pairing = pairing, .magnitude = 1.25f});
    }
  }
}

TEST(Attend, HeadsShareKeysInGroupsOfAnySize) {
  for (const auto& [n_heads, n_kv_heads] :
       {std::pair(1, 1), {3, 3}, {4, 1}, {6, 2}, {8, 4}, {7, 1}}) {
    check_attend({.n_heads = n_heads, .n_kv_heads = n_kv_heads, .head_norm = HeadNorm::per_head});
  }
}

TEST(Attend, TakesHeadsOfAnyWidth) {
  for (const int dim : {2, 6, 10, 64, 128}) {
    check_attend({.head_dim = dim, .n_rot = dim, .head_norm = HeadNorm::whole});
  }
}

// Of five rows three are real: the others leave no key behind, and change no row.
TEST(Attend, KeepsNothingOfPadding) {
  ThreadPool pool(2);
  const auto ops = make_cpu_ops(pool);
  const Attention attention({.head_norm = HeadNorm::per_head});
  Cache padded(attention, 1, 8, 4, 3), alone(attention, 1, 8, 4, 3);
  const Rows all = attention.random_qkv(5, 21);
  const auto run = [&](Cache& cache, int n_rows) {
    Rows qkv(n_rows, all.n_cols), out(n_rows, attention.view.q_cols());
    std::copy_n(all.values.begin(), qkv.values.size(), qkv.values.begin());
    const StepData step(attention.view.rope, span_of(0, 0, n_rows), 3);
    ops->attend(qkv.view(), attention.view, step.view(cache), cache.view(), out.view());
    return std::vector(out.values.begin(), out.values.begin() + 3 * out.n_cols);
  };
  EXPECT_EQ(run(padded, 5), run(alone, 3));
  EXPECT_TRUE(std::ranges::equal(padded.keys(), alone.keys()));
}

}  // namespace
}  // namespace sluice::backend::test
