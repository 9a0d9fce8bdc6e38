// Tensors from an open GGUF file, each checked against what the architecture expects.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "gguf/model_file.h"
#include "model/architecture.h"
#include "model/tensor_source.h"

namespace sluice::model {

// Refuses, with the origin in the text, a tensor that is required and not there (null), or of
// another shape. Trailing dimensions of 1 mean nothing: [8] and [8, 1] are the same shape.
void check_tensor(const std::string& origin, const TensorRequest& request,
                  const gguf::TensorInfo* tensor);

class FileSource final : public TensorSource {
 public:
  // Vectors that need widening, and zeros, go to `widened`, which keeps their addresses.
  FileSource(const gguf::ModelFile& file, std::deque<std::vector<float>>& widened)
      : file_(file), widened_(widened) {}

  bool has(const std::string& name) const override { return file_.find(name) != nullptr; }
  void require_planning(std::string_view form) override;
  backend::WeightView matrix(const TensorRequest& request) override;
  backend::WeightView zero_row(int64_t n_cols) override;
  const float* vector(const TensorRequest& request) override;

  // Refuses a file with tensors that nobody asked for. Those of a vision part may be left aside:
  // what is, in words, or nothing.
  std::string require_all_used(const Architecture& architecture) const;

 private:
  const gguf::Tensor* find(const TensorRequest& request);
  [[noreturn]] void refuse(const std::string& text) const;

  const gguf::ModelFile& file_;
  std::deque<std::vector<float>>& widened_;
  backend::WeightView zeros_;                  // of whoever asked last, for all that ask alike
  std::unordered_set<std::string_view> used_;  // names, as the file holds them
};

}  // namespace sluice::model
