// Where an architecture gets its tensors. It asks for each by name, shape and need; a file answers
// with data (file_source.cpp), a recorder only notes what was asked for (model_file/recorder.h), so
// the list of a model's tensors exists once, in the code that binds them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/views.h"

namespace sluice::model {

enum class Presence {
  required,
  usual,  // may be absent, but real files have it
  rare,   // may be absent, and real files mostly do without
};

// What a tensor is to its layer, for whoever counts bytes.
enum class Role {
  trunk,   // every token reads it
  shared,  // as well: the expert that all tokens use, or a dense network in the experts' place
  expert,  // of the routed experts: all of them in a stack, or one
};

struct TensorRequest {
  std::string name;
  std::vector<int64_t> shape;  // fastest dimension first, as in the file
  Presence presence = Presence::required;
  Role role = Role::trunk;
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // Whether it is there, for parts that come in more than one form.
  virtual bool has(const std::string& name) const = 0;

  // The form that is asked for next is known, but cannot run: binding a model to run throws here.
  virtual void require_planning(std::string_view form) { (void)form; }

  // A matrix or a stack of them, of any type sluice computes with; empty where it is absent.
  virtual backend::WeightView matrix(const TensorRequest& request) = 0;

  // A matrix of one row of zeros, as F32, which no file holds.
  virtual backend::WeightView zero_row(int64_t n_cols) = 0;

  // A vector, or a few rows that no input is multiplied with, as plain f32; null where it is
  // absent.
  virtual const float* vector(const TensorRequest& request) = 0;
};

}  // namespace sluice::model
