// See model_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/model_file.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "gguf/in_quotes.h"
#include "gguf/parse.h"
#include "gguf/shard_name.h"

namespace sluice::gguf {
namespace {

constexpr std::string_view kSplitNo = "split.no";  // from 0, while the names count from 1
constexpr std::string_view kSplitCount = "split.count";
constexpr std::string_view kSplitTensors = "split.tensors.count";

template <typename... Args>
[[noreturn]] void fail(const std::string& path, const Args&... args) {
  throw Error(Errc::bad_file, cat(path, ": ", args...));
}

// The name of the first shard, after the proof that file, name and keys agree that it is one.
ShardName first_shard_name(const Metadata& metadata, int64_t count) {
  const std::string& path = metadata.origin();
  const auto name = parse_shard_name(path);
  if (!name) {
    fail(path, "the file is one of ", count, " shards (", kSplitCount,
         "), but its name does not say which; expected a name that ends in ",
         ShardName{"", 1, count}.path(), ": give the shards their original names");
  }
  if (name->count != count) {
    fail(path, "the file's name says ", name->count, " shards, its key ", kSplitCount, " says ",
         count, "; expected the same number: give the shards their original names");
  }
  const int64_t number = metadata.get_int(kSplitNo, {0, kMaxShards}) + 1;
  if (number != 1) {
    fail(path, "this is shard ", number, " of ", count, "; expected the first shard: pass ",
         name->with_number(1).path());
  }
  if (name->number != 1) {
    fail(path, "the file's name says shard ", name->number, ", its key ", kSplitNo,
         " says the first; expected the same: give the shards their original names");
  }
  return *name;
}

void check_shard(const Metadata& metadata, int64_t index, int64_t count) {
  const int64_t no = metadata.get_int(kSplitNo);
  if (no != index) {
    fail(metadata.origin(), "key ", kSplitNo, " is ", no, "; expected ", index,
         ": give the shards their original names");
  }
  const int64_t found = metadata.get_int(kSplitCount);
  if (found != count) {
    fail(metadata.origin(), "key ", kSplitCount, " is ", found, "; expected ", count,
         ", as in the first shard");
  }
}

// A shard that is not there is named as what it is.
MappedFile open_on_disk(const std::string& first, const std::string& path) {
  const auto name = parse_shard_name(path);
  std::error_code ignored;  // whatever keeps it from being seen, open() will say
  if (path != first && name && !std::filesystem::exists(path, ignored) && !ignored) {
    fail(first, "shard ", name->number, " of ", name->count, " is missing; expected it at ", path);
  }
  return MappedFile::open(path);
}

}  // namespace

ModelFile ModelFile::open(const std::string& path) {
  return open(path, [&](const std::string& file) { return open_on_disk(path, file); });
}

ModelFile ModelFile::open(const std::string& path, const OpenFile& open_file) {
  ModelFile model;
  model.metadata_ = model.add_file(open_file(path));
  const int64_t count = model.metadata_.get_int_or(
      kSplitCount, 1, {.min = std::numeric_limits<int64_t>::min(), .max = kMaxShards});
  if (count > 1) model.add_other_shards(count, open_file);
  model.index_tensors();
  return model;
}

Metadata ModelFile::add_file(MappedFile file) {
  files_.push_back(std::move(file));
  const std::span<const std::byte> bytes = files_.back().bytes();
  ParsedFile parsed = parse(bytes, files_.back().path());
  headers_.push_back(bytes.first(std::min<size_t>(bytes.size(), parsed.data_start)));
  alignment_ = files_.size() == 1 ? parsed.alignment : std::min(alignment_, parsed.alignment);
  for (TensorInfo& info : parsed.tensors) {
    const auto data = bytes.subspan(info.offset, info.n_bytes);
    tensors_.push_back({std::move(info), files_.size() - 1, data});
  }
  return std::move(parsed.metadata);
}

void ModelFile::add_other_shards(int64_t count, const OpenFile& open_file) {
  const std::string& first = metadata_.origin();
  const ShardName name = first_shard_name(metadata_, count);
  const int64_t n_tensors = metadata_.get_int(kSplitTensors);
  for (int64_t i = 1; i < count; ++i) {
    const std::string path = name.with_number(i + 1).path();
    check_shard(add_file(open_file(path)), i, count);
  }
  if (static_cast<int64_t>(tensors_.size()) != n_tensors) {
    fail(first, "the ", count, " shards hold ", tensors_.size(), " tensors; expected ", n_tensors,
         " (", kSplitTensors, ")");
  }
}

void ModelFile::index_tensors() {
  by_name_.reserve(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto [entry, is_new] = by_name_.emplace(tensors_[i].name, i);
    if (!is_new) {
      fail(files_[tensors_[i].shard].path(), "tensor ", in_quotes(tensors_[i].name), " is also in ",
           files_[tensors_[entry->second].shard].path(), "; expected it in one shard");
    }
  }
}

const Tensor* ModelFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

std::vector<std::string> ModelFile::paths() const {
  std::vector<std::string> out;
  for (const MappedFile& file : files_) out.push_back(file.path());
  return out;
}

uint64_t ModelFile::file_bytes() const {
  uint64_t total = 0;
  for (const MappedFile& file : files_) total += file.bytes().size();
  return total;
}

void ModelFile::populate(const std::function<void(uint64_t done, uint64_t total)>& progress) const {
  const uint64_t total = file_bytes();
  uint64_t before = 0;
  for (const MappedFile& file : files_) {
    file.populate([&](uint64_t done) {
      if (progress) progress(before + done, total);
    });
    before += file.bytes().size();
  }
}

}  // namespace sluice::gguf
