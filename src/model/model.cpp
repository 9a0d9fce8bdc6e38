// See model.h.
// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include "base/check.h"
#include "model/file_source.h"

namespace sluice::model {

BoundTensors bind_all(const Architecture& architecture, const Config& config,
                      const backend::RopeView& rope, TensorSource& source) {
  const int64_t d_model = config.d_model;
  BoundTensors bound;
  bound.token_embd = source.matrix({"token_embd.weight", {d_model, config.n_vocab}});
  for (int i = 0; i < config.n_layers + config.n_mtp_blocks; ++i) {
    LayerBinder binder(config, rope, source, LayerId(i));
    bound.layers.push_back(architecture.bind_layer(binder));
  }
  bound.output_norm = {source.vector({"output_norm.weight", {d_model}}), config.norm_eps};
  bound.output =
      source.matrix({"output.weight",
                     {d_model, config.n_vocab},
                     architecture.may_tie_output ? Presence::usual : Presence::required});
  if (!bound.output) bound.output = bound.token_embd;
  return bound;
}

Model::Model(const gguf::ModelFile& file) {
  const ConfigReader in(file.metadata());
  architecture_ = &architecture_of(in);
  config_ = architecture_->read_config(in);
  FileSource source(file, widened_);

  rope_frequencies_ = rope_frequencies(config_.rope);
  if (architecture_->may_have_rope_factors) {
    const int64_t n_pairs = config_.rope.n_rot / 2;
    if (const float* factors = source.vector({"rope_freqs.weight", {n_pairs}, Presence::rare})) {
      for (size_t j = 0; j < rope_frequencies_.size(); ++j) rope_frequencies_[j] /= factors[j];
    }
  }
  rope_ = {config_.rope.pairing, rope_frequencies_, rope_magnitude(config_.rope)};
  BoundTensors bound = bind_all(*architecture_, config_, rope_, source);
  ignored_ = source.require_all_used(*architecture_);
  token_embd_ = bound.token_embd;
  layers_ = std::move(bound.layers);
  const auto first_mtp = layers_.begin() + config_.n_layers;
  mtp_.assign(first_mtp, layers_.end());
  layers_.erase(first_mtp, layers_.end());
  output_norm_ = bound.output_norm;
  output_ = bound.output;
}

std::vector<backend::WeightView*> Model::matrices() {
  std::vector<backend::WeightView*> all;
  for (Layer& layer : layers_) {
    for (backend::Projection& p : layer.qkv) all.push_back(&p.weight);
    backend::ExpertsView& e = layer.experts;
    for (backend::WeightView* w : {&layer.attn_out.weight, &layer.router.weight, &e.shared_gate,
                                   &e.shared_up, &e.shared_down}) {
      all.push_back(w);
    }
  }
  all.push_back(&output_);
  std::erase_if(all, [](const backend::WeightView* w) { return !*w; });
  return all;
}

std::vector<backend::ExpertsView*> Model::experts() {
  std::vector<backend::ExpertsView*> all;
  for (Layer& layer : layers_) {
    if (layer.experts.gate) all.push_back(&layer.experts);
  }
  return all;
}

TrunkTensors Model::trunk(int layer) {
  if (layer < config_.n_layers) return trunk_of(layers_[static_cast<size_t>(layer)]);
  return {{&output_}, {{&output_norm_.weight, config_.d_model}}};
}

void Model::embed(Step& step) const { step.op.embed(token_embd_, step.rows, step.s.x); }

void Model::forward(Step& step, int first, int last) const {
  for (int i = first; i < last; ++i) {
    architecture_->forward_layer(layers_[static_cast<size_t>(i)], step);
  }
}

void Model::logits(Step& step, int64_t first) const {
  step.op.logits(step.s.x, step.rows, first, output_norm_, output_, step.s.logits);
}

void Model::pick(Step& step, backend::PickedRow* picks, int64_t first) const {
  step.op.pick(step.s.logits, step.rows, first, picks);
}

}  // namespace sluice::model
