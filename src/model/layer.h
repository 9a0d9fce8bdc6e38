// A model's weights by role, as views into memory that somebody else owns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backend/views.h"
#include "base/ids.h"

namespace sluice::model {

// What a block that predicts a further token has besides a layer. What many files leave out (null)
// is the model's own. Not computed yet.
struct MtpView {
  backend::NormView embedding_norm,
      hidden_norm;           // of the token that follows, of the last layer's x
  backend::WeightView join;  // [2 d_model, d_model], reads both side by side
  backend::NormView output_norm;
  backend::WeightView embedding, output;  // [d_model, n_vocab]
  explicit operator bool() const { return bool{join}; }
};

struct Layer {
  LayerId id;
  backend::NormView attn_norm;
  std::vector<backend::Projection> qkv;  // and what else is made of norm(x)
  backend::AttentionView attention;
  backend::DeltaNetView delta_net;  // in attention's place where it is there
  backend::Projection attn_out;
  backend::NormView ffn_norm;
  backend::RouterView router;
  backend::ExpertsView experts;
  MtpView mtp;  // of Model::mtp() alone
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

}  // namespace sluice::model
