// What a model costs in bytes, checked by hand, and how fast the cost model thinks it is.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/pricing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "policy/plan/pricing_speed.h"
#include "unit/policy/planner_shapes.h"

namespace sluice::policy::planner_test {
namespace {

Placement whole_gpu(const ModelShape& model, int n_slots) {
  return {model.n_layers(), std::vector<int>(model.layers.size(), n_slots)};
}

Placement whole_cpu(const ModelShape& model) { return {0, std::vector<int>(model.layers.size())}; }

TEST(Pricing, CountsKvByTypeInWholePages) {
  const LayerShape layer{.n_kv_heads = 4, .k_head_dim = 128, .v_head_dim = 128};
  const auto bytes = [&](KvType type, int n_ctx, int n_sequences = 1) {
    return kv_bytes(layer,
                    {.n_ctx = n_ctx, .n_sequences = n_sequences, .k_type = type, .v_type = type});
  };
  // 4096 tokens x 4 heads x (128 keys + 128 values) = 4,194,304 values.
  EXPECT_EQ(bytes(KvType::f32, 4096), 16'777'216u);
  EXPECT_EQ(bytes(KvType::f16, 4096), 8'388'608u);
  EXPECT_EQ(bytes(KvType::bf16, 4096), 8'388'608u);
  EXPECT_EQ(bytes(KvType::q8_0, 4096), 4'456'448u);  // / 32 x 34
  EXPECT_EQ(bytes(KvType::q4_0, 4096), 2'359'296u);  // / 32 x 18
  // Pages of 64 tokens: 1 token costs what 64 do, 65 what 128 do.
  EXPECT_EQ(bytes(KvType::f16, 1), 131'072u);
  EXPECT_EQ(bytes(KvType::f16, 64), 131'072u);
  EXPECT_EQ(bytes(KvType::f16, 65), 262'144u);
  EXPECT_EQ(bytes(KvType::f16, 65, 3), 786'432u);
}

TEST(Pricing, CountsQuantisedKvAsItsShareOfF16) {
  const ModelShape model = qwen3_30b();
  const auto kv = [&](KvType type) {
    return static_cast<double>(
        price(model, {.n_ctx = 8192, .k_type = type, .v_type = type}, whole_gpu(model, 0)).vram.kv);
  };
  EXPECT_DOUBLE_EQ(kv(KvType::q8_0) / kv(KvType::f16), 0.53125);
  EXPECT_DOUBLE_EQ(kv(KvType::q4_0) / kv(KvType::f16), 0.28125);
  EXPECT_DOUBLE_EQ(kv(KvType::f32) / kv(KvType::f16), 2.0);
}

TEST(Pricing, CountsKeysAndValuesInTheirOwnTypes) {
  const LayerShape layer{.n_kv_heads = 2, .k_head_dim = 192, .v_head_dim = 128};
  // 64 tokens x 2 heads: keys 192 / 32 x 34 = 204 bytes, values 128 x 2 = 256 bytes.
  EXPECT_EQ(kv_bytes(layer, {.n_ctx = 64, .k_type = KvType::q8_0, .v_type = KvType::f16}),
            128u * 204 + 128u * 256);
}

TEST(Pricing, CountsNoKvWhereALayerDoesNotAttend) {
  EXPECT_EQ(kv_bytes({.state_bytes = 1000}, {.n_ctx = 4096}), 0u);
}

TEST(Pricing, KeepsOnlyTheWindowOfASlidingLayer) {
  const LayerShape layer{.n_kv_heads = 1, .k_head_dim = 64, .v_head_dim = 64, .window = 128};
  // 128 + 512 tokens are 10 pages, and one more for a beginning within a page: 704 tokens of 256 B.
  EXPECT_EQ(kv_bytes(layer, {.n_ctx = 131072, .prefill_chunk = 512}), 704u * 256);
  EXPECT_EQ(kv_bytes(layer, {.n_ctx = 256, .prefill_chunk = 512}), 256u * 256);
}

TEST(Pricing, SaysOnePebibyteForWhatWouldOverflow) {
  const LayerShape layer{.n_kv_heads = 1 << 20, .k_head_dim = 1 << 20, .v_head_dim = 1 << 20};
  EXPECT_EQ(kv_bytes(layer, {.n_ctx = 2'000'000'000, .n_sequences = 1024}), 2 * kGiB * kMiB);
}

TEST(Pricing, PutsSlotsOnWholeCacheLines) {
  EXPECT_EQ(slot_bytes({.n_experts = 1, .expert_bytes = 2'654'208}), 2'654'208u);  // 10368 x 256
  EXPECT_EQ(slot_bytes({.n_experts = 1, .expert_bytes = 13'253'760}), 13'253'888u);
}

// Two layers and round numbers; the second one routes.
ModelShape two_layers() {
  ModelShape m{.architecture = "any",
               .name = "",
               .d_model = 64,
               .d_ff = 32,
               .n_heads = 2,
               .n_rot = 32,
               .n_vocab = 100,
               .n_ctx_train = 4096,
               .n_experts_used = 2,
               .widest_row = 200};
  m.layers = {{.trunk_bytes = 1000, .n_kv_heads = 1, .k_head_dim = 32, .v_head_dim = 32},
              {.trunk_bytes = 3000,
               .state_bytes = 500,
               .update_bytes = 7,
               .n_experts = 8,
               .expert_bytes = 70'000}};
  m.mtp = {{.trunk_bytes = 900, .n_experts = 8, .expert_bytes = 50'000}};
  m.embedding_bytes = 7000;
  m.output_bytes = 9000;
  return m;
}

TEST(Pricing, CountsTheScratchOfTheWidestStep) {
  const ModelShape m = two_layers();
  // 10 rows of x's norm and projections (64 + 200), 10 rows of 100 logits; 20 rows have logits for
  // 16 only. 16 arrays may each end 64 bytes before the next begins.
  EXPECT_EQ(trunk_scratch_bytes(m, 10), 4u * 10 * 264 + 4u * 10 * 100 + 1024);
  EXPECT_EQ(trunk_scratch_bytes(m, 20), 4u * 20 * 264 + 4u * 16 * 100 + 1024);
  // A row of 64 in int8: 64 + 2 x 8 scale bytes; the shared expert's weight, 4. For each of 2
  // experts: 8, 4 x 32, 32 + 8.
  EXPECT_EQ(expert_scratch_bytes(m, 10), 10u * 84 + 20u * (8 + 128 + 40));
  // A line for the head; 3 sequences of 2 pages and of states each; 10 tokens, positions, sequences
  // and wanted logits; 10 rows of 32 angles and 64 values; 10 times 2 experts of 2 layers.
  EXPECT_EQ(
      step_block_bytes(step_block_size(m, {.n_ctx = 100, .n_sequences = 3, .prefill_chunk = 10})),
      64u + 64 * 32 + 64 + 2 * 64 + 4 * 64 + 4 * 10 * (32 + 64) + 192);
  // 20 pairs and 9 offsets; 20 rows of 64; and the fixed part.
  const OpsSize ops = ops_size(m, 10);
  EXPECT_EQ(pair_list_bytes(10, 2, 8), 128u + 64);
  EXPECT_EQ(expert_row_bytes(ops), 4u * 20 * 64);
  // 30 rows of 64 with the shared expert's, or 10 of 200 projections, which are more, on a boundary
  // of 256; rows of one chunk of int8 with its scales, 320 bytes.
  EXPECT_EQ(ops_arrays(ops).outside, 4u * 10 * 200 + 192);
  EXPECT_EQ(ops_arrays(ops).input, 10u * 320 + 128);  // on a boundary of 256
  EXPECT_EQ(ops_scratch_bytes(ops), ops_arrays(ops).sum());
  // 10 rows of 2 heads in 32 splits: 32 sums, a peak and a sum each, in fours; 16 rows at most.
  EXPECT_EQ(attention_partials(10, ops.n_heads, ops.head_dim), 10 * 2 * 32 * 36);
  EXPECT_EQ(ops_arrays(ops).partials, 4u * 10 * 2 * 32 * 36);
  EXPECT_EQ(ops_arrays(ops_size(m, 500)).partials, 4u * 16 * 2 * 32 * 36);
  // Two buffers of all 8 experts: 70,000 takes a slot of 70,144.
  EXPECT_EQ(stream_bytes(m), 2u * 8 * 70'144);
}

TEST(Pricing, StreamsThroughTwoBuffersOfSixtyFourMebibytesAtMostOrOneExpert) {
  ModelShape m = two_layers();
  m.layers[1].expert_bytes = 30 * kMiB;
  EXPECT_EQ(stream_bytes(m), 2u * 60 * kMiB);
  m.layers[1].expert_bytes = 99 * kMiB;
  EXPECT_EQ(stream_bytes(m), 2u * 99 * kMiB);
}

TEST(Pricing, PutsEveryByteInItsPlace) {
  const ModelShape m = two_layers();
  const Workload work{.n_ctx = 64, .n_sequences = 3, .prefill_chunk = 10};
  const uint64_t kv = 3u * 64 * 2 * 32 * 2;
  const uint64_t trunk_scratch = trunk_scratch_bytes(m, 10);
  const uint64_t expert_scratch = expert_scratch_bytes(m, 10);

  const Price gpu = price(m, work, {2, {0, 5}});
  EXPECT_EQ(gpu.vram.trunk, 4000u);
  EXPECT_EQ(gpu.vram.output, 9000u);
  EXPECT_EQ(gpu.vram.kv, kv);
  // 18 states of 500 and 64 updates of 7 for each sequence, on a boundary of 64.
  EXPECT_EQ(gpu.vram.state, 10'368u);
  EXPECT_EQ(gpu.vram.slots, 5u * 70'144);
  EXPECT_EQ(gpu.vram.cuda, 512u * kMiB);
  EXPECT_EQ(gpu.vram.tables, 128u + 64);  // addresses of 2 layers x 8, and what landed
  EXPECT_EQ(gpu.vram.staging, 8u * 70'144);
  EXPECT_EQ(gpu.vram.scratch, round_up(trunk_scratch + expert_scratch, kTensorAlignment) +
                                  ops_scratch_bytes(ops_size(m, 10)) + pair_list_bytes(10, 2, 8) +
                                  step_block_bytes(step_block_size(m, work)) + stream_bytes(m));
  EXPECT_EQ(gpu.host.experts, 8u * 70'144);  // a victim is dropped, so the host keeps all
  EXPECT_EQ(gpu.host.embedding, 7000u);
  const uint64_t host_expert_scratch = expert_scratch + 4 * 10 * 2 * 64;  // with their rows
  EXPECT_EQ(gpu.host.scratch, host_expert_scratch);
  EXPECT_EQ(gpu.host.pinned, gpu.pinned.own());
  EXPECT_EQ(gpu.host.total(), 8u * 70'144 + 7000u + host_expert_scratch + gpu.pinned.own());

  const VramBytes& v = gpu.vram;
  EXPECT_EQ(v.total(), v.trunk + v.output + v.kv + v.state + v.slots + v.cuda + v.tables +
                           v.staging + v.scratch);

  const Price split = price(m, work, {1, {0, 0}});
  EXPECT_EQ(split.vram.trunk, 3000u);
  EXPECT_EQ(split.host.trunk, 1000u);
  EXPECT_EQ(split.host.kv, kv);
  EXPECT_EQ(split.vram.kv, 0u);
  EXPECT_EQ(split.vram.state, 10'368u);
  EXPECT_EQ(split.host.scratch, trunk_scratch + host_expert_scratch);

  const Price cpu = price(m, work, {0, {0, 0}});
  EXPECT_EQ(cpu.vram.total(), 0u);
  EXPECT_EQ(cpu.host.total(), 4000u + 9000 + 7000 + kv + 18 * 500 + 3 * 64 * 7 + 8 * 70'144 +
                                  trunk_scratch + 4 * 10 * 64 + host_expert_scratch);
  EXPECT_EQ(cpu.pinned.total(), 0u);
}

TEST(Pricing, CountsPinnedMemoryByItsParts) {
  const ModelShape m = two_layers();
  const Workload work{.n_ctx = 64, .n_sequences = 3, .prefill_chunk = 200};
  const PinnedBytes p = pinned_bytes(m, work, {2, {0, 5}});
  // Three words and a head, each on its line; 128 rows of 64 in f32 and int8 with two scales for 32
  // of them; 256 pairs and their answers.
  EXPECT_EQ(p.mailbox, 4u * 64 + 12 * 256 + 128 * (4 * 64 + 64 + 2 * 8) + 256 * 4 * 64);
  EXPECT_EQ(p.step_block, step_block_bytes(step_block_size(m, work)));
  EXPECT_EQ(p.results, 16u * (100 * 4 + 8 + 256 * 8));
  EXPECT_EQ(p.log, 2u * (64 + 200 * 2 * 8) + 64 * 8);
  // Two words; a word for each of 2 layers, a count for each of their experts; two tables of 8
  // addresses with two words each.
  EXPECT_EQ(p.waves, 2u * 64 + 64 + 64 + 2 * (64 + 2 * 64));
  EXPECT_EQ(p.foresight, 2u * (24 + 16 * 5 * 4) + 9 * 8);
  EXPECT_EQ(p.ring, 0u);
  EXPECT_EQ(p.experts, 8u * 70'144);
  EXPECT_EQ(pinned_bytes(m, work, {2, {0, 8}}).foresight, 0u);  // none comes ahead
}

TEST(Pricing, RegistersWhatTheLimitGrantsAndSendsTheRestThroughARing) {
  ModelShape m = two_layers();
  m.layers.push_back(m.layers[1]);
  const Workload work{.n_ctx = 64};
  const PinnedBytes all = pinned_bytes(m, work, {3, {0, 0, 0}});
  const uint64_t needed = all.own() - all.foresight;
  const auto limited = [&](uint64_t n) {
    Placement place{3, {0, 0, 0}};
    place.pin_limit = n;
    const PinnedBytes p = pinned_bytes(m, work, place);
    return std::pair(p.experts, p.ring);
  };
  const uint64_t layer = 8u * 70'144;
  EXPECT_EQ(limited(needed + 2 * layer), std::pair(2 * layer, uint64_t{0}));
  EXPECT_EQ(limited(needed + 2 * layer - 1), std::pair(layer, uint64_t{4 * 70'000}));
  EXPECT_EQ(limited(needed + layer + 150'000), std::pair(layer, uint64_t{2 * 70'000}));
  EXPECT_EQ(limited(needed), std::pair(uint64_t{0}, uint64_t{0}));
  EXPECT_EQ(limited(0), std::pair(uint64_t{0}, uint64_t{0}));
}

TEST(Pricing, NeedsNoHostCopyAndNoStreamingOfExpertsThatAreAllInVram) {
  const ModelShape m = two_layers();
  const Workload work{.n_ctx = 64};
  const Price p = price(m, work, {2, {0, 8}});
  EXPECT_EQ(p.host.total(), 7000u + p.pinned.own());
  EXPECT_EQ(p.vram.scratch, trunk_scratch_bytes(m, 512) + expert_scratch_bytes(m, 512) +
                                ops_scratch_bytes(ops_size(m, 512)) + pair_list_bytes(512, 2, 8) +
                                step_block_bytes(step_block_size(m, work)));
  EXPECT_EQ(p.vram.staging, 0u);
  EXPECT_EQ(p.vram.tables, table_bytes(m));  // work finds experts by it wherever they are
}

TEST(Pricing, NeedsNoTablesWithoutExperts) {
  ModelShape m = two_layers();
  m.layers[1].n_experts = 0;
  EXPECT_EQ(price(m, {.n_ctx = 64}, {2, {0, 0}}).vram.tables, 0u);
}

TEST(Pricing, TakesTheOverheadOfTheDeviceOnlyWhereItIsUsed) {
  const ModelShape m = two_layers();
  EXPECT_EQ(price(m, {.n_ctx = 64}, {2, {0, 0}, 1000}).vram.cuda, 1000u);
  EXPECT_EQ(price(m, {.n_ctx = 64}, {0, {0, 0}, 1000}).vram.cuda, 0u);
}

TEST(Pricing, HoldsATiedEmbeddingTwiceOnlyWhereThereAreTwoMemories) {
  ModelShape m = two_layers();
  m.tied = true;
  EXPECT_EQ(price(m, {.n_ctx = 64}, {0, {0, 0}}).host.embedding, 0u);
  EXPECT_EQ(price(m, {.n_ctx = 64}, {2, {0, 0}}).host.embedding, 7000u);
}

TEST(Pricing, HoldsMtpBlocksOnlyWhereTheyAreAskedFor) {
  const ModelShape m = two_layers();
  EXPECT_EQ(m.mtp_bytes(), 900u + 400'000);
  EXPECT_EQ(price(m, {.n_ctx = 64}, {2, {0, 0}}).vram.trunk, 4000u);
  EXPECT_EQ(price(with_mtp(m), {.n_ctx = 64}, {3, {0, 0, 0}}).vram.trunk, 4900u);
}

TEST(Locality, GoesThroughItsPointsInStraightLines) {
  const LocalityCurve curve = LocalityCurve::typical();
  EXPECT_DOUBLE_EQ(curve.hits(0.0), 0.0);
  EXPECT_DOUBLE_EQ(curve.hits(0.0625), 0.43);
  EXPECT_NEAR(curve.hits(0.03125), 0.215, 1e-12);
  EXPECT_DOUBLE_EQ(curve.hits(0.125), 0.63);
  EXPECT_NEAR(curve.hits((0.125 + 0.188) / 2), 0.69, 1e-12);
  EXPECT_DOUBLE_EQ(curve.hits(1.0), 1.0);
}

// A layer of 40 MB trunk and 8 x 10 MB experts on round rates, so that the sum can be done by hand.
TEST(Speed, IsTheSumOfItsLayersAndInEachTheSlowestOfThree) {
  ModelShape m{.architecture = "any", .name = "", .d_model = 64, .n_experts_used = 8};
  m.layers = {{.trunk_bytes = 40'000'000, .n_experts = 16, .expert_bytes = 10'000'000}};
  m.output_bytes = 60'000'000;
  Hardware h;
  h.gpu_gbps = 1000.0;
  h.link_gbps = 20.0;
  h.cpu_gbps = 100.0;
  h.handshake_us = 20.0;
  h.launch_us = h.readback_us = h.sampling_us = h.experts_us = 0.0;
  const Workload work{.n_ctx = 4096};
  const LocalityCurve half({{0.5, 0.75}});
  const auto ms = [&](int n_gpu_layers, int n_slots, double link_share = 0.0) {
    return 1000.0 /
           predict(m, h, work, {n_gpu_layers, {n_slots}, kCudaBytes, link_share}, half).decode;
  };
  // A layer's kernels on the GPU; looking up experts of which some may be missing; reading the
  // link.
  const double layer = kGpuLayerSeconds * 1e3, lookup = kLookupSeconds * 1e3;
  const double bursts = kLinkBursts * kLinkBurstSeconds * 1e3;
  // CPU: 20 us + (40 + 80 + 60) MB at 100 GB/s.
  EXPECT_NEAR(ms(0, 0), 0.020 + 1.8, 1e-9);
  // All resident: the layer + 180 MB at 1000 GB/s.
  EXPECT_NEAR(ms(1, 16), layer + 0.18, 1e-9);
  // No slot: trunk and output on the GPU, experts on the CPU, a handshake.
  EXPECT_NEAR(ms(1, 0), layer + lookup + 0.1 + 0.8 + 0.020, 1e-9);
  // Three of four calls hit. The chance that all eight do is 0.75^8 = 0.1001: then they take 0.08;
  // else the CPU's part decides, 0.02 and 0.1 for each of two misses on average.
  const double all_hit = std::pow(0.75, 8);
  const double some_miss = 0.1 + all_hit * 0.08 + (1 - all_hit) * 0.020 + 2 * 0.1;
  EXPECT_NEAR(ms(1, 8), layer + lookup + some_miss, 1e-9);
  // One copy for four misses: half of one in a step, which the host begins, and whose 10 MB take
  // 0.4 x 10 from the CPU at 100 GB/s. What the device has read is there already.
  const LocalityCurve copying({{0.5, 0.75, 0.25}});
  const auto copy_ms = [&](double link_share) {
    const Placement cached{1, {8}, kCudaBytes, link_share};
    return 1000.0 / predict(m, h, work, cached, copying).decode - ms(1, 8, link_share);
  };
  EXPECT_NEAR(copy_ms(0.0), 0.5 * (kCopySeconds * 1e3 + 0.04), 1e-9);
  EXPECT_NEAR(copy_ms(1.0), 0.0, 1e-9);
  // No slot, and half of the misses over the link: 40 MB at 20 GB/s.
  EXPECT_NEAR(ms(1, 0, 0.5), layer + lookup + 0.1 + 2.0 + bursts, 1e-9);
  // A fast one: the CPU's 40 MB decide, and what the link takes from it, 0.4 x 40.
  h.link_gbps = 200.0;
  EXPECT_NEAR(ms(1, 0, 0.5), layer + lookup + 0.1 + 0.020 + 0.56, 1e-9);
  // All over the link: nobody waits for the CPU.
  EXPECT_NEAR(ms(1, 0, 1.0), layer + lookup + 0.1 + 0.4 + bursts, 1e-9);
  // A GPU so slow that its hits decide where there are more than two: everything at
  // 40 GB/s, so 0.25 for a hit, against 0.02 and 0.1 for a miss.
  h.gpu_gbps = 40.0;
  const double ways[] = {1, 8, 28, 56, 70, 56, 28, 8, 1};
  double expected = layer + lookup + 2.5;
  for (int n_hits = 0; n_hits <= 8; ++n_hits) {
    const double chance = ways[n_hits] * std::pow(0.75, n_hits) * std::pow(0.25, 8 - n_hits);
    expected += chance * (n_hits > 2 ? 0.25 * n_hits : 0.02 + 0.1 * (8 - n_hits));
  }
  EXPECT_NEAR(ms(1, 8), expected, 1e-9);
  // A step of the GPU is launched and read back, and on either a token is chosen.
  h.gpu_gbps = 1000.0;
  h.launch_us = 12.0, h.readback_us = 15.0, h.sampling_us = 5.0, h.experts_us = 6.0;
  EXPECT_NEAR(ms(0, 0), 0.020 + 1.8 + 0.005, 1e-9);
  EXPECT_NEAR(ms(1, 16), layer + 0.18 + 0.032 + 0.006, 1e-9);
}

// What a layer takes by what it is, on a card whose memory is faster than its kernels and on one
// whose memory is slower.
TEST(Speed, KnowsKindsOfLayers) {
  const auto seconds = [](double gpu_gbps, LayerShape layer, int depth, bool is_dense = false) {
    ModelShape m{.architecture = "any", .name = "", .n_experts_used = 1, .is_dense = is_dense};
    m.layers = {layer};
    Hardware h;
    h.gpu_gbps = gpu_gbps;
    h.launch_us = h.readback_us = h.sampling_us = h.experts_us = 0.0;
    const Placement place{1, {layer.n_experts}};
    const Workload work{.n_ctx = 65536, .depth = depth};
    return 1.0 / predict(m, h, work, place, LocalityCurve::typical()).decode;
  };
  const LayerShape attends{.n_kv_heads = 4, .k_head_dim = 128, .v_head_dim = 128};
  const LayerShape slides{.n_kv_heads = 4, .k_head_dim = 128, .v_head_dim = 128, .window = 128};
  const LayerShape recurs{.state_bytes = 2'000'000};
  const LayerShape network{.n_experts = 1, .expert_bytes = 90'000'000};
  const double layer = kGpuLayerSeconds;
  // 128 positions are attended to by one part, 8,192 by several that are added up; 2 KiB each.
  EXPECT_NEAR(seconds(1000, attends, 128), layer + 128 * 2048 / 1e12, 1e-12);
  EXPECT_NEAR(seconds(1000, attends, 8192), layer + kSplitSeconds + 8192 * 2048 / 1e12, 1e-12);
  EXPECT_NEAR(seconds(9000, attends, 8192), layer + kSplitSeconds + 8192 * 2048 / kAttendRate,
              1e-12);
  EXPECT_LT(seconds(1000, slides, 8192), seconds(1000, attends, 2048));
  // A state is read and written.
  EXPECT_NEAR(seconds(100, recurs, 128), layer + 4e6 / 100e9, 1e-12);
  EXPECT_NEAR(seconds(1000, recurs, 128), layer + 4e6 / kStateRate, 1e-12);
  EXPECT_NEAR(seconds(1000, network, 128, true), layer + 90e6 / 1000e9, 1e-12);
  EXPECT_NEAR(seconds(4000, network, 128, true), layer + 90e6 / kNetworkRate, 1e-12);
  EXPECT_NEAR(seconds(4000, network, 128, false), layer + 90e6 / 4000e9, 1e-12);
}

// A prompt's rows multiply, attend and recur, and each layer's kernels begin and end.
TEST(Speed, OfAPromptCountsProductsAttentionAndRecurrence) {
  ModelShape m{.architecture = "any", .name = "", .d_model = 1000, .n_heads = 10};
  m.layers = {{.trunk_bytes = 47'000'000, .trunk_elems = 100'000'000}};
  Hardware h;
  h.gpu_gbps = 1000.0;
  const auto seconds = [&](int depth, int n_rows = 100) {
    const Workload work{.n_ctx = 65536, .prefill_chunk = n_rows, .depth = depth};
    return n_rows / predict(m, h, work, {1, {0}}, LocalityCurve::typical()).prefill;
  };
  const double rows = 100 * kRowPasses * 4 * 1000 / 1e12;
  const double products = 47e6 / (kUnpackShare * 1e12) + 2e10 / (kGpuOpsPerByte * 1e12);
  const double plain = kWideLayerSeconds + rows + products;
  EXPECT_NEAR(seconds(0), plain, 1e-12);
  m.layers[0].n_kv_heads = 2;
  m.layers[0].k_head_dim = m.layers[0].v_head_dim = 64;
  // 100 rows with 50 positions before them on the mean, and 4000 more; 10 heads of 64. They are too
  // few for all of the card; ten times as many are not.
  EXPECT_NEAR(seconds(0), plain + 4.0 * 64 * 50 / kAttendRowOps, 1e-12);
  EXPECT_NEAR(seconds(4000), plain + 4.0 * 64 * 4050 / kAttendRowOps, 1e-12);
  // As few as a step of several texts has attend as these do.
  const double few =
      kWideLayerSeconds + rows / 10 + 47e6 / (kUnpackShare * 1e12) + 2e9 / (kGpuOpsPerByte * 1e12);
  EXPECT_NEAR(seconds(4000, 10), few + 10 * 4.0 * 10 * 64 * 4005 / (kAttendOpsPerByte * 1e12),
              1e-12);
  const double many =
      kWideLayerSeconds + 10 * rows + 47e6 / (kUnpackShare * 1e12) + 2e11 / (kGpuOpsPerByte * 1e12);
  EXPECT_NEAR(seconds(4000, 1000), many + 1000 * 4.0 * 10 * 64 * 4500 / (kAttendOpsPerByte * 1e12),
              1e-12);
  m.layers[0] = {.trunk_bytes = 47'000'000, .trunk_elems = 100'000'000, .state_bytes = 3'000'000};
  EXPECT_NEAR(seconds(0), plain + kWideRecurrentSeconds + 100 * 3e6 / (kWideStateShare * 1e12),
              1e-12);
}

TEST(Speed, PrefillsByStreamingOrOnTheCpuWhicheverIsFaster) {
  const ModelShape m = qwen3_30b();
  Hardware h = desktop();
  const Workload work{.n_ctx = 4096, .prefill_chunk = 512};
  const auto prefill = [&](int n_slots) {
    return predict(m, h, work, whole_gpu(m, n_slots), LocalityCurve::typical()).prefill;
  };
  // 512 tokens meet all 128 experts: 17.55 GB of them at 25 GB/s take 0.702 s where the link is
  // never at rest; the output 0.3 GB / 400 GB/s. What is computed goes on beside that.
  EXPECT_NEAR(prefill(0), 512 / (0.702 / kWaveShare + 0.001), 2.0);
  EXPECT_GT(prefill(64), prefill(0) * 1.5);
  EXPECT_GT(prefill(128), prefill(64));
  h.link_gbps = 0.1;  // the CPU takes over, so it cannot fall below what that does
  EXPECT_GT(prefill(0), predict(m, h, work, whole_cpu(m), LocalityCurve::typical()).prefill);
}

}  // namespace
}  // namespace sluice::policy::planner_test
