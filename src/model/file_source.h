// Tensors from an open GGUF file, each checked against what the architecture expects.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "gguf/model_file.h"
#include "model/tensor_source.h"

namespace sluice::model {

class FileSource final : public TensorSource {
 public:
  // Vectors that need widening go to `widened`, which keeps their addresses.
  FileSource(const gguf::ModelFile& file, std::deque<std::vector<float>>& widened)
      : file_(file), widened_(widened) {}

  backend::WeightView matrix(const TensorRequest& request) override;
  const float* vector(const TensorRequest& request) override;

  // Refuses a file with tensors that nobody asked for.
  void require_all_used(std::string_view architecture) const;

 private:
  const gguf::Tensor* find(const TensorRequest& request);
  [[noreturn]] void refuse(const std::string& text) const;

  const gguf::ModelFile& file_;
  std::deque<std::vector<float>>& widened_;
  std::unordered_set<std::string_view> used_;  // names, as the file holds them
};

}  // namespace sluice::model
