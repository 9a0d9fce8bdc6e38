// The models in folders that are laid out as a hub is (user/repo/file.gguf: what sluice pulled, and
// LM Studio's), and as Ollama keeps them (manifests and blobs).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hub/repo_name.h"

namespace sluice::cli {

struct StoredModel {
  std::string name;    // "user/repo:Q4_K_M", "qwen3:30b"
  std::string path;    // of a split model the first file
  std::string source;  // "file", "pulled", "lm-studio" or "ollama"
  uint64_t n_bytes = 0;
  std::vector<std::string> files = {};  // all that belong to it, those on their way too
  bool is_whole = true;                 // else a part of it is still to be fetched
};

// All of a folder such as ~/.lmstudio/models.
std::vector<StoredModel> models_in_repos(const std::string& folder, const std::string& source);
// Those of one repository.
std::vector<StoredModel> models_in_repo(const std::string& folder, const std::string& source,
                                        const std::string& user, const std::string& repo);

// All of a folder such as ~/.ollama/models.
std::vector<StoredModel> models_of_ollama(const std::string& folder);

// The whole model that a name means, among those of its repository here; nothing: it is not here.
// `usual_only`: where no type is named, only Q4_K_M counts, as the hub may have it.
std::optional<StoredModel> find_in_repos(const hub::RepoName& name, bool usual_only);

}  // namespace sluice::cli
