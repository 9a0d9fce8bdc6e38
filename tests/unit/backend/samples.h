// Random rows and weights for the tests of the operations, and the value of every weight by the
// spec's formulas in float64 (unit/quant/spec_walk.h), without src/quant's decoder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "backend/views.h"
#include "base/random.h"
#include "quant/random_rows.h"
#include "unit/quant/spec_walk.h"

namespace sluice::backend::test {

// Uniform in [-size, size), in groups of 32 of different sizes (1 to 4 times), so that blocks which
// are mixed up show.
inline std::vector<float> random_values(int64_t n, uint64_t seed, float size = 1.0f) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) {
    const float group = 1.0f + static_cast<float>(random_bits(seed ^ 0x9e37, i / 32) % 4);
    values[i] = size * group * random_signed(random_bits(seed, i));
  }
  return values;
}

// Near one: what a norm's weights look like.
inline std::vector<float> random_norm_weight(int64_t n, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 1.0f + 0.5f * random_signed(random_bits(seed, i));
  }
  return values;
}

// A stored weight as the sum of two parts: scale * integer, and a minimum (0 where there is none).
struct StoredValue {
  double product = 0;
  double minimum = 0;

  double value() const { return product + minimum; }
  double magnitude() const { return std::abs(product) + std::abs(minimum); }
};

// Element k of a row of any supported type.
inline StoredValue stored_value(quant::Type type, const std::byte* row, int64_t k) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(row);
  if (type == quant::Type::f32) {
    float value;
    std::memcpy(&value, row + 4 * k, 4);
    return {value, 0};
  }
  if (type == quant::Type::f16) return {quant::spec_half(bytes + 2 * k), 0};
  if (type == quant::Type::bf16) {
    const uint32_t bits = static_cast<uint32_t>(bytes[2 * k] | bytes[2 * k + 1] << 8) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return {value, 0};
  }
  const quant::SpecElement e = quant::spec_element(type, row, k);
  return {e.d * e.s * e.w, quant::spec_adds_min(type) ? e.dmin : -e.dmin * e.m};
}

// Owns n_mats random matrices of n_rows rows of n_cols values.
class Weight {
 public:
  struct Shape {
    int64_t n_cols, n_rows, n_mats = 1;
  };
  Weight(quant::Type type, Shape shape, uint64_t seed, float std = 0.25f)
      : type_(type), shape_(shape) {
    const int64_t n_rows = shape.n_rows * shape.n_mats;
    bytes_.resize(quant::row_bytes(type, shape.n_cols) * static_cast<uint64_t>(n_rows));
    const int64_t n_blocks = n_rows * shape.n_cols / quant::type_info(type).block_elems;
    quant::random_row_blocks(type, seed, 0, n_blocks, std, bytes_.data());
  }

  WeightView view() const {
    return {type_, bytes_.data(), shape_.n_cols, shape_.n_rows, shape_.n_mats};
  }
  // Rows are counted over all matrices.
  StoredValue at(int64_t row, int64_t k) const {
    return stored_value(type_, bytes_.data() + row * static_cast<int64_t>(row_bytes()), k);
  }
  std::byte* row(int64_t r) { return bytes_.data() + r * static_cast<int64_t>(row_bytes()); }
  uint64_t row_bytes() const { return quant::row_bytes(type_, shape_.n_cols); }

 private:
  quant::Type type_;
  Shape shape_;
  std::vector<std::byte> bytes_;
};

// Rows of f32 that own their memory.
struct Rows {
  std::vector<float> values;
  int64_t n_rows = 0;
  int64_t n_cols = 0;

  Rows() = default;
  Rows(int64_t rows, int64_t cols, float fill = -777.0f)
      : values(static_cast<size_t>(rows * cols), fill), n_rows(rows), n_cols(cols) {}
  static Rows random(int64_t rows, int64_t cols, uint64_t seed, float size = 1.0f) {
    Rows out(rows, cols);
    out.values = random_values(rows * cols, seed, size);
    return out;
  }

  RowsView view() { return {values.data(), n_rows, n_cols}; }
  ConstRowsView view() const { return {values.data(), n_rows, n_cols}; }
  std::span<const float> row(int64_t r) const {
    return std::span(values).subspan(static_cast<size_t>(r * n_cols), static_cast<size_t>(n_cols));
  }
  // Some of the rows, in the given order.
  Rows picked(std::span<const int64_t> which) const {
    Rows out(std::ssize(which), n_cols);
    for (int64_t i = 0; i < out.n_rows; ++i) {
      const auto from = row(which[static_cast<size_t>(i)]);
      std::copy(from.begin(), from.end(), out.values.begin() + i * n_cols);
    }
    return out;
  }
};

// "Q4_K", for the texts of failures.
inline std::string name_of(quant::Type type) { return std::string(quant::type_name(type)); }

// The data of a step as Ops::embed needs it.
struct TokenStep {
  explicit TokenStep(std::vector<TokenId> t)
      : tokens(std::move(t)), n_live(static_cast<int32_t>(tokens.size())) {}
  StepView view() const {
    return {.n_rows = std::ssize(tokens), .n_live = &n_live, .tokens = tokens.data()};
  }

  std::vector<TokenId> tokens;
  int32_t n_live;
};

// And as Ops::logits does.
struct LogitStep {
  explicit LogitStep(std::vector<int32_t> r)
      : rows(std::move(r)), n(static_cast<int32_t>(rows.size())) {}
  StepView view() const { return {.n_logits = &n, .logit_rows = rows.data(), .n_best = &n_best}; }

  std::vector<int32_t> rows;
  int32_t n;
  int32_t n_best = 0;
};

}  // namespace sluice::backend::test
