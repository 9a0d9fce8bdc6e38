// The parts of a layer that several architectures share. Each asks the source for its tensors, so
// that the list of a model's tensors exists once, in the code that binds them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/config.h"
#include "model/layer.h"
#include "model/tensor_source.h"

namespace sluice::model {

// The norm before the experts, by its name in the file.
constexpr const char* kFfnNorm = "ffn_norm.weight";
constexpr const char* kPostAttentionNorm = "post_attention_norm.weight";

struct AttentionRules {
  Presence qkv_bias = Presence::rare;
  Presence out_bias = Presence::rare;
  bool is_gated = false;  // of every head first the query, then the gate of its output
};

struct RouterRules {
  const char* norm = kFfnNorm;
  bool renormalize = false;
};

class LayerBinder {
 public:
  LayerBinder(const Config& config, const backend::RopeView& rope, TensorSource& source, LayerId id)
      : config_(config), rope_(rope), source_(source), id_(id) {}

  Layer layer() const { return {.id = id_}; }
  const Config& config() const { return config_; }
  const LayerMemory& memory() const { return config_.memory[static_cast<size_t>(id_.value)]; }

  // attn_norm, q k v (apart, or fused as attn_qkv), attn_output.
  void attention(Layer& layer, const AttentionRules& rules);
  // attn_q_norm and attn_k_norm.
  void head_norms(Layer& layer, backend::HeadNorm kind, Presence presence = Presence::required);
  // The norm before the experts, their router, and gate, up and down of all of them; gate and up
  // may be one stack. Files with a tensor for every expert are known, but cannot run.
  void experts(Layer& layer, const RouterRules& rules);
  // The norm before a dense network, and gate, up and down of it: the one expert of its layer. Its
  // router is a row of zeros, since the softmax over a single score is 1 whatever the score is.
  void dense_network(Layer& layer, const char* norm_name = kFfnNorm);
  // The expert that every token uses, and its gate.
  void shared_expert(Layer& layer, bool gated);
  // For planning: one of the leading layers with a dense network, or router, experts and a shared
  // expert without a gate.
  void dense_or_experts(Layer& layer, const char* norm);
  // What an MTP block has besides a layer; nothing for a layer.
  void mtp(Layer& layer);

  const backend::RopeView& rope() const { return rope_; }

  // Single tensors of the layer, by what follows "blk.<layer>.".
  bool has(const char* suffix) const { return source_.has(name(suffix)); }
  backend::NormView norm(const char* suffix, int64_t n, Presence presence = Presence::required);
  const float* vector(const char* suffix, int64_t n, Presence presence = Presence::required);
  // As f32 whatever the file holds, for a few rows that are no matrix of a product.
  const float* values(const char* suffix, std::vector<int64_t> shape);
  backend::WeightView matrix(const char* suffix, std::vector<int64_t> shape,
                             Presence presence = Presence::required);
  // One matrix, or one row, for each expert; the last dimension counts them.
  backend::WeightView stack(const char* suffix, std::vector<int64_t> shape);

 private:
  std::string name(const std::string& suffix) const;
  backend::WeightView matrix_of(Role role, const std::string& suffix, std::vector<int64_t> shape);
  bool fused_qkv(Layer& layer, int64_t q_cols);
  void stacked_experts(Layer& layer);
  void experts_apart();

  const Config& config_;
  const backend::RopeView& rope_;
  TensorSource& source_;
  LayerId id_;
};

}  // namespace sluice::model
