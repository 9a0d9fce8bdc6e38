// Small synthetic models of every architecture, in files that go with the test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>

#include "model/model.h"
#include "model_file/synth.h"
#include "support/error_of.h"
#include "unit/gguf/temp_dir.h"

namespace sluice::model::test {

using gguf::test::read_file;
using gguf::test::TempDir;

constexpr const char* kArchitectures[] = {"qwen3moe",  "qwen2moe",  "olmoe", "llama",
                                          "qwen35moe", "qwen3next", "qwen3", "qwen35"};
// Those that attend in every layer.
constexpr const char* kAttending[] = {"qwen3moe", "qwen2moe", "olmoe", "llama"};
constexpr const char* kHybrids[] = {"qwen35moe", "qwen3next"};
// With one network in the experts' place.
constexpr const char* kDense[] = {"qwen3", "qwen35"};

// Two layers, wide enough for the mix's blocks. Weights are large enough that attention and router
// have clear preferences (scores of about 2), so that a wrong input to either shows.
inline model_file::SynthOptions tiny_options(const std::string& architecture,
                                             const std::string& mix, uint64_t seed = 1) {
  model_file::SynthOptions o;
  o.mix = model_file::QuantMix::parse(mix);
  const bool wide = quant::type_info(o.mix.base()).block_elems == 256;
  Config& c = o.config;
  c.architecture = architecture;
  c.n_layers = 2;
  c.d_model = wide ? 256 : 64;
  c.n_heads = 4;
  c.n_kv_heads = architecture == "olmoe" ? 4 : 2;
  c.head_dim = wide ? 64 : 32;
  c.n_vocab = 261;
  c.n_ctx_train = 512;
  c.n_experts = architecture == "llama" ? 8 : 10;
  c.n_experts_used = wide || architecture == "llama" ? 2 : 3;
  c.d_ff = wide ? 256 : 96;
  c.d_ff_shared = architecture == "qwen2moe" ? (wide ? 512 : 64) : 0;
  c.norm_eps = 1e-6f;
  const Architecture* const a = find_architecture(architecture);
  c.is_dense = a && a->networks == Networks::dense;
  if (a && a->is_hybrid) {
    c.n_layers = 3;
    o.attention_interval = 2;
    c.d_ff_shared = wide ? 256 : 32;
    c.rope.n_rot = 16;
    if (a->has_rope_sections) c.rope.sections = {3, 3, 2, 0};
    c.delta_net = {.n_taps = 4, .n_key_heads = 2, .n_value_heads = 4, .head_dim = wide ? 64 : 16};
  }
  if (c.is_dense) c.n_experts = c.n_experts_used = 1, c.d_ff_shared = 0;
  o.std = 2.0f / std::sqrt(static_cast<float>(c.d_model));
  o.seed = seed;
  return o;
}

// A model whose file or shape is not the usual one.
struct RareForm {
  const char* name;
  const char* architecture;
  void (*change)(model_file::SynthOptions&);

  model_file::SynthOptions options(const std::string& mix) const {
    model_file::SynthOptions o = tiny_options(architecture, mix);
    change(o);
    return o;
  }
};

inline std::vector<RareForm> rare_forms() {
  using Options = model_file::SynthOptions;
  const auto fused = [](Options& o) { o.forms = {"ssm_in"}; };
  const auto merged = [](Options& o) { o.forms = {"ffn_gate_up_exps"}; };
  const auto mtp = [](Options& o) { o.config.n_mtp_blocks = 1; };
  const auto odd = [](Options& o) {
    o.config.n_heads = 3, o.config.n_kv_heads = 1;
    o.config.delta_net.n_key_heads = 3, o.config.delta_net.n_value_heads = 9;
  };
  const auto long_odd = [](Options& o) {
    o.forms = {"ssm_in", "ffn_gate_up_exps"};
    o.config.n_layers = 7;
    o.config.delta_net.n_key_heads = 5, o.config.delta_net.n_value_heads = 15;
  };
  return {{"inputs in one matrix", "qwen3next", fused},
          {"gate and up merged", "qwen3moe", merged},
          {"gate and up merged", "qwen3next", merged},
          {"gate and up merged", "qwen35moe", merged},
          {"an MTP block", "qwen3next", mtp},
          {"an MTP block", "qwen35moe", mtp},
          {"odd head counts", "qwen3next", odd},
          {"odd head counts", "qwen35moe", odd},
          {"7 layers with odd head counts, all fused", "qwen3next", long_odd}};
}

inline void write_tiny(const std::string& path, const std::string& architecture,
                       const std::string& mix, uint64_t seed = 1) {
  ThreadPool pool(1);
  model_file::write_synthetic_model(path, tiny_options(architecture, mix, seed), pool, {});
}

using sluice::test::error_of;

inline void expect_contains(const std::string& text, const std::string& part,
                            const std::string& what = "") {
  EXPECT_NE(text.find(part), std::string::npos)
      << what << ": expected '" << part << "' in '" << text << "'";
}

}  // namespace sluice::model::test
