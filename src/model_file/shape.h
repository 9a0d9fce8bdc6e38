// The sizes of a model file, for the planner: which bytes are trunk, which are experts, what a past
// token and a sequence leave behind. Reads the keys and the tensor directory alone; what a tensor
// is it learns from the architecture's binding, also of architectures that cannot run yet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "gguf/model_file.h"
#include "policy/plan/pricing.h"

namespace sluice::model_file {

// Throws Errc::bad_file or Errc::unsupported_model for keys and tensors that make no model.
policy::ModelShape read_shape(const gguf::Metadata& metadata,
                              std::span<const gguf::TensorInfo> tensors);
policy::ModelShape read_shape(const gguf::ModelFile& file);

}  // namespace sluice::model_file
