// See model_stores.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/files/model_stores.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

#include "base/error.h"
#include "cli/files/json_text.h"
#include "cli/files/model_folders.h"
#include "hub/partial_file.h"
#include "hub/repo_files.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 3;  // of a file below its repository, or of a manifest below its host

// The entries of a folder that are no hidden ones, by name; none where it cannot be read.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> out;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with('.')) out.push_back(*entry);
  }
  std::ranges::sort(out);
  return out;
}

// Calls visit(path relative to the folder, entry) for every file below it.
template <typename Visit>
void for_each_file(const fs::path& folder, const std::string& below, int depth,
                   const Visit& visit) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    const std::string path = below + entry.path().filename().string();
    if (entry.is_directory(ignored)) {
      if (depth < kMaxDepth) for_each_file(entry.path(), path + "/", depth + 1, visit);
    } else if (entry.is_regular_file(ignored)) {
      visit(path, entry);
    }
  }
}

uint64_t size_of(const fs::path& path) {
  std::error_code error;
  const uint64_t n = fs::file_size(path, error);
  return error ? 0 : n;
}

struct RepoFolder {
  std::vector<hub::RepoModel> models;
  std::map<std::string, bool> is_partial;  // by path
};

RepoFolder read_repo(const fs::path& folder) {
  const std::string ending = hub::partial_path_of(".gguf");
  RepoFolder out;
  std::vector<hub::RepoFile> files;
  std::map<std::string, uint64_t> sizes;
  for_each_file(folder, "", 0, [&](const std::string& path, const fs::directory_entry& entry) {
    const bool is_partial = path.ends_with(ending);
    if (!is_partial && !path.ends_with(".gguf")) return;
    const std::string final_path =
        is_partial ? path.substr(0, path.size() - ending.size() + 5) : path;
    if (is_partial && sizes.contains(final_path)) return;  // a newer one comes: the old one is used
    sizes[final_path] = size_of(entry.path());
    out.is_partial[final_path] = is_partial;
  });
  for (const auto& [path, n_bytes] : sizes) files.push_back({path, n_bytes, ""});
  out.models = hub::models_of(files);
  return out;
}

// "library/qwen3/30b" of a host -> "qwen3:30b"; "user/model/tag" -> "user/model:tag". Of other
// hosts than the usual registry's the host stays, as `ollama list` shows it.
std::string ollama_name(const std::string& host, const std::string& below) {
  const size_t slash = below.rfind('/');
  if (slash == std::string::npos) return "";
  std::string name = below.substr(0, slash);
  constexpr std::string_view kLibrary = "library/";
  const bool is_usual = host.starts_with("registry.");
  if (is_usual && name.starts_with(kLibrary)) name.erase(0, kLibrary.size());
  return cat(is_usual ? "" : host + "/", name, ":", below.substr(slash + 1));
}

// The digest of the layer that is the model; empty: the file is no manifest of one.
std::string model_digest(const fs::path& manifest) {
  std::ifstream in(manifest);
  const Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("layers") || !json["layers"].is_array()) return "";
  for (const Json& layer : json["layers"]) {
    if (!layer.is_object()) continue;
    const auto type = layer.find("mediaType"), digest = layer.find("digest");
    if (type == layer.end() || digest == layer.end() || !digest->is_string()) continue;
    if (*type == "application/vnd.ollama.image.model") return digest->get<std::string>();
  }
  return "";
}

bool is_digest(std::string_view text) {
  return text.starts_with("sha256:") && text.find('/') == std::string_view::npos;
}

}  // namespace

std::vector<StoredModel> models_in_repo(const std::string& folder, const std::string& source,
                                        const std::string& user, const std::string& repo) {
  const fs::path root = fs::path(folder) / user / repo;
  const RepoFolder found = read_repo(root);
  std::map<std::string, int> n_of_quant;
  for (const hub::RepoModel& model : found.models) ++n_of_quant[hub::quant_of(model.stem)];
  std::vector<StoredModel> out;
  for (const hub::RepoModel& model : found.models) {
    const std::string quant = hub::quant_of(model.stem);
    const std::string tag =
        n_of_quant[quant] == 1 ? quant : fs::path(model.stem).filename().string();
    StoredModel stored{.name = cat(user, "/", repo, ":", tag),
                       .path = (root / model.files.front().path).string(),
                       .source = source,
                       .n_bytes = model.n_bytes(),
                       .is_whole = model.is_whole};
    for (const hub::RepoFile& file : model.files) {
      stored.is_whole &= !found.is_partial.at(file.path);
      stored.files.push_back((root / file.path).string());
    }
    out.push_back(std::move(stored));
  }
  return out;
}

std::vector<StoredModel> models_in_repos(const std::string& folder, const std::string& source) {
  std::vector<StoredModel> out;
  std::error_code ignored;
  for (const fs::directory_entry& user : entries_of(folder)) {
    if (!user.is_directory(ignored)) continue;
    for (const fs::directory_entry& repo : entries_of(user.path())) {
      if (!repo.is_directory(ignored)) continue;
      const auto more = models_in_repo(folder, source, user.path().filename().string(),
                                       repo.path().filename().string());
      out.insert(out.end(), more.begin(), more.end());
    }
  }
  return out;
}

std::vector<StoredModel> models_of_ollama(const std::string& folder) {
  std::vector<StoredModel> out;
  std::error_code ignored;
  for (const fs::directory_entry& host : entries_of(fs::path(folder) / "manifests")) {
    if (!host.is_directory(ignored)) continue;
    for_each_file(host.path(), "", 0,
                  [&](const std::string& below, const fs::directory_entry& entry) {
                    const std::string name = ollama_name(host.path().filename().string(), below);
                    std::string digest = model_digest(entry.path());
                    if (name.empty() || !is_digest(digest)) return;
                    std::ranges::replace(digest, ':', '-');
                    const fs::path blob = fs::path(folder) / "blobs" / digest;
                    if (!fs::is_regular_file(blob, ignored)) return;
                    out.push_back({name, blob.string(), "ollama", size_of(blob), {blob.string()}});
                  });
  }
  return out;
}

std::optional<StoredModel> find_in_repos(const hub::RepoName& name, bool usual_only) {
  std::vector<std::pair<std::string, std::string>> roots;
  for (const std::string& folder : own_model_folders()) roots.emplace_back(folder, "pulled");
  for (const std::string& folder : lm_studio_folders()) roots.emplace_back(folder, "lm-studio");
  for (const auto& [folder, source] : roots) {
    std::vector<StoredModel> here = models_in_repo(folder, source, name.user, name.repo);
    std::erase_if(here, [](const StoredModel& model) { return !model.is_whole; });
    std::vector<hub::RepoFile> files;
    const std::string root = cat(folder, "/", name.id(), "/");
    for (const StoredModel& model : here) {
      for (const std::string& file : model.files)
        files.push_back({file.substr(root.size()), 0, ""});
    }
    try {
      const std::vector<hub::RepoModel> models = hub::models_of(files);
      const hub::RepoModel& chosen = hub::choose_model(models, name);
      const bool is_named = !name.quant.empty() || !name.file.empty();
      if (usual_only && !is_named && !hub::is_usual(chosen)) continue;
      for (const StoredModel& model : here) {
        if (model.path == root + chosen.files.front().path) return model;
      }
    } catch (const Error&) {  // it is not among these
    }
  }
  return std::nullopt;
}

}  // namespace sluice::cli
