// One kind of model: how it reads its shape, which tensors it has, and what a layer computes. A new
// architecture is a new architectures/<name>.cpp and a line in architecture.cpp, never an `if`
// elsewhere. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "gguf/metadata.h"
#include "model/config.h"
#include "model/layer.h"
#include "model/step.h"

namespace sluice::model {

class Architecture {
 public:
  virtual ~Architecture() = default;

  virtual std::string_view name() const = 0;

  // The metadata's shape, with this architecture's own rules applied and checked.
  virtual Config read_config(const ConfigReader& in) const = 0;

  // The key, after "<architecture>.", that holds an expert's width.
  virtual std::string_view expert_width_key() const { return "expert_feed_forward_length"; }

  // Whether a file without output.weight uses the embedding in its place.
  virtual bool may_tie_output() const { return false; }

  // Whether a rope_freqs.weight tensor may divide the frequencies.
  virtual bool may_have_rope_factors() const { return false; }

  virtual Layer bind_layer(LayerBinder& binder) const = 0;

  // x: [n_rows, d_model], updated in place.
  virtual void forward_layer(const Layer& layer, Step& step) const = 0;
};

// Null where the name is not known.
const Architecture* find_architecture(std::string_view name);

// The known names, for error texts and help.
std::span<const Architecture* const> architectures();

// Each lives in architectures/<name>.cpp.
const Architecture& qwen3moe();
const Architecture& qwen2moe();
const Architecture& olmoe();
const Architecture& llama();

}  // namespace sluice::model
