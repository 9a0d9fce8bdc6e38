// See file_source.h.
// SPDX-License-Identifier: Apache-2.0
#include "model/file_source.h"

#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/units.h"
#include "gguf/in_quotes.h"
#include "quant/decode.h"
#include "quant/type.h"

namespace sluice::model {
namespace {

std::string format_shape(std::span<const int64_t> shape) {
  std::string text = "[";
  for (const int64_t n : shape) text += cat(text.size() > 1 ? ", " : "", n);
  return text + "]";
}

bool same_shape(std::vector<int64_t> a, std::vector<int64_t> b) {
  while (a.size() > 1 && a.back() == 1) a.pop_back();
  while (b.size() > 1 && b.back() == 1) b.pop_back();
  return a == b;
}

}  // namespace

void check_tensor(const std::string& origin, const TensorRequest& request,
                  const gguf::TensorInfo* tensor) {
  const auto refuse = [&](const std::string& text) {
    throw Error(Errc::unsupported_model, cat(origin, ": tensor '", request.name, "' ", text));
  };
  if (!tensor) {
    if (request.presence != Presence::required) return;
    refuse(cat("is missing; expected one of shape ", format_shape(request.shape)));
  } else if (!same_shape(tensor->shape, request.shape)) {
    refuse(
        cat("has shape ", format_shape(tensor->shape), "; expected ", format_shape(request.shape)));
  }
}

void FileSource::refuse(const std::string& text) const {
  throw Error(Errc::unsupported_model, cat(file_.metadata().origin(), ": ", text));
}

void FileSource::require_planning(std::string_view form) {
  refuse(cat(form, ", which sluice cannot run; convert the file again"));
}

const gguf::Tensor* FileSource::find(const TensorRequest& request) {
  const gguf::Tensor* tensor = file_.find(request.name);
  check_tensor(file_.metadata().origin(), request, tensor);
  if (!tensor) return nullptr;
  if (!tensor->type->supported) {
    refuse(cat("tensor '", request.name, "' is of type ", tensor->type->name,
               ", which sluice cannot compute with; use a file of another quantisation"));
  }
  used_.insert(tensor->name);
  return tensor;
}

backend::WeightView FileSource::matrix(const TensorRequest& request) {
  const gguf::Tensor* tensor = find(request);
  if (!tensor) return {};
  const auto type = static_cast<quant::Type>(tensor->type->id);
  // Plain numbers are read where they stand, so they must stand on their own size.
  const uint64_t element = tensor->type->block_bytes;
  if (quant::is_float(type) && tensor->offset % element != 0) {
    refuse(cat("tensor '", request.name, "' starts at byte ", tensor->offset,
               "; expected a multiple of ", element, " (general.alignment is too small)"));
  }
  const auto& shape = request.shape;
  return {type, tensor->data.data(), shape[0], shape[1], shape.size() > 2 ? shape[2] : 1};
}

backend::WeightView FileSource::zero_row(int64_t n_cols) {
  if (zeros_.n_cols == n_cols) return zeros_;
  const std::vector<float>& zeros = widened_.emplace_back(static_cast<size_t>(n_cols));
  zeros_ = {quant::Type::f32, std::as_bytes(std::span(zeros)).data(), n_cols, 1};
  return zeros_;
}

const float* FileSource::vector(const TensorRequest& request) {
  const gguf::Tensor* tensor = find(request);
  if (!tensor) return nullptr;
  const auto type = static_cast<quant::Type>(tensor->type->id);
  if (!quant::is_float(type)) {
    refuse(cat("tensor '", request.name, "' is of type ", tensor->type->name,
               "; expected F32, F16 or BF16 for a vector"));
  }
  if (type == quant::Type::f32 && tensor->offset % sizeof(float) == 0) {
    return reinterpret_cast<const float*>(tensor->data.data());
  }
  const int64_t n =
      std::reduce(request.shape.begin(), request.shape.end(), int64_t{1}, std::multiplies());
  auto& values = widened_.emplace_back(static_cast<size_t>(n));
  quant::decode_row(type, tensor->data.data(), values);
  return values.data();
}

std::string FileSource::require_all_used(const Architecture& architecture) const {
  int n_ignored = 0;
  uint64_t n_bytes = 0;
  for (const gguf::Tensor& tensor : file_.tensors()) {
    if (used_.contains(tensor.name)) continue;
    if (architecture.may_have_vision && is_vision_tensor(tensor.name)) {
      ++n_ignored;
      n_bytes += tensor.n_bytes;
      continue;
    }
    refuse(cat("tensor ", gguf::in_quotes(tensor.name), " is not known for architecture '",
               architecture.name, "'; leaving it out would give wrong answers"));
  }
  if (n_ignored == 0) return {};
  return cat("the file's vision part is ignored (", n_ignored, " tensors, ", format_bytes(n_bytes),
             "): sluice reads text alone");
}

}  // namespace sluice::model
