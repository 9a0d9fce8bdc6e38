// Takes a GGUF file apart, so that a test can change one thing, and puts it together again. What
// the writer would refuse to write is done on the bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "gguf/model_file.h"
#include "gguf/writer.h"
#include "support/temp_dir.h"

namespace sluice::test {

struct EditableTensor {
  std::string name;
  std::vector<int64_t> shape;
  const quant::TypeInfo* type = nullptr;
  std::string data;
};

class EditableModel {
 public:
  explicit EditableModel(const std::string& path) {
    const gguf::ModelFile file = gguf::ModelFile::open(path);
    const auto entries = file.metadata().entries();
    keys.assign(entries.begin(), entries.end());
    for (const gguf::Tensor& t : file.tensors()) {
      tensors.push_back({t.name, t.shape, t.type,
                         std::string(reinterpret_cast<const char*>(t.data.data()), t.n_bytes)});
    }
  }

  void set(const std::string& key, gguf::Value value) {
    for (auto& entry : keys) {
      if (entry.key != key) continue;
      entry.value = std::move(value);
      return;
    }
    keys.push_back({key, std::move(value)});
  }
  void remove_key(const std::string& key) {
    std::erase_if(keys, [&](const auto& entry) { return entry.key == key; });
  }

  EditableTensor& tensor(const std::string& name) {
    for (EditableTensor& t : tensors) {
      if (t.name == name) return t;
    }
    ADD_FAILURE() << "the test's model has no tensor " << name;
    return tensors.front();
  }

  // Of another type or shape, with zeros as data.
  void reshape(const std::string& name, const quant::TypeInfo& type, std::vector<int64_t> shape) {
    EditableTensor& t = tensor(name);
    uint64_t n_blocks = 1;
    for (const int64_t dim : shape) n_blocks *= static_cast<uint64_t>(dim);
    n_blocks /= type.block_elems;
    t = {name, std::move(shape), &type, std::string(n_blocks * type.block_bytes, '\0')};
  }

  // The tensors [first, last) with all keys.
  void write(const std::string& path, size_t first, size_t last) const {
    gguf::Writer writer(path);
    for (const auto& [key, value] : keys) writer.metadata().set(key, value);
    for (size_t i = first; i < last; ++i) {
      writer.add_tensor(tensors[i].name, *tensors[i].type, tensors[i].shape);
    }
    writer.begin();
    for (size_t i = first; i < last; ++i) {
      writer.write(std::as_bytes(std::span(tensors[i].data)));
    }
    writer.finish();
  }
  std::string write(const std::string& path) const { return write(path, 0, tensors.size()), path; }

  std::vector<gguf::Metadata::Entry> keys;
  std::vector<EditableTensor> tensors;
};

// Writes the model as two shards and returns their paths.
inline std::array<std::string, 2> split_in_two(EditableModel model, const std::string& prefix) {
  const size_t n = model.tensors.size();
  const std::array paths = {prefix + "-00001-of-00002.gguf", prefix + "-00002-of-00002.gguf"};
  model.set("split.count", uint16_t{2});
  model.set("split.tensors.count", static_cast<int32_t>(n));
  for (size_t i = 0; i < 2; ++i) {
    model.set("split.no", static_cast<uint16_t>(i));
    model.write(paths[i], i * n / 2, (i + 1) * n / 2);
  }
  return paths;
}

// Where a tensor's line of the directory stands in a file's bytes, after the name: the number of
// dimensions, these, the type id, the offset.
class TensorLine {
 public:
  TensorLine(std::string& bytes, const std::string& name) : bytes_(bytes) {
    const uint64_t length = name.size();
    std::string needle(reinterpret_cast<const char*>(&length), sizeof(length));
    pos_ = bytes.find(needle + name) + needle.size() + name.size();
    EXPECT_LT(pos_, bytes.size()) << "the test's model has no tensor " << name;
    std::memcpy(&n_dims_, &bytes_.at(pos_), sizeof(n_dims_));
  }

  void set_dim(uint32_t i, int64_t value) { put(4 + 8 * i, value); }
  void set_type(uint32_t id) { put(4 + 8 * n_dims_, id); }
  void set_offset(uint64_t offset) { put(8 + 8 * n_dims_, offset); }

 private:
  template <typename T>
  void put(size_t at, T value) {
    std::memcpy(&bytes_.at(pos_ + at), &value, sizeof(value));
  }

  std::string& bytes_;
  size_t pos_ = 0;
  uint32_t n_dims_ = 0;
};

}  // namespace sluice::test
