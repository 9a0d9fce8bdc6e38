// See tensor_info.h.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/tensor_info.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "gguf/in_quotes.h"
#include "gguf/layout.h"
#include "gguf/metadata.h"

namespace sluice::gguf {
namespace {

template <typename... Args>
[[noreturn]] void fail(const std::string& path, const Args&... args) {
  throw Error(Errc::bad_file, cat(path, ": ", args...));
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string out = "[";
  for (const int64_t dim : shape) out += cat(out.size() > 1 ? ", " : "", dim);
  return out + "]";
}

// The shape's product. A zero counts as one here: what strides are made of must not overflow
// either, whichever dimension is the empty one.
bool product_fits(std::span<const int64_t> shape) {
  int64_t product = 1;
  for (const int64_t dim : shape) {
    if (__builtin_mul_overflow(product, std::max<int64_t>(dim, 1), &product)) return false;
  }
  return true;
}

}  // namespace

uint64_t alignment_of(const Metadata& metadata) {
  const Value* value = metadata.find(kAlignmentKey);
  if (value == nullptr) return kDefaultAlignment;
  const auto* alignment = std::get_if<uint32_t>(value);
  if (alignment == nullptr) {
    fail(metadata.origin(), "key ", in_quotes(kAlignmentKey), " is of type ", describe_type(*value),
         "; expected u32");
  }
  if (!std::has_single_bit(*alignment) || *alignment < kMinAlignment ||
      *alignment > kMaxAlignment) {
    fail(metadata.origin(), "key ", in_quotes(kAlignmentKey), " is ", *alignment,
         "; expected a power of two from ", kMinAlignment, " to ", kMaxAlignment);
  }
  return *alignment;
}

void check_key(const std::string& path, std::string_view key) {
  if (key.empty() || key.size() > kMaxKeyBytes) {
    fail(path, "key ", in_quotes(key), " has ", key.size(), " bytes; expected 1 to ", kMaxKeyBytes);
  }
}

void check_tensor_name(const std::string& path, std::string_view name) {
  if (name.empty() || name.size() > kMaxTensorNameBytes) {
    fail(path, "tensor name ", in_quotes(name), " has ", name.size(), " bytes; expected 1 to ",
         kMaxTensorNameBytes);
  }
}

uint64_t checked_tensor_bytes(const std::string& path, const TensorInfo& tensor) {
  const auto& [name, shape, type, offset, n_bytes] = tensor;
  if (shape.size() > kMaxDims) {
    fail(path, "tensor ", in_quotes(name), " has ", shape.size(), " dimensions; expected at most ",
         kMaxDims);
  }
  if (std::ranges::any_of(shape, [](int64_t dim) { return dim < 0; })) {
    fail(path, "tensor ", in_quotes(name), " has shape ", shape_text(shape),
         "; expected no negative dimension");
  }
  if (!product_fits(shape)) {
    fail(path, "tensor ", in_quotes(name), " has shape ", shape_text(shape),
         "; expected fewer than 2^63 elements");
  }
  const auto row = static_cast<uint64_t>(tensor.dim(0));
  if (row % type->block_elems != 0) {
    fail(path, "tensor ", in_quotes(name), " of type ", type->name, " has rows of ", row,
         " elements; expected a multiple of ", type->block_elems);
  }
  uint64_t bytes = row / type->block_elems;
  bool fits = !__builtin_mul_overflow(bytes, uint64_t{type->block_bytes}, &bytes);
  for (size_t i = 1; i < kMaxDims; ++i) {
    fits = fits && !__builtin_mul_overflow(bytes, static_cast<uint64_t>(tensor.dim(i)), &bytes);
  }
  if (!fits) {
    fail(path, "tensor ", in_quotes(name), " of type ", type->name, " has shape ",
         shape_text(shape), "; expected fewer than 2^64 bytes");
  }
  return bytes;
}

void check_unique_names(const std::string& path, std::span<const TensorInfo> tensors) {
  std::vector<std::string_view> names(tensors.size());
  std::ranges::transform(tensors, names.begin(), &TensorInfo::name);
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    fail(path, "tensor ", in_quotes(*twice), " occurs more than once; expected unique names");
  }
}

}  // namespace sluice::gguf
