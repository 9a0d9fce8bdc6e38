// See model_registry.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/files/model_registry.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>
namespace sluice::cli {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return std::nullopt;
  return value;
}

void add_list(std::vector<std::string>& folders, std::string_view list) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(':'), list.size());
    if (end > 0) folders.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

std::vector<std::string> user_folders() {
  std::vector<std::string> folders;
  if (const auto list = variable("SLUICE_MODELS")) add_list(folders, *list);
  if (const auto data = variable("XDG_DATA_HOME")) {
    folders.push_back(*data + "/sluice/models");
  } else if (const auto home = variable("HOME")) {
    folders.push_back(*home + "/.local/share/sluice/models");
  }
  return folders;
}

}  // namespace

std::vector<FoundModel> list_models() { return sluice::list_models(user_folders()); }

std::string find_model(const std::string& name) { return sluice::find_model(name, user_folders()); }

}  // namespace sluice::cli
