// The page bookkeeping of the KV cache, its layout in memory, and the types it refuses.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/random.h"
#include "base/units.h"
#include "policy/plan/pricing.h"
#include "unit/model/tiny_model.h"

namespace sluice::engine::test {
namespace {

using model::test::error_of;
using model::test::expect_contains;
using quant::Type;

struct CacheTest : testing::Test {
  CacheTest() : ops(backend::make_cpu_ops(pool)) {
    config.n_layers = 3;
    config.n_kv_heads = 2;
    config.head_dim = 64;
    config.memory.assign(3, {.n_kv_heads = 2});
  }

  ThreadPool pool{1};
  std::unique_ptr<backend::Ops> ops;
  model::Config config;
};

std::vector<int32_t> pages_of(const KvCache& cache, int sequence) {
  const int32_t* first = cache.page_table() + sequence * cache.table_stride();
  return {first, first + cache.table_stride()};
}

// Pages for the first n_positions of a sequence that shares none.
void reserve(KvCache& cache, int sequence, int n_positions) {
  const KvWrite write{SequenceId(sequence), 0, n_positions};
  cache.reserve({&write, 1});
}

int n_held(const KvCache& cache, int sequence) {
  const auto pages = pages_of(cache, sequence);
  return static_cast<int>(std::ranges::count_if(pages, [](int32_t page) { return page >= 0; }));
}

TEST_F(CacheTest, TakesPagesAsPositionsNeedThem) {
  KvCache cache(backend::memory_of(*ops), config,
                {.n_sequences = 2, .n_ctx = 10, .page_tokens = 4});
  EXPECT_EQ(cache.table_stride(), 3);
  EXPECT_EQ(cache.n_free_pages(), 6);
  for (const auto& [n_positions, n_pages] :
       {std::pair(0, 0), {1, 1}, {4, 1}, {3, 1}, {5, 2}, {8, 2}, {9, 3}, {10, 3}, {10, 3}}) {
    reserve(cache, 0, n_positions);
    EXPECT_EQ(n_held(cache, 0), n_pages) << n_positions;
    EXPECT_EQ(cache.n_free_pages(), 6 - n_pages) << n_positions;
  }
  EXPECT_EQ(n_held(cache, 1), 0);
}

TEST_F(CacheTest, GivesBackThePagesWhollyBehindACut) {
  KvCache cache(backend::memory_of(*ops), config,
                {.n_sequences = 2, .n_ctx = 10, .page_tokens = 4});
  reserve(cache, 0, 10);
  reserve(cache, 1, 10);
  const auto before = pages_of(cache, 1);
  for (const auto& [n_positions, n_pages] :
       {std::pair(10, 3), {9, 3}, {8, 2}, {5, 2}, {4, 1}, {1, 1}, {0, 0}, {0, 0}}) {
    cache.truncate(SequenceId(1), n_positions);
    EXPECT_EQ(n_held(cache, 1), n_pages) << n_positions;
    EXPECT_EQ(cache.n_free_pages(), 3 - n_pages) << n_positions;
    for (int i = 0; i < n_pages; ++i) {
      EXPECT_EQ(pages_of(cache, 1)[static_cast<size_t>(i)], before[static_cast<size_t>(i)])
          << "a page in use must stay where it is";
    }
  }
  EXPECT_EQ(n_held(cache, 0), 3) << "the other sequence keeps its own";
}

// Random growth and cuts against a plain model of it: a length for each sequence.
TEST_F(CacheTest, NoPageIsEverInTwoPlaces) {
  constexpr int kSequences = 4, kContext = 37, kPageTokens = 5, kStride = 8;
  KvCache cache(backend::memory_of(*ops), config,
                {.n_sequences = kSequences, .n_ctx = kContext, .page_tokens = kPageTokens});
  ASSERT_EQ(cache.table_stride(), kStride);
  std::vector<int> lengths(kSequences, 0);
  for (uint64_t round = 0; round < 3000; ++round) {
    const auto s = static_cast<size_t>(random_bits(1, round) % kSequences);
    const int n = static_cast<int>(random_bits(2, round) % (kContext + 1));
    const auto before = pages_of(cache, static_cast<int>(s));
    if (n >= lengths[s]) {
      reserve(cache, static_cast<int>(s), n);
    } else {
      cache.truncate(SequenceId(static_cast<int32_t>(s)), n);
    }
    const int n_kept = (std::min(n, lengths[s]) + kPageTokens - 1) / kPageTokens;
    lengths[s] = n;

    std::set<int32_t> held;
    int n_pages = 0;
    for (int q = 0; q < kSequences; ++q) {
      const auto pages = pages_of(cache, q);
      for (int i = 0; i < kStride; ++i) {
        const int32_t page = pages[static_cast<size_t>(i)];
        const bool needed = i * kPageTokens < lengths[static_cast<size_t>(q)];
        ASSERT_EQ(page >= 0, needed) << "round " << round << " sequence " << q << " place " << i;
        if (!needed) continue;
        ++n_pages;
        ASSERT_LT(page, kSequences * kStride);
        ASSERT_TRUE(held.insert(page).second) << "round " << round << ": page " << page << " twice";
      }
    }
    ASSERT_EQ(cache.n_free_pages(), kSequences * kStride - n_pages) << "round " << round;
    const auto after = pages_of(cache, static_cast<int>(s));
    ASSERT_TRUE(std::equal(before.begin(), before.begin() + n_kept, after.begin()))
        << "round " << round << ": a page in use moved";
  }
}

TEST_F(CacheTest, EverySequenceCanBeFilledToItsContext) {
  KvCache cache(backend::memory_of(*ops), config,
                {.n_sequences = 3, .n_ctx = 65, .page_tokens = 64});
  for (int s = 0; s < 3; ++s) reserve(cache, s, 65);
  EXPECT_EQ(cache.n_free_pages(), 0);
  cache.truncate(SequenceId(1), 0);
  EXPECT_EQ(cache.n_free_pages(), 2);
  reserve(cache, 1, 65);
  EXPECT_EQ(cache.n_free_pages(), 0);
}

// Every layer's keys and values have their own room of pages. A part of a page, for one head, is
// three rows of 64 values; of a quantised type it ends on a boundary of 16 bytes.
TEST_F(CacheTest, LayersStandApartInAlignedMemory) {
  struct Case {
    Type k, v;
    uint64_t k_head, v_head;  // bytes of a part
  };
  for (const Case& c : {Case{Type::f32, Type::f32, 768, 768}, Case{Type::f16, Type::bf16, 384, 384},
                        Case{Type::q8_0, Type::q4_0, 208, 112}}) {
    KvCache cache(backend::memory_of(*ops), config,
                  {.k_type = c.k, .v_type = c.v, .n_sequences = 1, .n_ctx = 7, .page_tokens = 3});
    const uint64_t n_parts = 3 * 2;
    const uint64_t k_bytes = n_parts * c.k_head, v_bytes = n_parts * c.v_head;
    ASSERT_EQ(cache.layers().size(), 3u);
    EXPECT_EQ(cache.n_bytes(), 3 * (round_up(k_bytes, 64) + round_up(v_bytes, 64)));
    for (size_t i = 0; i < 3; ++i) {
      const backend::KvLayerView& layer = cache.layers()[i];
      EXPECT_EQ(layer.k_type, c.k);
      EXPECT_EQ(layer.v_type, c.v);
      EXPECT_EQ(layer.page_tokens, 3);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(layer.k) % 64, 0u);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(layer.v) % 64, 0u);
      std::memset(layer.k, static_cast<int>(2 * i), k_bytes);
      std::memset(layer.v, static_cast<int>(2 * i + 1), v_bytes);
    }
    for (size_t i = 0; i < 3; ++i) {
      const backend::KvLayerView& layer = cache.layers()[i];
      for (uint64_t b = 0; b < k_bytes; ++b) ASSERT_EQ(layer.k[b], std::byte(2 * i)) << b;
      for (uint64_t b = 0; b < v_bytes; ++b) ASSERT_EQ(layer.v[b], std::byte(2 * i + 1)) << b;
    }
  }
}

