// A model: its shape and its weights, bound by name from an open file, and the forward pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "gguf/model_file.h"
#include "model/architecture.h"
#include "model/config.h"
#include "model/layer.h"
#include "model/step.h"

namespace sluice::model {

// Views into its file, which it does not own and which must outlive it; only the few vectors that a
// file stores as F16 or BF16 are held here, widened.
class Model {
 public:
  // Checks every tensor: there, of the right shape, of a type sluice computes with, and none left
  // over that this architecture does not know, since ignoring one would be a silent wrong answer.
  explicit Model(const gguf::ModelFile& file);
  Model(Model&&) = default;
  // The same views, which may then be pointed at copies elsewhere; the original outlives it.
  Model(const Model&) = default;

  const Architecture& architecture() const { return *architecture_; }
  const Config& config() const { return config_; }
  std::span<const Layer> layers() const { return layers_; }
  // Its blocks that predict further tokens: checked, bound to the file, and neither copied nor run.
  std::span<const Layer> mtp() const { return mtp_; }
  const backend::RopeView& rope() const { return rope_; }  // of all layers
  // What of the file it leaves aside, in words; mostly nothing.
  const std::string& ignored() const { return ignored_; }

  // What inputs are multiplied with, so that a copy may take its place: every matrix but the routed
  // experts', and those by layer. (Rows of the embedding are looked up instead.)
  std::vector<backend::WeightView*> matrices();
  std::vector<backend::ExpertsView*> experts();

  // The trunk of a layer; of layer n_layers, what stands behind the last: norm and output matrix.
  TrunkTensors trunk(int layer);

  // x = the rows' embeddings; then layers [first, last), for all rows of a step.
  void embed(Step& step) const;
  void forward(Step& step, int first, int last) const;

  // Then the logits that the step wants, from the `first` of them on, as many as step.s.logits
  // holds.
  void logits(Step& step, int64_t first = 0) const;
  // And the best of those, as many as the step wants.
  void pick(Step& step, backend::PickedRow* picks, int64_t first = 0) const;

 private:
  const Architecture* architecture_;
  Config config_;
  std::string ignored_;
  std::vector<float> rope_frequencies_;
  backend::RopeView rope_;
  std::deque<std::vector<float>> widened_;
  backend::WeightView token_embd_;
  std::vector<Layer> layers_, mtp_;
  backend::NormView output_norm_;
  backend::WeightView output_;
};

// The tensors outside the layers, and those of all layers. `rope` must outlive the result.
struct BoundTensors {
  backend::WeightView token_embd;
  std::vector<Layer> layers;  // and the MTP blocks behind them
  backend::NormView output_norm;
  backend::WeightView output;  // the embedding where it is tied
};
BoundTensors bind_all(const Architecture& architecture, const Config& config,
                      const backend::RopeView& rope, TensorSource& source);

}  // namespace sluice::model
