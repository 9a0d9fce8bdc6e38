// sluice rm: removes models that sluice pulled, unfinished ones too. What other programs or the
// user put somewhere stays.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/files/model_registry.h"
#include "cli/files/sha256_sums.h"
#include "cli/terminal/terminal_text.h"
#include "hub/partial_file.h"
#include "hub/repo_name.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

struct RemoveFlags {
  std::vector<std::string> names;
};

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::string instead_of_removing(const StoredModel& model) {
  if (model.source == "ollama") return cat("it is Ollama's: ollama rm ", model.name, " removes it");
  return cat(model.source == "lm-studio" ? "it is LM Studio's" : "sluice has not pulled it",
             "; delete ", model.path, " if it is no longer wanted");
}

// The model of exactly this name, or the only one of the repository.
StoredModel find(const std::string& typed, const std::vector<StoredModel>& models) {
  std::string name = typed;
  if (const auto remote = hub::parse_hub_name(typed)) name = remote->text();
  std::vector<StoredModel> found;
  for (const StoredModel& model : models) {
    if (lower(model.name) == lower(name)) found = {model};
  }
  if (found.empty()) {
    for (const StoredModel& model : models) {
      if (lower(model.name).starts_with(lower(name) + ":")) found.push_back(model);
    }
  }
  if (found.empty()) {
    throw Error(Errc::bad_request,
                cat("there is no model '", typed.substr(0, 200), "'; sluice list shows them"));
  }
  if (found.size() > 1) {
    std::string names;
    for (const StoredModel& model : found) names += cat(names.empty() ? "" : ", ", model.name);
    throw Error(Errc::bad_request, cat("'", typed, "' could be ", names, "; name one of them"));
  }
  if (found[0].source != "pulled") {
    throw Error(Errc::bad_request, cat(found[0].name, ": ", instead_of_removing(found[0])));
  }
  return found[0];
}

// Folders that have nothing in them any more, up to the one of all models.
void remove_empty_folders(fs::path folder, int n_levels) {
  std::error_code error;
  for (; n_levels > 0 && fs::is_empty(folder, error) && !error; --n_levels) {
    fs::remove(folder, error);
    folder = folder.parent_path();
  }
}

void remove_model(const StoredModel& model) {
  // <folder>/user/repo/<path in the repository>
  const std::string id = model.name.substr(0, model.name.find(':'));
  for (const std::string& file : model.files) {
    const std::string root = file.substr(0, file.find("/" + id + "/") + 1 + id.size());
    std::error_code error;
    for (const std::string& path : {file, hub::partial_path_of(file), hub::record_path_of(file)}) {
      fs::remove(path, error);
      if (error) {
        throw Error(Errc::bad_file, cat(path, ": cannot be removed (", error.message(), ")"));
      }
    }
    Sha256Sums(root + "/SHA256SUMS").forget(file.substr(root.size() + 1));
    const auto depth = std::ranges::count(file.substr(root.size()), '/');  // up to user/
    remove_empty_folders(fs::path(file).parent_path(), static_cast<int>(depth) + 1);
  }
  std::printf("removed %s (%s)\n", one_line(model.name).c_str(),
              format_bytes(model.n_bytes).c_str());
}

void run(const RemoveFlags& flags) {
  std::vector<StoredModel> found;  // all, before the first goes
  for (const std::string& name : flags.names) found.push_back(find(name, stored_models()));
  for (const StoredModel& model : found) remove_model(model);
}

}  // namespace

void add_rm(CLI::App& app) {
  CLI::App* command = app.add_subcommand("rm", "remove models that were pulled");
  const auto flags = flags_for<RemoveFlags>(*command, run);
  command->add_option("models", flags->names, "names as sluice list shows them")->required();
}

}  // namespace sluice::cli
