// Which chunk of a prompt the planner chooses where nobody asked for one.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "unit/policy/planner_shapes.h"

namespace sluice::policy::planner_test {
namespace {

TEST(PlannerChunk, IsTheUsualOneOnTheCpu) {
  EXPECT_EQ(make_plan(qwen3_30b(), without_gpu(), {}).work.prefill_chunk, 512);
  EXPECT_EQ(make_plan(qwen3_30b(), without_gpu(), {.n_ctx = 100}).work.prefill_chunk, 100);
}

TEST(PlannerChunk, IsWideWhereExpertsCrossTheLink) {
  Hardware slow_link = desktop();
  slow_link.link_gbps = 6.0;
  const Plan plan = make_plan(qwen3_30b(), slow_link, {});
  const Plan usual = make_plan(qwen3_30b(), slow_link, {.prefill_chunk = 512});
  EXPECT_GE(plan.work.prefill_chunk, 2048);
  EXPECT_GT(plan.forecast().speed.prefill, 1.2 * usual.forecast().speed.prefill);
  EXPECT_GT(plan.price.scratch.pair_lists, usual.price.scratch.pair_lists);
  EXPECT_LE(plan.price.vram.total(), plan.vram_budget);
}

TEST(PlannerChunk, IsWhatWasAskedFor) {
  EXPECT_EQ(make_plan(qwen3_30b(), desktop(), {.prefill_chunk = 300}).work.prefill_chunk, 300);
  EXPECT_EQ(make_plan(qwen3_30b(), desktop(), {.prefill_chunk = 4000}).work.prefill_chunk, 4000);
}

TEST(PlannerChunk, IsNoLongerThanTheContext) {
  for (const int n_ctx : {1, 100, 512, 1023, 1024, 3000}) {
    const int chunk = make_plan(qwen3_30b(), desktop(), {.n_ctx = n_ctx}).work.prefill_chunk;
    EXPECT_LE(chunk, n_ctx);
    EXPECT_GE(2 * chunk, std::min(n_ctx, 2048)) << n_ctx;
  }
}

// On every budget decoding loses kChunkLoss at most to the chunk, prompts nothing; and both happen:
// that memory allows a wide one, and that it does not.
TEST(PlannerChunk, CostsDecodingLittle) {
  std::set<int> chunks;
  for (uint64_t mib = 1536; mib <= 24 * 1024; mib += 256) {
    Hardware h = desktop();
    h.vram_free = mib * kMiB;
    const Plan plan = make_plan(qwen3_30b(), h, {});
    const Plan usual = make_plan(qwen3_30b(), h, {.prefill_chunk = 512});
    EXPECT_EQ(plan.mode, usual.mode) << mib;
    EXPECT_EQ(plan.n_gpu_layers, usual.n_gpu_layers) << mib;
    EXPECT_GE(plan.forecast().speed.decode, (1.0 - kChunkLoss) * usual.forecast().speed.decode)
        << mib;
    EXPECT_GE(plan.forecast().speed.prefill, usual.forecast().speed.prefill) << mib;
    EXPECT_LE(plan.price.vram.total(), plan.vram_budget) << mib;
    chunks.insert(plan.work.prefill_chunk);
  }
  EXPECT_LT(*chunks.begin(), kWideChunk);
  EXPECT_GE(*chunks.rbegin(), kWideChunk);
}

}  // namespace
}  // namespace sluice::policy::planner_test
