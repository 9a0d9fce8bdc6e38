// See repo_files.h.
// SPDX-License-Identifier: Apache-2.0
#include "hub/repo_files.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "gguf/shard_name.h"

namespace sluice::hub {
namespace {

constexpr std::string_view kExtension = ".gguf";
constexpr std::string_view kDefaultQuant = "Q4_K_M";
constexpr size_t kMaxShown = 12;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_model_file(std::string_view path) {
  const std::string name = lower(file_name(path));
  return name.ends_with(kExtension) && name.find("mmproj") == std::string::npos &&
         name.find("imatrix") == std::string::npos;
}

// "q4_k_m", "iq4_xs", "f16", "bf16", "mxfp4", "mxfp4_moe"
bool is_quant(std::string_view word) {
  if (word.starts_with("mxfp4") || word == "f16" || word == "bf16" || word == "f32") return true;
  if (word.starts_with("i")) word.remove_prefix(1);
  if (word.starts_with("t")) word.remove_prefix(1);
  return word.size() > 1 && word[0] == 'q' && word[1] >= '1' && word[1] <= '8';
}

// How well the quant names the model: 3 its type, 2 whole words of the name, 1 letters, 0 not.
int match(const RepoModel& model, const std::string& quant) {
  if (lower(quant_of(model.stem)) == quant) return 3;
  const std::string stem = lower(model.stem);
  int best = 0;
  for (size_t at = stem.find(quant); at != std::string::npos; at = stem.find(quant, at + 1)) {
    const auto ends_word = [&](size_t i) {
      return i >= stem.size() || stem[i] == '-' || stem[i] == '.' || stem[i] == '/';
    };
    const bool is_word = (at == 0 || ends_word(at - 1)) && ends_word(at + quant.size());
    best = std::max(best, is_word ? 2 : 1);
  }
  return best;
}

std::string names_of(std::span<const RepoModel> models) {
  std::string out;
  for (size_t i = 0; i < models.size() && i < kMaxShown; ++i) {
    out += cat(i > 0 ? ", " : "", quant_of(models[i].stem));
  }
  return models.size() > kMaxShown ? cat(out, " and ", models.size() - kMaxShown, " more") : out;
}

RepoFile file_of(const nlohmann::json& entry) {
  RepoFile file;
  file.path = entry.value("path", "");
  file.n_bytes = entry.value("size", uint64_t{0});
  const auto lfs = entry.find("lfs");
  if (lfs != entry.end() && lfs->is_object()) {
    file.n_bytes = lfs->value("size", file.n_bytes);
    const std::string oid = lower(lfs->value("oid", ""));
    file.sha256 = oid.starts_with("sha256:") ? oid.substr(7) : oid;
    if (!is_sha256(file.sha256)) file.sha256.clear();
  }
  return file;
}

}  // namespace

std::vector<RepoFile> parse_listing(std::string_view json, const std::string& origin) {
  const auto entries = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!entries.is_array()) {
    throw Error(Errc::bad_file, cat(origin, ": the answer is no list of files; expected a JSON ",
                                    "array: is this a hub's address (HF_ENDPOINT)?"));
  }
  std::vector<RepoFile> files;
  try {
    for (const auto& entry : entries) {
      if (!entry.is_object() || entry.value("type", "file") != "file") continue;
      RepoFile file = file_of(entry);
      if (is_safe_path(file.path)) files.push_back(std::move(file));
    }
  } catch (const nlohmann::json::exception&) {
    throw Error(Errc::bad_file, cat(origin,
                                    ": an entry of the list of files has a field of another kind; "
                                    "expected {type, path, size, lfs: {oid, size}}"));
  }
  return files;
}

uint64_t RepoModel::n_bytes() const {
  uint64_t n = 0;
  for (const RepoFile& file : files) n += file.n_bytes;
  return n;
}

std::vector<RepoModel> models_of(std::span<const RepoFile> files) {
  std::map<std::string, RepoModel> by_stem;  // of a split model with the number of its shards
  std::map<std::string, int64_t> n_shards;
  std::vector<RepoFile> sorted(files.begin(), files.end());
  std::ranges::sort(sorted, {}, &RepoFile::path);  // shards come in order: five digits each
  for (RepoFile& file : sorted) {
    if (!is_model_file(file.path)) continue;
    const auto shard = gguf::parse_shard_name(file.path);
    const std::string stem =
        shard ? shard->prefix : file.path.substr(0, file.path.size() - kExtension.size());
    const std::string key = shard ? cat(stem, " of ", shard->count) : stem;
    by_stem[key].stem = stem;
    by_stem[key].files.push_back(std::move(file));
    n_shards[key] = shard ? shard->count : 1;
  }
  std::vector<RepoModel> models;
  for (auto& [key, model] : by_stem) {
    model.is_whole = static_cast<int64_t>(model.files.size()) == n_shards[key];
    models.push_back(std::move(model));
  }
  return models;
}

std::string quant_of(std::string_view stem) {
  const std::string_view name = file_name(stem);
  // The last word that is one; "UD-Q4_K_XL" are two that belong together.
  for (size_t end = name.size(); end > 0;) {
    const size_t before = name.find_last_of("-.", end - 1);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    if (is_quant(lower(name.substr(begin, end - begin)))) {
      const bool is_dynamic = begin >= 3 && lower(name.substr(begin - 3, 3)) == "ud-";
      const size_t from = is_dynamic ? begin - 3 : begin;
      return std::string(name.substr(from, end - from));
    }
    end = begin == 0 ? 0 : begin - 1;
  }
  return std::string(name);
}

bool is_usual(const RepoModel& model) { return match(model, lower(kDefaultQuant)) >= 2; }

const RepoModel& choose_model(std::span<const RepoModel> models, const RepoName& name) {
  if (models.empty()) {
    throw Error(Errc::bad_request,
                cat(name.id(),
                    ": holds no GGUF file; expected one: look for a repository of this "
                    "model whose name ends in -GGUF"));
  }
  const RepoModel* found = nullptr;
  if (!name.file.empty()) {
    for (const RepoModel& model : models) {
      const auto is_it = [&](const RepoFile& file) { return file.path == name.file; };
      if (std::ranges::any_of(model.files, is_it)) found = &model;
    }
    if (!found) {
      throw Error(Errc::bad_request, cat(name.id(), ": has no file ", name.file, "; expected one ",
                                         "of these types: ", names_of(models)));
    }
  } else {
    const std::string quant = lower(name.quant.empty() ? kDefaultQuant : name.quant);
    int best = 0;
    for (const RepoModel& model : models) {
      const int m = match(model, quant);
      if (m > best) {
        best = m;
        found = &model;
      }
    }
    if (!found && !name.quant.empty()) {
      throw Error(Errc::bad_request, cat(name.id(), ": has nothing of type ", name.quant,
                                         "; expected one of: ", names_of(models)));
    }
    if (!found) found = &models.front();
  }
  if (!found->is_whole) {
    throw Error(Errc::bad_file, cat(name.id(), ": shards of ", found->stem,
                                    " are missing in the repository; choose another file"));
  }
  return *found;
}

}  // namespace sluice::hub