// The planner knows nothing of pages' layout: it prices blocks of GGUF.
TEST_F(CacheTest, TakesTheMemoryThatThePlannerPrices) {
  for (const auto& [type, priced] : {std::pair(Type::f32, policy::KvType::f32),
                                     {Type::f16, policy::KvType::f16},
                                     {Type::bf16, policy::KvType::bf16},
                                     {Type::q8_0, policy::KvType::q8_0},
                                     {Type::q4_0, policy::KvType::q4_0}}) {
    for (const int head_dim : {32, 64, 96, 128, 256}) {
      config.head_dim = head_dim;
      const KvCache cache(backend::memory_of(*ops), config,
                          {.k_type = type,
                           .v_type = Type::f16,
                           .n_sequences = 3,
                           .n_ctx = 130,
                           .page_tokens = policy::kKvPageTokens});
      const policy::LayerShape layer{
          .n_kv_heads = config.n_kv_heads, .k_head_dim = head_dim, .v_head_dim = head_dim};
      const policy::Workload work{.n_ctx = 130, .n_sequences = 3, .k_type = priced};
      EXPECT_EQ(cache.n_bytes(), 3 * policy::kv_bytes(layer, work))
          << quant::type_name(type) << " heads of " << head_dim;
    }
  }
}

TEST_F(CacheTest, RefusesATypeThatDoesNotFitTheHead) {
  config.head_dim = 80;
  for (const Type type : {Type::q8_0, Type::q4_0}) {
    for (const bool is_key : {true, false}) {
      KvOptions options{.n_sequences = 1, .n_ctx = 8};
      (is_key ? options.k_type : options.v_type) = type;
      const std::string text = error_of(
          Errc::bad_request, [&] { KvCache cache(backend::memory_of(*ops), config, options); });
      expect_contains(text, std::string(quant::type_name(type)));
      expect_contains(text, "multiple of 32");
      expect_contains(text, "have 80");
      expect_contains(text, "use f16");
    }
  }
  for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
    EXPECT_NO_THROW(KvCache(backend::memory_of(*ops), config,
                            {.k_type = type, .v_type = type, .n_sequences = 1, .n_ctx = 8}));
  }
}

using CacheDeathTest = CacheTest;

TEST_F(CacheDeathTest, StopsAtAPositionOrSequenceItDoesNotHave) {
  KvCache cache(backend::memory_of(*ops), config, {.n_sequences = 2, .n_ctx = 8, .page_tokens = 4});
  EXPECT_DEATH(reserve(cache, 0, 9), "CHECK");
  EXPECT_DEATH(reserve(cache, 2, 1), "CHECK");
  EXPECT_DEATH(reserve(cache, -1, 1), "CHECK");
  EXPECT_DEATH(cache.truncate(SequenceId(0), -1), "CHECK");
}

}  // namespace
}  // namespace sluice::engine::test
