// Every kernel this CPU can run equals the scalar reference of quant/ in every bit: all types, row
// and column counts, numbers of inputs, extreme weights, odd addresses; and reads nothing behind
// the rows.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernels/kernels.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/quantized_rows.h"
#include "quant/dot.h"
#include "unit/backend/expect.h"
#include "unit/backend/routing.h"

namespace sluice::backend::test {
namespace {

using cpu::Kernels;
using cpu::kInputsTogether;
using cpu::QuantizedInputs;
using cpu::QuantizedRows;
using quant::Type;

std::vector<Type> quantised_types() {
  std::vector<Type> types;
  for (const Type type : quant::supported_types()) {
    if (!quant::is_float(type)) types.push_back(type);
  }
  return types;
}

// Bytes that end where unreadable memory begins.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t n) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
    mapped_ = (n + page - 1) / page * page + page;
    void* const memory =
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    base_ = static_cast<std::byte*>(memory);
    EXPECT_EQ(mprotect(base_ + mapped_ - page, page, PROT_NONE), 0);
    data_ = base_ + mapped_ - page - n;
  }
  ~GuardedBytes() { munmap(base_, mapped_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  std::byte* data() const { return data_; }

 private:
  size_t mapped_ = 0;
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
};

// Quantised rows, alone for the reference and side by side for the kernels.
struct Inputs {
  Inputs(int64_t n_rows, int64_t n_columns)
      : n_cols(n_columns), q(static_cast<size_t>(n_rows * n_cols)), d(q.size() / 32), y(d) {
    const std::vector<float> x = random_values(n_rows * n_cols, 77, 1.0f);
    quant::quantize_activation(x, q.data(), d.data(), y.data());
  }

  quant::ActivationView row(int64_t r) const {
    return {q.data() + r * n_cols, d.data() + r * n_cols / 32, y.data() + r * n_cols / 32};
  }

  // The first n rows.
  std::vector<QuantizedInputs> groups(int64_t n) {
    const cpu::RowBatch batch{cpu::kInputsTogether, n};  // not the first in its memory
    quantized.reserve(batch.end(), n_cols);
    sums.reserve(n, n_cols);
    std::vector<QuantizedInputs> alone, groups;
    for (int64_t r = 0; r < n; ++r) {
      const auto [values, scales, y_r] = row(r);
      sums.set(r, values);
      alone.push_back({values, scales, y_r, sums.by_16(r), sums.by_32(r), 1});
    }
    for (int64_t g = 0; g < batch.n_groups(); ++g) {
      const std::span rest = std::span(alone).subspan(static_cast<size_t>(g * kInputsTogether));
      quantized.gather(batch, g, rest.first(std::min<size_t>(rest.size(), kInputsTogether)));
      groups.push_back(quantized.group(batch, g));
    }
    return groups;
  }

  int64_t n_cols;
  std::vector<int8_t> q;
  std::vector<float> d, y;
  cpu::RowSums sums;
  QuantizedRows quantized;
};

// The number of results of `rows` that differ from the reference's of w, written or not.
int n_different(const Kernels& kernels, Type type, const cpu::WeightRows& rows,
                const cpu::WeightRows& w, Inputs& in, int64_t n_inputs) {
  const int64_t stride = w.n_rows + 3;
  std::vector<float> out(static_cast<size_t>(n_inputs * stride), -777.0f);
  kernels.multiply_rows(type)(rows, in.groups(n_inputs), out.data(), stride);
  const uint64_t row_bytes = quant::row_bytes(type, w.n_cols);
  int n = 0;
  for (int64_t t = 0; t < n_inputs; ++t) {
    for (int64_t r = 0; r < stride; ++r) {
      const float found = out[static_cast<size_t>(t * stride + r)];
      float expected = -777.0f;  // behind the rows nothing is touched
      if (r < w.n_rows) {
        expected =
            quant::dot(type, w.data + static_cast<uint64_t>(r) * row_bytes, w.n_cols, in.row(t));
      }
      n += std::memcmp(&found, &expected, sizeof(float)) != 0;
    }
  }
  return n;
}

// The same for the rows as they are, and woven into stripes where they are whole ones.
int n_different(const Kernels& kernels, Type type, const cpu::WeightRows& w, Inputs& in,
                int64_t n_inputs) {
  int n = n_different(kernels, type, w, w, in, n_inputs);
  if (w.n_rows % quant::kStripeRows == 0) {
    const uint64_t row_bytes = quant::row_bytes(type, w.n_cols);
    const GuardedBytes woven(row_bytes * static_cast<uint64_t>(w.n_rows));
    for (int64_t r = 0; r < w.n_rows; r += quant::kStripeRows) {
      const uint64_t at = static_cast<uint64_t>(r) * row_bytes;
      quant::weave_rows(type, w.n_cols, w.data + at, woven.data() + at);
    }
    n += n_different(kernels, type, {woven.data(), w.n_rows, w.n_cols, quant::Layout::stripes}, w,
                     in, n_inputs);
  }
  return n;
}

TEST(Kernels, TheScalarReferenceIsAlwaysThereAndTheBestIsTheLast) {
  EXPECT_STREQ(cpu::usable_kernels().front().name, "scalar");
  EXPECT_STREQ(cpu::best_kernels().name, cpu::usable_kernels().back().name);
#if defined(__x86_64__)
  EXPECT_GE(cpu::usable_kernels().size(), 2u);
#endif
  // Set by who knows the CPU (tests/neon/run.sh).
  const char* const expected = std::getenv("SLUICE_BEST_KERNELS");
  if (expected != nullptr) {
    EXPECT_STREQ(cpu::best_kernels().name, expected);
  }
}

TEST(Kernels, EqualTheReferenceForAllTypesAndShapes) {
  for (const Type type : quantised_types()) {
    const int64_t block = quant::type_info(type).block_elems;
    for (const int64_t n_cols : {block, int64_t{256}, int64_t{768}, 1024 + block}) {
      for (const int64_t n_rows : {1, 7, 8, 16, 37}) {
        const uint64_t row_bytes = quant::row_bytes(type, n_cols);
        const GuardedBytes w(row_bytes * static_cast<uint64_t>(n_rows));
        quant::random_row_blocks(type, 5, 0, n_rows * n_cols / block, 0.1f, w.data());
        Inputs in(15, n_cols);
        for (const Kernels& kernels : cpu::usable_kernels()) {
          for (const int64_t n_inputs : {1, 2, 3, 4, 7, 8, 9, 15}) {
            EXPECT_EQ(n_different(kernels, type, {w.data(), n_rows, n_cols}, in, n_inputs), 0)
                << kernels.name << " " << name_of(type) << " [" << n_cols << ", " << n_rows
                << "] x " << n_inputs;
          }
        }
      }
    }
  }
}

// All bits set, or none, in everything but the float scales: the largest sums a type can have.
TEST(Kernels, EqualTheReferenceForExtremeWeightsAndInputs) {
  constexpr int64_t kCols = 512, kRows = 24;
  for (const Type type : quantised_types()) {
    const uint64_t n_bytes = quant::row_bytes(type, kCols) * kRows;
    for (const auto fill : {std::byte{0x00}, std::byte{0xff}, std::byte{0x80}, std::byte{0x7f}}) {
      std::vector<std::byte> w(n_bytes);
      const int64_t n_blocks = kRows * kCols / quant::type_info(type).block_elems;
      quant::random_row_blocks(type, 9, 0, n_blocks, 0.1f, w.data());
      const uint32_t block_bytes = quant::type_info(type).block_bytes;
      for (int64_t b = 0; b < n_blocks; ++b) {  // d stands in the first 4 bytes or the last
        std::byte* const at = w.data() + static_cast<uint64_t>(b) * block_bytes;
        const uint32_t n_last = type == Type::q2_k ? 4 : 2;
        std::fill(at + 4, at + block_bytes - n_last, fill);
      }
      Inputs in(9, kCols);
      for (size_t i = 0; i < kCols; ++i) in.q[i] = i % 64 < 48 ? 127 : -127;
      for (const Kernels& kernels : cpu::usable_kernels()) {
        const cpu::WeightRows rows{w.data(), kRows, kCols};
        EXPECT_EQ(n_different(kernels, type, rows, in, 1), 0)
            << kernels.name << " " << name_of(type) << " " << static_cast<int>(fill);
        EXPECT_EQ(n_different(kernels, type, rows, in, 9), 0)
            << kernels.name << " " << name_of(type) << " " << static_cast<int>(fill);
      }
    }
  }
}

// Gives each row of 16 its own scale: zeros, subnormal f16, the largest; for MXFP4, exponents that
// are subnormal in f32 (0 and 1) or make the product with the input's scale subnormal.
void set_extreme_scales(Type type, int64_t n_cols, std::vector<std::byte>& w) {
  constexpr uint16_t kHalves[16] = {0x0000, 0x8000, 0x0001, 0x8001, 0x0002, 0x0155, 0x03ff, 0x83ff,
                                    0x0400, 0x8400, 0x0401, 0x3c00, 0x3555, 0xb555, 0x7bff, 0xfbff};
  constexpr uint8_t kExponents[16] = {0, 1, 2, 3, 4, 5, 6, 7, 17, 64, 120, 127, 128, 140, 200, 230};
  const quant::TypeInfo& info = quant::type_info(type);
  size_t d_at = 0;
  if (type == Type::q2_k) d_at = info.block_bytes - 4;
  if (type == Type::q3_k || type == Type::q6_k) d_at = info.block_bytes - 2;
  const size_t blocks_per_row = static_cast<size_t>(n_cols) / info.block_elems;
  for (size_t b = 0; b < w.size() / info.block_bytes; ++b) {
    std::byte* const d = w.data() + b * info.block_bytes + d_at;
    const size_t row = b / blocks_per_row;
    if (type == Type::mxfp4) {
      *d = std::byte{kExponents[row]};
    } else {
      std::memcpy(d, &kHalves[row], 2);
    }
  }
}

TEST(Kernels, EqualTheReferenceForExtremeScales) {
  constexpr int64_t kCols = 512, kRows = 16;
  Inputs in(5, kCols);
  for (const Type type : quantised_types()) {
    std::vector<std::byte> w(quant::row_bytes(type, kCols) * kRows);
    const int64_t n_blocks = kRows * kCols / quant::type_info(type).block_elems;
    quant::random_row_blocks(type, 5, 0, n_blocks, 0.1f, w.data());
    set_extreme_scales(type, kCols, w);
    for (const Kernels& kernels : cpu::usable_kernels()) {
      for (const int64_t n_inputs : {1, 5}) {
        EXPECT_EQ(n_different(kernels, type, {w.data(), kRows, kCols}, in, n_inputs), 0)
            << kernels.name << " " << name_of(type) << " x " << n_inputs;
      }
    }
  }
}

TEST(Kernels, WeightsAndInputsMayLieAtAnyAddress) {
  constexpr int64_t kCols = 256, kRows = 17;
  Inputs in(3, kCols);
  for (const Type type : quantised_types()) {
    std::vector<std::byte> memory(quant::row_bytes(type, kCols) * kRows + 3);
    std::byte* const w = memory.data() + 3;
    quant::random_row_blocks(type, 5, 0, kRows * kCols / quant::type_info(type).block_elems, 0.1f,
                             w);
    for (const Kernels& kernels : cpu::usable_kernels()) {
      EXPECT_EQ(n_different(kernels, type, {w, kRows, kCols}, in, 3), 0) << kernels.name;
    }
  }
}

TEST(QuantizedRows, SetsWhatItGathers) {
  constexpr int64_t kCols = 96;
  for (const int64_t n_rows : {1, 3, 8, 13}) {
    Inputs in(n_rows, kCols);
    const std::vector<float> x = random_values(n_rows * kCols, 77, 1.0f);
    const cpu::RowBatch batch{8, n_rows};
    QuantizedRows rows;
    rows.reserve(batch.end(), kCols);
    for (int64_t r = 0; r < n_rows; ++r) {
      rows.set(batch, r, 32, kCols - 32, x.data() + r * kCols + 32);
      rows.set(batch, r, 0, 32, x.data() + r * kCols);
    }
    const std::vector<QuantizedInputs> gathered = in.groups(n_rows);
    for (int64_t g = 0; g < batch.n_groups(); ++g) {
      const QuantizedInputs a = rows.group(batch, g), b = gathered[static_cast<size_t>(g)];
      ASSERT_EQ(a.n_rows, b.n_rows);
      const auto n = static_cast<size_t>(a.n_rows * kCols);
      EXPECT_EQ(std::memcmp(a.q, b.q, n), 0) << n_rows;
      EXPECT_EQ(std::memcmp(a.d, b.d, n / 32 * sizeof(float)), 0) << n_rows;
      EXPECT_EQ(std::memcmp(a.y, b.y, n / 32 * sizeof(float)), 0) << n_rows;
      EXPECT_EQ(std::memcmp(a.sum16, b.sum16, n / 16 * sizeof(float)), 0) << n_rows;
      EXPECT_EQ(std::memcmp(a.sum32, b.sum32, n / 32 * sizeof(float)), 0) << n_rows;
    }
  }
}

// Whole operations with every set of kernels, threads and numbers of rows: the same bytes.
TEST(Kernels, ExpertsGiveTheSameBytesWithAllOfThem) {
  constexpr int64_t kModel = 512, kHidden = 256;
  const Weight gate(Type::q4_k, {kModel, kHidden, 8}, 1, 0.1f);
  const Weight up(Type::q5_0, {kModel, kHidden, 8}, 2, 0.1f);
  const Weight down(Type::q6_k, {kHidden, kModel, 8}, 3, 0.1f);
  const ExpertsView experts{.gate = gate.view(), .up = up.view(), .down = down.view()};
  for (const int64_t n_rows : {1, 5, 40}) {
    ExpertInput a(Rows::random(n_rows, kModel, 4));
    Routing routing = Routing::random(n_rows, 3, 8, 6);
    std::vector<float> expected;
    for (const Kernels& kernels : cpu::usable_kernels()) {
      for (const int n_threads : {1, 3}) {
        ThreadPool pool(n_threads);
        std::vector<float> x(static_cast<size_t>(n_rows * kModel), 0.5f);
        make_cpu_ops(pool, kernels)
            ->experts(experts, a.view(), routing.view(), {x.data(), n_rows, kModel});
        if (expected.empty()) expected = x;
        EXPECT_EQ(std::memcmp(x.data(), expected.data(), x.size() * sizeof(float)), 0)
            << kernels.name << ", " << n_threads << " threads, " << n_rows << " rows";
      }
    }
  }
}

}  // namespace
}  // namespace sluice::backend::test
