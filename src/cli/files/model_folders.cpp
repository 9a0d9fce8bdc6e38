// See model_folders.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/files/model_folders.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace sluice::cli {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<std::string> own_model_folders() {
  std::vector<std::string> folders;
  const std::string listed = environment("SLUICE_MODELS");
  for (std::string_view rest = listed; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (const std::string data = environment("XDG_DATA_HOME"); !data.empty()) {
    folders.push_back(data + "/sluice/models");
  } else if (const std::string home = environment("HOME"); !home.empty()) {
    folders.push_back(home + "/.local/share/sluice/models");
  }
  return folders;
}

std::string pull_folder() {
  const std::vector<std::string> folders = own_model_folders();
  if (!folders.empty()) return folders.front();
  throw Error(Errc::bad_request,
              "there is no folder to keep models in: HOME is not set; name one in SLUICE_MODELS");
}

std::vector<std::string> lm_studio_folders() {
  const std::string home = environment("HOME");
  if (home.empty()) return {};
  return {home + "/.lmstudio/models", home + "/.cache/lm-studio/models"};
}

std::vector<std::string> ollama_folders() {
  if (const std::string named = environment("OLLAMA_MODELS"); !named.empty()) return {named};
  std::vector<std::string> folders = {"/usr/share/ollama/.ollama/models"};
  const std::string home = environment("HOME");
  if (!home.empty()) folders.insert(folders.begin(), home + "/.ollama/models");
  return folders;
}

}  // namespace sluice::cli
