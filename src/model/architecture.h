// One kind of model: how it reads its configuration, which tensors it has, and what a layer
// computes. A new architecture is a new architectures/<name>.cpp and a line in architecture.cpp,
// never an `if` elsewhere. One that cannot run yet has no forward_layer: `sluice plan` can still
// say what would live where.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/config.h"
#include "model/layer_binder.h"
#include "model/step.h"

namespace sluice::model {

struct Architecture {
  std::string_view name;

  // The metadata's numbers, with this architecture's own rules applied and checked.
  Config (*read_config)(const ConfigReader& in);

  // Asks for every tensor of one layer, or of one MTP block, which follow the layers.
  Layer (*bind_layer)(LayerBinder& binder);

  // x: [n_rows, d_model], updated in place. Null: the architecture cannot run yet.
  void (*forward_layer)(const Layer& layer, Step& step) = nullptr;

  // Whether its models have experts.
  Networks networks = Networks::experts;

  // The key, after "<architecture>.", that holds an expert's width.
  std::string_view expert_width_key = "expert_feed_forward_length";

  // Whether a file without output.weight uses the embedding in its place.
  bool may_tie_output = false;

  // Whether a rope_freqs.weight tensor may divide the frequencies.
  bool may_have_rope_factors = false;

  // Whether most layers are a gated DeltaNet (Config::delta_net), and whether positions have
  // sections (RopeConfig::sections).
  bool is_hybrid = false;
  bool has_rope_sections = false;

  // Whether a file may hold a part that sees images (is_vision_tensor): it is left aside.
  bool may_have_vision = false;

  bool can_run() const { return forward_layer != nullptr; }
};

// As every converter names the tensors of an image encoder ("v.") and of what leads from it into
// the model ("mm.").
inline bool is_vision_tensor(std::string_view name) {
  return name.starts_with("v.") || name.starts_with("mm.");
}

// All of them; those that can run come first.
std::span<const Architecture* const> architectures();

// Null where the name is not known.
const Architecture* find_architecture(std::string_view name);

// The names of those that can run, for error texts and help.
std::string runnable_architectures(std::string_view separator);

// The architecture a file names, or an Error that lists those which would do: architecture_of() is
// for running a model, described_architecture_of() for whoever only wants to know its tensors.
const Architecture& architecture_of(const ConfigReader& in);
const Architecture& described_architecture_of(const ConfigReader& in);

// Each lives in the file of its name in architectures/.
extern const Architecture kQwen3Moe, kQwen2Moe, kOlmoe, kLlama, kQwen35Moe, kQwen3Next;
extern const Architecture kQwen3, kQwen35, kGptOss, kGlm4Moe, kDeepseek2;

}  // namespace sluice::model
