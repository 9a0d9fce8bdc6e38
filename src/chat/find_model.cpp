// Models by name (sluice/chat.h): those in folders that the caller names, and the ones that ship
// with the program.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "sluice/chat.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".gguf";
constexpr std::string_view kFirstShard = "-00001-of-";  // NAME-00001-of-00003.gguf
constexpr size_t kShardDigits = 5;

// Below the prefix that a program (in bin/) or a library (in lib/ or lib/x86_64-linux-gnu/) lies
// in, wherever that was moved to. The build folder has such a place too (src/CMakeLists.txt).
constexpr std::string_view kShipped = "share/sluice/models";

void add_below(std::vector<std::string>& folders, const fs::path& prefix) {
  std::error_code error;
  const fs::path folder = fs::canonical(prefix / kShipped, error);
  if (!error) folders.push_back(folder.string());
}

// The shared library that this code is in; empty where it is in the program itself.
fs::path own_library() {
  Dl_info ignored = {};
  link_map* map = nullptr;
  void** to_map = reinterpret_cast<void**>(&map);
  if (dladdr1(reinterpret_cast<const void*>(&add_below), &ignored, to_map, RTLD_DL_LINKMAP) == 0) {
    return {};
  }
  std::error_code error;
  return map && map->l_name && *map->l_name ? fs::canonical(map->l_name, error) : fs::path();
}

void add_shipped(std::vector<std::string>& folders) {
  if (const fs::path library = own_library(); !library.empty()) {
    const fs::path above = library.parent_path().parent_path();
    add_below(folders, above);
    add_below(folders, above.parent_path());
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) add_below(folders, program.parent_path().parent_path());
}

// The name of the model that a file holds, or holds the first shard of; empty: none.
std::string model_of(const std::string& file) {
  if (!file.ends_with(kExtension)) return "";
  const std::string stem = file.substr(0, file.size() - kExtension.size());
  const size_t shards = kFirstShard.size() + kShardDigits;
  if (stem.size() > shards && stem.substr(stem.size() - shards).starts_with(kFirstShard)) {
    return stem.substr(0, stem.size() - shards);
  }
  return stem;
}

bool is_path(const std::string& name) {
  std::error_code ignored;
  return name.find('/') != std::string::npos || name.ends_with(kExtension) ||
         fs::exists(name, ignored);
}

}  // namespace

std::vector<FoundModel> list_models(const std::vector<std::string>& folders) {
  std::vector<std::string> searched = folders;
  add_shipped(searched);
  std::vector<FoundModel> found;
  for (const std::string& folder : searched) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = model_of(entry->path().filename().string());
      if (!name.empty()) found.push_back({name, entry->path().string()});
    }
  }
  std::ranges::stable_sort(found, {}, &FoundModel::name);  // of one name the first folder's
  const auto same = [](const FoundModel& a, const FoundModel& b) { return a.name == b.name; };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  return found;
}

std::string find_model(const std::string& name, const std::vector<std::string>& folders) {
  if (is_path(name)) return name;
  std::string names;
  for (const FoundModel& model : list_models(folders)) {
    if (model.name == name) return model.path;
    names += cat(names.empty() ? "" : ", ", model.name);
  }
  throw Error(Errc::bad_request,
              cat("there is no model '", name,
                  "'; expected a GGUF file, or one of: ", names.empty() ? "(none)" : names));
}

}  // namespace sluice
