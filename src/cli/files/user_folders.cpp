// See user_folders.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/files/user_folders.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "gguf/shard_name.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNameBytes = 200;  // leaves room for what is put behind it, of 255

// The model's name, of characters that are at home in every file system.
std::string plain_name(const std::string& path) {
  std::string name = fs::path(path).stem().string().substr(0, kMaxNameBytes);
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  std::ranges::replace_if(name, std::not_fn(is_plain), '_');
  return name;
}

// Below the cache folder.
std::string in_cache(const std::string& name) {
  const std::string folder = cache_folder();
  return folder.empty() ? "" : cat(folder, "/", name);
}

}  // namespace

std::string cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) {
    return std::string(cache) + "/sluice";
  }
  if (const char* home = std::getenv("HOME"); home && *home) {
    return std::string(home) + "/.cache/sluice";
  }
  return "";
}

std::string profile_path(const std::string& model_file) {
  const auto shard = gguf::parse_shard_name(model_file);
  const std::string first = shard ? shard->with_number(1).path() : model_file;
  std::error_code error;
  const uint64_t n_bytes = fs::file_size(first, error);
  return error ? "" : in_cache(cat("profiles/", plain_name(first), "-", n_bytes, ".slrp"));
}

std::string machine_path() { return in_cache("machine"); }

}  // namespace sluice::cli
