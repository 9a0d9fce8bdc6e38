// project_in, project_add and logits on the device against quant/: equal in every bit, for every
// type, one to 16 rows, rows of one block to several units with short last chunks.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/project.h"

#include "backend/cuda/quantize_rows.h"
#include "base/error.h"
#include "gpu/device.h"

namespace sluice::backend::cuda::test {
namespace {

using ProjectTest = DeviceTest;

std::span<const float> row_of(const std::vector<float>& rows, int r, int n) {
  return std::span(rows).subspan(static_cast<size_t>(r * n), static_cast<size_t>(n));
}

// x[r] += W in[r] + bias; int8: the test quantises the rows, otherwise the device does.
void check_add(Type type, int n_rows, int n_cols, int n_out, bool int8, const Launch& how) {
  const std::string what = cat(type_name(type), ", ", n_rows, " rows, ", n_cols, " columns, ",
                               int8 ? "int8" : "f32", " input");
  const Weight weight(type, n_cols, n_out, 5);
  const auto in = random_values(static_cast<size_t>(n_rows * n_cols), 6);
  const auto bias = random_values(static_cast<size_t>(n_out), 7);
  auto x = random_values(static_cast<size_t>(n_rows * n_out), 8);
  HostInt8 host(n_rows, n_cols);
  for (int r = 0; r < n_rows; ++r) host.quantize(r, row_of(in, r, n_cols));

  const Device<float> device_in(in), device_bias(bias), device_x(x);
  DeviceInt8 rows(n_rows, n_cols);
  if (int8) {
    rows.set(host);
  } else {
    quantize_rows({device_in.data(), nullptr, nullptr, 0.0f, n_rows, n_cols, rows.rows()}, how);
    expect_same_int8(host, rows, n_rows, what);
  }
  ProjectAdd p;
  p.in = rows.rows();
  p.n_rows = n_rows;
  p.n_cols = n_cols;
  p.weight = {type, weight.data(), n_out, device_bias.data()};
  p.x = device_x.data();
  project_add(p, how);

  for (int r = 0; r < n_rows; ++r) {
    for (int i = 0; i < n_out; ++i) {
      float& value = x[static_cast<size_t>(r * n_out + i)];
      value = value + (weight.dot(i, host.view(r)) + bias[static_cast<size_t>(i)]);
    }
  }
  expect_same_bits(x, device_x.get(), what);
}

// Rows of 64, 16 and 24 weights, the second with a bias, in rows of results that are a bit longer.
void check_projections(const Type (&types)[3], int n_rows, const Launch& how) {
  constexpr int kCols = 2048, kOut = 64 + 16 + 24, kStride = kOut + 8;
  const Weight q(types[0], kCols, 64, 1), k(types[1], kCols, 16, 2), v(types[2], kCols, 24, 3);
  const auto x = random_values(static_cast<size_t>(n_rows * kCols), 4);
  const auto norm = random_values(kCols, 5), bias = random_values(16, 6);
  const std::vector<float> untouched(static_cast<size_t>(n_rows * kStride), 7.0f);
  const Device<float> device_x(x), device_norm_weight(norm), device_bias(bias), out(untouched);
  ProjectIn p;
  p.x = device_x.data();
  p.norm = device_norm_weight.data();
  p.eps = 1e-6f;
  p.n_rows = n_rows;
  p.n_cols = kCols;
  p.weights[0] = {q.type, q.data(), q.n_rows, nullptr, 0};
  p.weights[1] = {k.type, k.data(), k.n_rows, device_bias.data(), 64};
  p.weights[2] = {v.type, v.data(), v.n_rows, nullptr, 80};
  p.n_weights = 3;
  p.out = out.data();
  p.out_stride = kStride;
  const DeviceInt8 scratch(n_rows, kCols);
  if (!project_in_is_one_kernel(p, how)) p.a = scratch.rows();
  project_in(p, how);

  std::vector<float> want = untouched;
  for (int r = 0; r < n_rows; ++r) {
    HostInt8 host(1, kCols);
    host.quantize(0, device_norm(row_of(x, r, kCols), norm, p.eps));
    float* to = want.data() + r * kStride;
    for (int i = 0; i < 64; ++i) *to++ = q.dot(i, host.view(0));
    for (int i = 0; i < 16; ++i) *to++ = k.dot(i, host.view(0)) + bias[static_cast<size_t>(i)];
    for (int i = 0; i < 24; ++i) *to++ = v.dot(i, host.view(0));
  }
  expect_same_bits(want, out.get(),
                   cat(quant::type_name(types[0]), ", ", quant::type_name(types[1]), ", ",
                       quant::type_name(types[2]), ", ", n_rows, " rows"));
}

TEST_F(ProjectTest, AddsEveryTypeToTheBit) {
  for (const Type type : woven_types()) {
    for (const int n_cols : {32, 96, 256, 768, 800, 2048, 2880, 4096, 9216}) {
      if (n_cols % static_cast<int>(quant::type_info(type).block_elems) != 0) continue;
      for (const int n_rows : {1, 4, 11}) check_add(type, n_rows, n_cols, 72, true, how);
    }
    for (const int n_rows : {1, 2, 3, 8, 16}) {
      check_add(type, n_rows, 1280, 40, n_rows % 2 == 0, how);
    }
  }
}

// Weights of one type, of two that are one launch (in either order, and apart), and of others.
TEST_F(ProjectTest, ProjectsNormalisedRowsOfSeveralWeightsToTheBit) {
  constexpr Type kCases[][3] = {
      {Type::q4_k, Type::q4_k, Type::q4_k}, {Type::q4_k, Type::q4_k, Type::q6_k},
      {Type::q6_k, Type::q4_k, Type::q6_k}, {Type::q6_k, Type::q5_k, Type::q5_k},
      {Type::q5_k, Type::q4_k, Type::q4_k}, {Type::q3_k, Type::q3_k, Type::q5_k},
      {Type::q4_k, Type::q8_0, Type::q8_0}, {Type::q8_0, Type::q6_k, Type::q8_0},
      {Type::q4_0, Type::q5_1, Type::q4_0}, {Type::q4_k, Type::q6_k, Type::q8_0}};
  for (const auto& types : kCases) {
    for (const int n_rows : {1, 2, 5, 16}) check_projections(types, n_rows, how);
  }
}

// Of a single row, more stripes than the card's blocks take at once: each has some of the rest, or
// (q8_0, which leaves no room for it) there are more blocks. The last rows of a type are no whole
// blocks.
TEST_F(ProjectTest, ProjectsMoreStripesThanBlocksHaveToTheBit) {
  constexpr int kCols = 2048;
  constexpr struct {
    Type first, second;
    int n_first, n_second;
  } kCases[] = {
      {Type::q6_k, Type::q4_k, 8192, 4096 + 64}, {Type::q4_k, Type::q6_k, 4096 + 72, 8192 + 8},
      {Type::q4_k, Type::q4_k, 8192, 1024 + 40}, {Type::q5_k, Type::q4_k, 8448 + 8, 1024},
      {Type::q4_k, Type::q4_k, 8192, 8704},      {Type::q8_0, Type::q8_0, 8192, 1024 + 8}};
  const auto x = random_values(kCols, 4), norm = random_values(kCols, 5);
  const auto bias = random_values(4096 + 72, 6);
  const Device<float> device_x(x), device_norm_weight(norm), device_bias(bias);
  HostInt8 host(1, kCols);
  host.quantize(0, device_norm(x, norm, 1e-6f));
  const DeviceInt8 a8(1, kCols);
  for (const auto& c : kCases) {
    const Weight a(c.first, kCols, c.n_first, 1), b(c.second, kCols, c.n_second, 2);
    const bool has_bias = c.n_first <= std::ssize(bias);
    const Device<float> out(static_cast<size_t>(c.n_first + c.n_second));
    ProjectIn p;
    p.x = device_x.data();
    p.norm = device_norm_weight.data();
    p.eps = 1e-6f;
    p.n_rows = 1;
    p.n_cols = kCols;
    p.weights[p.n_weights++] = {a.type, a.data(), c.n_first,
                                has_bias ? device_bias.data() : nullptr, 0};
    p.weights[p.n_weights++] = {b.type, b.data(), c.n_second, nullptr, c.n_first};
    p.out = out.data();
    p.out_stride = c.n_first + c.n_second;
    p.a = a8.rows();  // where project_row.cu's memory does not fit
    project_in(p, how);
    std::vector<float> want;
    for (int i = 0; i < c.n_first; ++i) {
      const float dot = a.dot(i, host.view(0));
      want.push_back(has_bias ? dot + bias[static_cast<size_t>(i)] : dot);
    }
    for (int i = 0; i < c.n_second; ++i) want.push_back(b.dot(i, host.view(0)));
    expect_same_bits(
        want, out.get(),
        cat(type_name(c.first), " ", c.n_first, ", ", type_name(c.second), " ", c.n_second));
  }
}

// A single row of Q8_0, and one of 8,192 columns of Q6_K, is not for project_row.cu on sm_75.
TEST_F(ProjectTest, BlocksWithLittleSharedMemoryToTheBit) {
  for (const int kilobytes : {64, 99}) {
    Launch small = with_little_shared(how, kilobytes);
    small.overlaps = false;
    for (const Type type : woven_types()) {
      for (const int n_cols : {768, 2048, 8192, 9216}) check_add(type, 1, n_cols, 72, true, small);
    }
    for (const int n_rows : {1, 16}) {
      check_projections({Type::q8_0, Type::q8_0, Type::q8_0}, n_rows, small);
      check_projections({Type::q4_k, Type::q8_0, Type::q6_k}, n_rows, small);
    }
    // As many tasks as logits have.
    check_add(Type::q8_0, 1, 2048, 64 * 1024, true, small);
    check_add(Type::q8_0, 3, 2048, 64 * 1024, true, small);
  }
}

// So many weight rows that a block takes several tasks.
TEST_F(ProjectTest, LogitsOfChosenRowsToTheBit) {
  constexpr int kCols = 768, kVocab = 8 * 9001;
  const Weight weight(Type::q6_k, kCols, kVocab, 1);
  const auto x = random_values(4 * kCols, 4), norm = random_values(kCols, 5);
  const Device<float> device_x(x), device_norm_weight(norm);
  for (const std::vector<int32_t>& rows : {std::vector<int32_t>{2}, {3, 0, 1}}) {
    const Device<int32_t> device_rows(rows);
    const auto n_rows = static_cast<int>(rows.size());
    const Device<float> out(rows.size() * kVocab);
    Logits p;
    p.x = device_x.data();
    p.rows = device_rows.data();
    p.norm = device_norm_weight.data();
    p.eps = 1e-6f;
    p.n_rows = n_rows;
    p.n_cols = kCols;
    p.weight = {weight.type, weight.data(), kVocab, nullptr};
    p.logits = out.data();
    const DeviceInt8 scratch(n_rows, kCols);
    p.a = scratch.rows();
    logits(p, how);
    std::vector<float> want;
    for (const int r : rows) {
      HostInt8 host(1, kCols);
      host.quantize(0, device_norm(row_of(x, r, kCols), norm, p.eps));
      for (int i = 0; i < kVocab; ++i) want.push_back(weight.dot(i, host.view(0)));
    }
    expect_same_bits(want, out.get(), cat(n_rows, " rows"));
  }
}

// The device's norm itself: n products and sums of f32, a root and three more roundings.
TEST_F(ProjectTest, TheNormOfTheseTestsIsWithinItsBound) {
  for (const size_t n : {size_t{32}, size_t{2048}, size_t{2880}}) {
    const auto x = random_values(n, 1), w = random_values(n, 2);
    const auto got = device_norm(x, w, 1e-6f);
    double squares = 0;
    for (const float v : x) squares += double{v} * v;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + double{1e-6f});
    // Sums of squares err by less than 4 + 5 + n/4096 + 5 roundings of the whole, the root halves.
    const double u = 0x1p-24, bound = (20 + static_cast<double>(n) / 4096) / 2 * u + 6 * u;
    for (size_t i = 0; i < n; ++i) {
      const double want = x[i] * scale * w[i];
      ASSERT_LE(std::abs(got[i] - want), bound * std::abs(want)) << n << " columns, index " << i;
    }
  }
}

}  // namespace
}  // namespace sluice::backend::cuda::test
