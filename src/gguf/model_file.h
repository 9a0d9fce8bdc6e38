// A GGUF model on disk, in one file or in shards: the metadata and all tensors with their bytes,
// mapped. Knows no model: which tensors must exist is decided in model/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gguf/mapped_file.h"
#include "gguf/metadata.h"
#include "gguf/tensor_info.h"

namespace sluice::gguf {

struct Tensor : TensorInfo {
  size_t shard = 0;                 // the file, for ModelFile::paths(); offset is within it
  std::span<const std::byte> data;  // n_bytes; lives as long as the ModelFile
};

// Move-only; tensors and their bytes stay where they are when it moves.
class ModelFile {
 public:
  // A single file, or the first shard of a split model, whose other shards are found by name.
  // Throws Errc::bad_file.
  static ModelFile open(const std::string& path);
  // The same with files that come from elsewhere: `open_file` is given the name of each.
  using OpenFile = std::function<MappedFile(const std::string& path)>;
  static ModelFile open(const std::string& path, const OpenFile& open_file);

  ModelFile(ModelFile&&) noexcept = default;
  ModelFile& operator=(ModelFile&&) noexcept = default;

  const Metadata& metadata() const { return metadata_; }        // of the first shard
  std::span<const Tensor> tensors() const { return tensors_; }  // in the order of the files
  const Tensor* find(std::string_view name) const;              // null: no such tensor

  size_t n_shards() const { return files_.size(); }
  std::vector<std::string> paths() const;
  uint64_t file_bytes() const;  // of all shards
  // Metadata and tensor directory of a shard, as they stand in its file.
  std::span<const std::byte> header(size_t shard) const { return headers_[shard]; }
  // Every tensor starts at a multiple of this in its file (and in memory, up to the page size).
  uint64_t alignment() const { return alignment_; }

  // MappedFile::populate() on every shard; `progress` (may be empty) counts over all of them.
  void populate(const std::function<void(uint64_t done, uint64_t total)>& progress) const;

 private:
  ModelFile() = default;

  // Maps and parses one more file, takes its tensors and returns its metadata.
  Metadata add_file(MappedFile file);
  void add_other_shards(int64_t count, const OpenFile& open_file);
  void index_tensors();

  Metadata metadata_;
  std::vector<MappedFile> files_;
  std::vector<std::span<const std::byte>> headers_;  // by file
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_;  // into tensors_, whose names it borrows
  uint64_t alignment_ = 0;
};

}  // namespace sluice::gguf
