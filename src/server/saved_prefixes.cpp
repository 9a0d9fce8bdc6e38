// See saved_prefixes.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/saved_prefixes.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "server/api_error.h"

namespace sluice::server {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".prefix";
constexpr size_t kMostLetters = 64;

bool is_name(std::string_view name) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= kMostLetters && name[0] != '.' &&
         name.find_first_not_of(kLetters) == std::string_view::npos;
}

ApiError unknown_prefix() {
  return ApiError(404, "there is no such prefix; GET /prefixes lists those there are", "name",
                  "prefix_not_found");
}

}  // namespace

SavedPrefixes::SavedPrefixes(std::string folder) : folder_(std::move(folder)) {
  std::error_code ignored;
  if (folder_.empty() || fs::is_directory(folder_, ignored)) return;
  throw Error(Errc::bad_request,
              cat(folder_, " is no folder; expected one that exists, to save prefixes in"));
}

void SavedPrefixes::require_folder() const {
  if (!folder_.empty()) return;
  throw ApiError(501, "this server saves no prefixes; start it with --prefixes FOLDER");
}

std::string SavedPrefixes::path_of(const std::string& name) const {
  require_folder();
  if (!is_name(name)) {
    throw bad_request("name", cat("this is no name of a prefix; expected 1 to ", kMostLetters,
                                  " letters, digits, '.', '_' and '-', not beginning with '.'"));
  }
  return (fs::path(folder_) / (name + std::string(kEnding))).string();
}

std::string SavedPrefixes::existing_path_of(const std::string& name) const {
  std::string path = path_of(name);
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) throw unknown_prefix();
  return path;
}

std::vector<SavedPrefixes::Saved> SavedPrefixes::list() const {
  require_folder();
  std::vector<Saved> all;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    const std::string file = at->path().filename().string();
    std::string name = at->path().stem().string();
    std::error_code ignored;
    if (!file.ends_with(kEnding) || !is_name(name) || !at->is_regular_file(ignored)) continue;
    const uint64_t n_bytes = at->file_size(ignored);
    all.push_back({.name = std::move(name), .n_bytes = ignored ? 0 : n_bytes});
  }
  if (error) throw ApiError(500, "the folder of prefixes cannot be read");
  std::ranges::sort(all, {}, &Saved::name);
  return all;
}

void SavedPrefixes::erase(const std::string& name) const {
  const std::string path = existing_path_of(name);
  std::error_code error;
  const bool is_gone = fs::remove(path, error);
  if (error) throw ApiError(500, "the prefix cannot be erased: " + error.message(), "name");
  if (!is_gone) throw unknown_prefix();
}

}  // namespace sluice::server
