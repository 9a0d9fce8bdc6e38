// Where things stand in a KV page: every value and scale has a place of its own inside the page,
// aligned as a GPU reads it; and rows stored there are GGUF's numbers.
// SPDX-License-Identifier: Apache-2.0
#include "backend/kv_page.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/kv_rows.h"
#include "quant/decode.h"
#include "quant/encode.h"
#include "unit/backend/expect.h"
#include "unit/backend/samples.h"

namespace sluice::backend::test {
namespace {

using quant::Type;

constexpr Type kPageTypes[] = {Type::f32, Type::f16, Type::bf16, Type::q8_0, Type::q4_0};

// A page of a device: f16 as the attention kernel reads it, and no more bytes than GGUF's blocks.
static_assert(kv_page(Type::f16, 4, 128, 64).row_at(3, 2, 5) == ((3 * 4 + 2) * 64 + 5) * 256);
static_assert(kv_page(Type::q8_0, 4, 128, 64).head_bytes == 64 * 4 * 34);
static_assert(kv_page(Type::q4_0, 4, 128, 64).head_bytes == 64 * 4 * 18);
static_assert(kv_page(Type::q8_0, 4, 128, 64).scales_at == 64 * 128);
static_assert(kv_page(Type::q4_0, 4, 128, 64).scales_at == 64 * 64);

TEST(KvPage, EveryByteHasOnePlaceInsideThePage) {
  for (const Type type : kPageTypes) {
    for (const int head_dim : {32, 96, 128}) {
      for (const int page_tokens : {1, 3, 64}) {
        const KvPage page = kv_page(type, 3, head_dim, page_tokens);
        std::vector<int> n_uses(static_cast<size_t>(2 * page.page_bytes()), 0);
        const auto use = [&](int64_t first, int64_t n) {
          for (int64_t i = first; i < first + n; ++i) ++n_uses.at(static_cast<size_t>(i));
        };
        for (int id = 0; id < 2; ++id) {
          for (int head = 0; head < 3; ++head) {
            for (int token = 0; token < page_tokens; ++token) {
              use(page.row_at(id, head, token), page.row_bytes);
              use(page.scales_of(id, head, token), page.scale_bytes);
            }
          }
        }
        const std::string what = name_of(type) + " heads of " + std::to_string(head_dim) +
                                 " pages of " + std::to_string(page_tokens);
        EXPECT_LE(std::ranges::max(n_uses), 1) << what;
        const auto n_used = static_cast<uint64_t>(std::ranges::count(n_uses, 1));
        EXPECT_EQ(n_used,
                  static_cast<uint64_t>(2 * 3 * page_tokens) * quant::row_bytes(type, head_dim))
            << what;
      }
    }
  }
}

TEST(KvPage, QuantisedRowsBeginOnBoundariesOf16Bytes) {
  for (const Type type : {Type::q8_0, Type::q4_0}) {
    for (const int page_tokens : {1, 3, 64}) {
      const KvPage page = kv_page(type, 2, 96, page_tokens);
      EXPECT_EQ(page.head_bytes % 16, 0) << name_of(type) << " pages of " << page_tokens;
      EXPECT_EQ(page.row_bytes % 16, 0) << name_of(type);
      EXPECT_EQ(page.scales_at % 16, 0) << name_of(type) << " pages of " << page_tokens;
    }
  }
}

TEST(KvPage, RowsComeBackAsGgufDecodesThem) {
  constexpr int kDim = 96;
  for (const Type type : kPageTypes) {
    const std::vector<float> values = random_values(kDim, 3, 2.0f);
    std::vector<std::byte> gguf(quant::row_bytes(type, kDim));
    std::vector<float> expected(kDim), got(kDim, -1);
    quant::encode_row(type, values, gguf.data());
    quant::decode_row(type, gguf.data(), expected);
    std::vector<std::byte> row(static_cast<size_t>(kv_page(type, 1, kDim, 1).row_bytes));
    std::vector<std::byte> scales(6);
    cpu::store_kv_row(type, values, row.data(), scales.data());
    cpu::load_kv_row(type, row.data(), scales.data(), got);
    expect_same_bits(expected, got, name_of(type));
  }
}

// Every integer of a type, against the formulas of kv_page.h.
TEST(KvPage, LoadsEveryIntegerFromItsPlace) {
  const uint16_t half = 0x3e00;  // 1.5
  std::vector<std::byte> row(32), scales(2);
  std::vector<float> got(32), expected(32);
  std::memcpy(scales.data(), &half, 2);
  for (int first = -128; first < 128; first += 32) {
    for (int i = 0; i < 32; ++i) {
      row[static_cast<size_t>(i)] = static_cast<std::byte>(first + i);
      expected[static_cast<size_t>(i)] = 1.5f * static_cast<float>(first + i);
    }
    cpu::load_kv_row(Type::q8_0, row.data(), scales.data(), got);
    expect_same_bits(expected, got, "q8_0 from " + std::to_string(first));
  }
  for (int i = 0; i < 16; ++i) {
    row[static_cast<size_t>(i)] = static_cast<std::byte>(i | (15 - i) << 4);
    expected[static_cast<size_t>(i)] = 1.5f * static_cast<float>(i - 8);
    expected[static_cast<size_t>(i + 16)] = 1.5f * static_cast<float>(7 - i);
  }
  cpu::load_kv_row(Type::q4_0, row.data(), scales.data(), got);
  expect_same_bits(expected, got, "q4_0");
}

}  // namespace
}  // namespace sluice::backend::test
