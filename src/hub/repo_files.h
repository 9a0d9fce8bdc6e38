// What a repository holds, and which of it is meant. Files make models: one GGUF file, or all
// shards of a split one. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hub/repo_name.h"

namespace sluice::hub {

struct RepoFile {
  std::string path;  // in the repository
  uint64_t n_bytes = 0;
  std::string sha256;  // 64 small hexadecimal digits; empty: not known
};

// A page of the hub's listing: a JSON array of {type, path, size, lfs: {oid, size}}. Files whose
// path is no safe one are left out. Throws Errc::bad_file, naming `origin`, for other text.
std::vector<RepoFile> parse_listing(std::string_view json, const std::string& origin);

struct RepoModel {
  std::string stem;             // the path without ".gguf" and without a shard's number
  std::vector<RepoFile> files;  // the shards in order
  bool is_whole = true;         // no shard is missing

  uint64_t n_bytes() const;
};

// The models among some files, sorted by name. Those for images (mmproj) and for drafts (imatrix)
// are none.
std::vector<RepoModel> models_of(std::span<const RepoFile> files);

// "Q4_K_M" of "dir/Qwen3-30B-A3B-Q4_K_M"; the file's name itself where it names no such type.
std::string quant_of(std::string_view stem);

// Whether it is of the type that is taken where none is named: Q4_K_M.
bool is_usual(const RepoModel& model);

// The model that is meant: the file that was named; else the one whose name holds the quant, in
// any case of letters, best the one of exactly this type; else Q4_K_M, or the first. Throws
// Errc::bad_request with what there is.
const RepoModel& choose_model(std::span<const RepoModel> models, const RepoName& name);

}  // namespace sluice::hub
