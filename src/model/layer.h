// A model's weights by role, as views into memory that somebody else owns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "backend/views.h"
#include "base/ids.h"
#include "model/config.h"
#include "model/tensor_source.h"

namespace sluice::model {

struct Layer {
  LayerId id;
  backend::NormView attn_norm;
  std::array<backend::Projection, 3> qkv;
  backend::AttentionView attention;
  backend::Projection attn_out;
  backend::NormView ffn_norm;
  backend::RouterView router;
  backend::ExpertsView experts;
};

// Everything of a layer but its routed experts, so that copies may take its place.
struct TrunkTensors {
  struct Vector {
    const float** data;  // never null itself, nor what it points to
    int64_t n;
  };
  std::vector<backend::WeightView*> matrices;
  std::vector<Vector> vectors;
};
TrunkTensors trunk_of(Layer& layer);

// The parts that layers of different architectures share. Each asks the source for its tensors.
class LayerBinder {
 public:
  LayerBinder(const Config& config, const backend::RopeView& rope, TensorSource& source, LayerId id)
      : config_(config), rope_(rope), source_(source), id_(id) {}

  Layer layer() const { return {.id = id_}; }
  const Config& config() const { return config_; }

  // attn_norm, q k v (apart, or fused as attn_qkv), attn_output; biases as `bias` says.
  void attention(Layer& layer, Presence q_k_v_bias, Presence out_bias);
  // attn_q_norm and attn_k_norm of n values each.
  void head_norms(Layer& layer, backend::HeadNorm kind, int64_t n_q, int64_t n_k);
  // ffn_norm, router, gate up and down of all experts.
  void experts(Layer& layer, bool renormalize);
  // The expert that every token uses, and its gate.
  void shared_expert(Layer& layer);

 private:
  std::string name(const char* suffix) const;
  backend::NormView norm(const char* suffix, int64_t n);
  backend::WeightView matrix(const char* suffix, std::vector<int64_t> shape,
                             Presence presence = Presence::required);
  const float* bias(const char* suffix, int64_t n, Presence presence);
  bool fused_qkv(Layer& layer);

  const Config& config_;
  const backend::RopeView& rope_;
  TensorSource& source_;
  LayerId id_;
};

}  // namespace sluice::model
