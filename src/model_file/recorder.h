// Runs an architecture's binding without a model and writes down what it asks for: so `synth` knows
// which tensors to write, and `plan` what each tensor of a file is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/tensor_source.h"

namespace sluice::model_file {

class Recorder final : public model::TensorSource {
 public:
  // `has` answers for a file's tensors; without one every part comes in its usual form.
  explicit Recorder(std::function<bool(const std::string&)> has = {}) : has_(std::move(has)) {}

  std::span<const model::TensorRequest> requests() const { return requests_; }

  bool has(const std::string& name) const override { return has_ && has_(name); }
  // A view of the size that was asked for, without data.
  backend::WeightView matrix(const model::TensorRequest& request) override {
    requests_.push_back(request);
    return {.n_cols = request.shape[0], .n_rows = request.shape[1]};
  }
  backend::WeightView zero_row(int64_t n_cols) override { return {.n_cols = n_cols, .n_rows = 1}; }
  const float* vector(const model::TensorRequest& request) override {
    requests_.push_back(request);
    return nullptr;
  }

 private:
  std::function<bool(const std::string&)> has_;
  std::vector<model::TensorRequest> requests_;
};

}  // namespace sluice::model_file
