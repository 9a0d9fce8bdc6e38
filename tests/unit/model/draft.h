// A GGUF file in memory that a test can change before it is written: keys and tensors added, taken
// away, reshaped or retyped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "gguf/model_file.h"
#include "gguf/writer.h"
#include "quant/encode.h"

namespace sluice::model::test {

struct DraftTensor {
  std::string name;
  const quant::TypeInfo* type = nullptr;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  // Sets another shape or type, with as many bytes as that needs; new ones are zero.
  void reshape(std::vector<int64_t> to) { change(*type, std::move(to)); }
  void retype(const quant::TypeInfo& to) { change(to, shape); }

  // The values, where they are stored as F32.
  std::vector<float> floats() const {
    CHECK(type->id == 0);
    std::vector<float> out(data.size() / 4);
    std::memcpy(out.data(), data.data(), data.size());
    return out;
  }
  // Stores values in a type, as rows of shape[0].
  void set(quant::Type to, std::span<const float> values) {
    type = &quant::type_info(to);
    data.resize(quant::row_bytes(to, std::ssize(values)));
    quant::encode_row(to, values, data.data());
  }

 private:
  void change(const quant::TypeInfo& to_type, std::vector<int64_t> to_shape) {
    int64_t n = 1;
    for (const int64_t dim : to_shape) n *= dim;
    type = &to_type;
    shape = std::move(to_shape);
    data.resize(static_cast<size_t>(n) / to_type.block_elems * to_type.block_bytes);
  }
};

struct Draft {
  gguf::Metadata metadata;
  std::vector<DraftTensor> tensors;

  static Draft read(const std::string& path) {
    const gguf::ModelFile file = gguf::ModelFile::open(path);
    Draft draft;
    draft.metadata = file.metadata();
    for (const gguf::Tensor& t : file.tensors()) {
      draft.tensors.push_back({t.name, t.type, t.shape, {t.data.begin(), t.data.end()}});
    }
    return draft;
  }

  void write(const std::string& path) const {
    gguf::Writer writer(path);
    for (const auto& [key, value] : metadata.entries()) writer.metadata().set(key, value);
    for (const DraftTensor& t : tensors) writer.add_tensor(t.name, *t.type, t.shape);
    writer.begin();
    for (const DraftTensor& t : tensors) writer.write(t.data);
    writer.finish();
  }

  DraftTensor& at(const std::string& name) {
    const auto found = std::ranges::find(tensors, name, &DraftTensor::name);
    CHECK(found != tensors.end());
    return *found;
  }
  void erase(const std::string& name) {
    CHECK(std::erase_if(tensors, [&](const DraftTensor& t) { return t.name == name; }) == 1);
  }
  DraftTensor& add(const std::string& name, quant::Type type, std::vector<int64_t> shape) {
    tensors.push_back({name, &quant::type_info(type), {}, {}});
    tensors.back().reshape(std::move(shape));
    return tensors.back();
  }
};

// The same keys without one.
inline gguf::Metadata without(const gguf::Metadata& metadata, std::string_view key) {
  CHECK(metadata.contains(key));
  gguf::Metadata out(metadata.origin());
  for (const auto& entry : metadata.entries()) {
    if (entry.key != key) out.set(entry.key, entry.value);
  }
  return out;
}

}  // namespace sluice::model::test
