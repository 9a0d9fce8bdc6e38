// Where an architecture gets its tensors. It asks for each by name, shape and need; a file answers
// with data (file_source.cpp), a recorder only writes the wishes down (synth.cpp), so the list of a
// model's tensors exists once, in the code that binds them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/views.h"

namespace sluice::model {

enum class Presence {
  required,
  usual,  // may be absent, but real files have it
  rare,   // may be absent, and real files mostly do without
};

struct TensorRequest {
  std::string name;
  std::vector<int64_t> shape;  // fastest dimension first, as in the file
  Presence presence = Presence::required;
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // A matrix or a stack of them, of any type sluice computes with; empty where it is absent.
  virtual backend::WeightView matrix(const TensorRequest& request) = 0;

  // A vector as plain f32; null where it is absent.
  virtual const float* vector(const TensorRequest& request) = 0;
};

}  // namespace sluice::model
