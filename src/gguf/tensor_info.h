// One line of a GGUF file's tensor directory, and the rules that a tensor must keep wherever it
// comes from: the parser and the writer both ask here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quant/type.h"

namespace sluice::gguf {

class Metadata;

struct TensorInfo {
  std::string name;
  std::vector<int64_t> shape;  // ne0, the contiguous one, first; 0 to 4 of them
  const quant::TypeInfo* type = nullptr;
  uint64_t offset = 0;  // from the start of the file
  uint64_t n_bytes = 0;

  // 1 for the dimensions that the shape does not name.
  int64_t dim(size_t i) const { return i < shape.size() ? shape[i] : 1; }
};

// All of these throw Errc::bad_file with `path` in the text.

// The value of general.alignment, or the default: a power of two from kMinAlignment to
// kMaxAlignment.
uint64_t alignment_of(const Metadata& metadata);

// A key has 1 to 65535 bytes, a name 1 to 63: asked before they are copied.
void check_key(const std::string& path, std::string_view key);
void check_tensor_name(const std::string& path, std::string_view name);

// The bytes of a tensor: at most 4 dimensions, none negative, whole blocks in each row, and no
// overflow on the way.
uint64_t checked_tensor_bytes(const std::string& path, const TensorInfo& tensor);

void check_unique_names(const std::string& path, std::span<const TensorInfo> tensors);

}  // namespace sluice::gguf
