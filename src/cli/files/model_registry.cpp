// See model_registry.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/files/model_registry.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "cli/files/hub_models.h"
#include "cli/files/model_folders.h"
#include "gguf/shard_name.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNamed = 20;

// Of a split model all its files.
uint64_t bytes_of(const std::string& path) {
  std::error_code error;
  const auto shard = gguf::parse_shard_name(path);
  uint64_t n = 0;
  for (int64_t i = 1; i <= (shard ? shard->count : 1); ++i) {
    const uint64_t more = fs::file_size(shard ? shard->with_number(i).path() : path, error);
    n += error ? 0 : more;
  }
  return n;
}

std::string names_of(const std::vector<StoredModel>& models) {
  std::string out;
  size_t n = 0;
  for (const StoredModel& model : models) {
    if (!model.is_whole || ++n > kMaxNamed) continue;
    out += cat(out.empty() ? "" : ", ", model.name);
  }
  if (n > kMaxNamed) out += cat(" and ", n - kMaxNamed, " more");
  return out.empty() ? "(none)" : out;
}

// A name as the hub has them, of a model that may be here under a longer one.
std::optional<hub::RepoName> repo_name(const std::string& name) {
  try {
    return hub::parse_repo_name(name);
  } catch (const Error&) {
    return std::nullopt;
  }
}

[[noreturn]] void refuse(const std::string& name, const std::vector<StoredModel>& models) {
  const auto repo = repo_name(name);
  throw Error(Errc::bad_request,
              cat("there is no model '", name, "'; ",
                  repo ? cat("sluice pull ", repo->text(), " fetches it; here are: ")
                       : std::string("expected a GGUF file, or one of: "),
                  names_of(models)));
}

}  // namespace

std::vector<StoredModel> stored_models() {
  std::vector<StoredModel> found;
  const auto add = [&](std::vector<StoredModel> more) {
    found.insert(found.end(), more.begin(), more.end());
  };
  for (const FoundModel& model : sluice::list_models(own_model_folders())) {
    found.push_back({model.name, model.path, "file", bytes_of(model.path), {model.path}});
  }
  for (const std::string& folder : own_model_folders()) add(models_in_repos(folder, "pulled"));
  for (const std::string& folder : lm_studio_folders()) add(models_in_repos(folder, "lm-studio"));
  for (const std::string& folder : ollama_folders()) add(models_of_ollama(folder));
  std::ranges::stable_sort(found, {}, &StoredModel::name);
  const auto rest = std::ranges::unique(found, {}, &StoredModel::name);
  found.erase(rest.begin(), rest.end());
  return found;
}

std::vector<FoundModel> list_models() {
  std::vector<FoundModel> out;
  for (const StoredModel& model : stored_models()) {
    if (model.is_whole) out.push_back({model.name, model.path});
  }
  return out;
}

std::string find_model(const std::string& name) {
  if (const auto remote = hub::parse_hub_name(name)) return hub_model_file(*remote);
  std::error_code ignored;
  if (name.ends_with(".gguf") || fs::exists(name, ignored)) return name;
  const std::vector<StoredModel> models = stored_models();
  for (const std::string& wanted : {name, name + ":latest"}) {
    for (const StoredModel& model : models) {
      if (model.is_whole && model.name == wanted) return model.path;
    }
  }
  const auto repo = repo_name(name);
  if (const auto here = repo ? find_in_repos(*repo, /*usual_only=*/false) : std::nullopt) {
    return here->path;
  }
  if (name.find('/') != std::string::npos && !repo) return name;  // a path: opening it says more
  refuse(name, models);
}

}  // namespace sluice::cli
