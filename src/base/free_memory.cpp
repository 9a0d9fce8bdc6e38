// See free_memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/free_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/units.h"

namespace sluice {
namespace {

// The number after `key` in a file of lines "key number"; an empty key: the file's first word.
std::optional<uint64_t> number_in(const std::string& path, std::string_view key) {
  std::ifstream in(path);
  std::string word;
  while (!key.empty() && in >> word) {
    if (word == key) break;
  }
  uint64_t number = 0;
  if (in >> number) return number;
  return {};  // no such file, or "max"
}

// The names of one version of the kernel's memory groups.
struct GroupNames {
  const char* root;
  const char* limit;
  const char* usage;
  const char* reclaimable;  // in memory.stat: cached file pages, which make room when asked to
};
constexpr GroupNames kVersion2 = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                  "inactive_file"};
constexpr GroupNames kVersion1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                  "memory.usage_in_bytes", "total_inactive_file"};

// What a group and all groups around it leave free.
uint64_t free_in_group(const GroupNames& names, std::string path) {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  while (true) {
    const std::string folder = cat(names.root, path, "/");
    const auto limit = number_in(folder + names.limit, "");
    const auto usage = number_in(folder + names.usage, "");
    if (limit && usage) {
      const uint64_t cached = number_in(folder + "memory.stat", names.reclaimable).value_or(0);
      const uint64_t used = *usage > cached ? *usage - cached : 0;
      least = std::min(least, *limit > used ? *limit - used : 0);
    }
    if (path.empty()) return least;
    path.resize(path.rfind('/'));
  }
}

// The line of /proc/self/cgroup that begins "<id>:<controllers>:" names our group.
uint64_t free_in_own_group() {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/" || !path.starts_with('/')) path.clear();
    if (controllers.empty()) least = std::min(least, free_in_group(kVersion2, path));
    if (controllers == "memory") least = std::min(least, free_in_group(kVersion1, path));
  }
  return least;
}

}  // namespace

FreeMemory free_memory() {
  const uint64_t available = number_in("/proc/meminfo", "MemAvailable:").value_or(0) * kKiB;
  const uint64_t allowed = free_in_own_group();
  return {std::min(available, allowed), allowed < available};
}

}  // namespace sluice
