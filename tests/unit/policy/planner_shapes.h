// Shapes, machines and helpers for the tests of the planner: real ones and random ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "policy/plan/planner.h"
#include "support/error_of.h"

namespace sluice::policy::planner_test {

// Qwen3-30B-A3B in Q4_K_M: of 48 layers 24 have Q6_K in attn_v and ffn_down. The bytes are checked
// against the tensors in model/shape_test.cpp.
inline ModelShape qwen3_30b() {
  ModelShape m{.architecture = "qwen3moe",
               .name = "Qwen3 30B A3B",
               .d_model = 2048,
               .d_ff = 768,
               .n_vocab = 151936,
               .n_ctx_train = 40960,
               .n_experts_used = 8,
               .widest_row = 4096 + 512 + 512 + 4096 + 2048 + 128};
  // q 2048x4096, k and v 2048x512, out 4096x2048, router 2048x128 in F32, norms 2 x 2048 + 2 x 128.
  const uint64_t q = 2048 * 4096 / 256 * 144;
  const uint64_t k = 2048 * 512 / 256 * 144;
  const uint64_t v6 = 2048 * 512 / 256 * 210;
  const uint64_t rest = 4 * (2048 * 128 + 2 * 2048 + 2 * 128);
  const uint64_t e4 = 2048 * 768 / 256 * 144;
  const uint64_t e6 = 2048 * 768 / 256 * 210;
  for (int i = 0; i < 48; ++i) {
    const bool more = i < 6 || i >= 42 || (i - 6) % 3 == 2;
    m.layers.push_back({.trunk_bytes = 2 * q + k + (more ? v6 : k) + rest,
                        .trunk_elems = 2 * 2048 * 4096 + 2 * 2048 * 512 + 2048 * 128 + 4352,
                        .n_kv_heads = 4,
                        .k_head_dim = 128,
                        .v_head_dim = 128,
                        .n_experts = 128,
                        .expert_bytes = 2 * e4 + (more ? e6 : e4),
                        .expert_elems = 3 * 2048 * 768});
  }
  m.embedding_bytes = uint64_t{151936} * 2048 / 256 * 144;
  m.output_bytes = uint64_t{151936} * 2048 / 256 * 210 + 4 * 2048;
  m.output_elems = uint64_t{151936} * 2048 + 2048;
  return m;
}

// rtx4070ti-12g+64g-ddr5, in numbers.
inline Hardware desktop() {
  Hardware h;
  h.vram_free = 12 * kGiB;
  h.vram_overhead = kCudaBytes;
  h.ram_free = 60 * kGiB;
  h.gpu_gbps = 400.0;
  h.link_gbps = 25.0;
  h.cpu_gbps = 60.0;
  h.n_cores = 8;
  return h;
}

inline Hardware without_gpu() {
  Hardware h = desktop();
  h.vram_free = 0;
  h.gpu_gbps = h.link_gbps = 0.0;
  return h;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // Both ends belong to it.
  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(engine_() % static_cast<uint64_t>(most - least + 1));
  }
  bool one_in(int n) { return between(1, n) == 1; }

 private:
  std::mt19937_64 engine_;
};

// Any mixture of dense, recurrent, sliding and routed layers of a few MiB.
inline ModelShape random_shape(Random& random) {
  ModelShape m{.architecture = "any",
               .name = "",
               .d_model = 64 * static_cast<int>(random.between(1, 32)),
               .d_ff = 32 * static_cast<int>(random.between(1, 32)),
               .n_vocab = static_cast<int>(random.between(100, 50000)),
               .n_ctx_train = 1 << random.between(8, 17),
               .n_experts_used = static_cast<int>(random.between(1, 8)),
               .widest_row = static_cast<uint64_t>(random.between(100, 10000))};
  const auto n_layers = random.between(1, 24);
  const int n_experts = static_cast<int>(random.between(m.n_experts_used, 64));
  for (int64_t i = 0; i < n_layers; ++i) {
    LayerShape layer;
    layer.trunk_bytes = static_cast<uint64_t>(random.between(1 << 16, 1 << 24));
    layer.trunk_elems = layer.trunk_bytes * 2;
    if (random.one_in(3)) {
      layer.state_bytes = static_cast<uint64_t>(random.between(1, 1 << 21));
    } else {
      layer.n_kv_heads = static_cast<int>(random.between(1, 8));
      layer.k_head_dim = layer.v_head_dim = 32 * static_cast<int>(random.between(1, 8));
      if (random.one_in(3)) layer.window = static_cast<int>(random.between(1, 1024));
    }
    if (!random.one_in(5)) {
      layer.n_experts = n_experts;
      layer.expert_bytes = static_cast<uint64_t>(random.between(1 << 12, 1 << 22));
      layer.expert_elems = layer.expert_bytes * 2;
    }
    m.layers.push_back(layer);
  }
  m.embedding_bytes = m.output_bytes = static_cast<uint64_t>(random.between(1 << 16, 1 << 26));
  m.output_elems = m.output_bytes * 2;
  m.tied = random.one_in(2);
  return m;
}

// Also machines nobody would build, such as a GPU slower than the CPU.
inline Hardware random_hardware(Random& random) {
  Hardware h;
  h.vram_free = static_cast<uint64_t>(random.between(0, 12)) * 512 * kMiB;
  h.ram_free = 64 * kGiB;
  h.gpu_gbps = static_cast<double>(random.between(10, 2000));
  h.link_gbps = static_cast<double>(random.between(1, 60));
  h.cpu_gbps = static_cast<double>(random.between(5, 120));
  h.handshake_us = static_cast<double>(random.between(0, 60));
  h.n_cores = static_cast<int>(random.between(1, 64));
  return h;
}

using sluice::test::error_of;

inline testing::AssertionResult says(const std::string& text,
                                     const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == std::string::npos) {
      return testing::AssertionFailure() << "expected '" << part << "' in '" << text << "'";
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace sluice::policy::planner_test
