// Shapes of the models that were timed on a GPU: as `sluice synth` writes them in Q4_K_M, their
// bytes summed over tensors (`sluice inspect --tensors`).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unit/policy/planner_shapes.h"

namespace sluice::policy::planner_test {

// Whether Q4_K_M has more bits for V and down in a layer.
inline bool has_more_bits(int layer, int n_layers) {
  const int eighth = n_layers / 8;
  return layer < eighth || layer >= 7 * n_layers / 8 || (layer - eighth) % 3 == 2;
}

// 30 layers recur, every fourth attends; a shared expert in the trunk.
inline ModelShape qwen36_35b() {
  ModelShape m{.architecture = "qwen35moe",
               .name = "Qwen3.6 35B A3B",
               .d_model = 2048,
               .d_ff = 512,
               .d_ff_shared = 512,
               .n_heads = 16,
               .n_vocab = 248320,
               .n_ctx_train = 40960,
               .n_experts_used = 8};
  const uint64_t e4 = 2048 * 512 / 256 * 144;
  const uint64_t e6 = 2048 * 512 / 256 * 210;
  for (int i = 0; i < 40; ++i) {
    const bool attends = i % 4 == 3;
    LayerShape layer{.trunk_bytes = attends ? uint64_t{19'769'344} : uint64_t{27'566'848},
                     .trunk_elems = attends ? uint64_t{30'900'000} : uint64_t{37'400'000},
                     .n_experts = 256,
                     .expert_bytes = 2 * e4 + (has_more_bits(i, 40) ? e6 : e4),
                     .expert_elems = 3 * 2048 * 512};
    if (attends) {
      layer.n_kv_heads = 2;
      layer.k_head_dim = layer.v_head_dim = 256;
    } else {
      layer.state_bytes = 32 * 128 * 128 * 4;
    }
    m.layers.push_back(layer);
  }
  m.output_bytes = 417'177'600 + 8192;
  m.output_elems = uint64_t{248320} * 2048;
  return m;
}

inline ModelShape qwen3_8b() {
  ModelShape m{.architecture = "qwen3",
               .name = "Qwen3 8B",
               .d_model = 4096,
               .d_ff = 12288,
               .n_heads = 32,
               .n_vocab = 151936,
               .n_ctx_train = 40960,
               .n_experts_used = 1,
               .is_dense = true};
  const uint64_t n4 = uint64_t{4096} * 12288 / 256 * 144;
  const uint64_t n6 = uint64_t{4096} * 12288 / 256 * 210;
  for (int i = 0; i < 36; ++i) {
    const bool more = has_more_bits(i, 36);
    m.layers.push_back({.trunk_bytes = more ? uint64_t{24'700'000} : uint64_t{23'600'000},
                        .trunk_elems = 2 * 4096 * 4096 + 2 * 4096 * 1024,
                        .n_kv_heads = 8,
                        .k_head_dim = 128,
                        .v_head_dim = 128,
                        .n_experts = 1,
                        .expert_bytes = 2 * n4 + (more ? n6 : n4),
                        .expert_elems = 3 * 4096 * 12288});
  }
  m.output_bytes = 510'504'960 + 16384;
  m.output_elems = uint64_t{151936} * 4096;
  return m;
}

}  // namespace sluice::policy::planner_test
