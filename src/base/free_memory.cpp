// See free_memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/free_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/control_groups.h"
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

// How one version of the kernel's groups names its files.
struct GroupNames {
  const char* limit;
  const char* usage;
  const char* reclaimable;  // in memory.stat: cached file pages, which make room when asked to
};
constexpr GroupNames kVersion1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                  "total_inactive_file"};
constexpr GroupNames kVersion2 = {"/memory.max", "/memory.current", "inactive_file"};

// What our group and all groups around it leave free.
uint64_t free_in_groups(const std::string& root) {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const GroupFolder& folder : control_group_folders(root, "memory")) {
    const GroupNames& names = folder.version == 1 ? kVersion1 : kVersion2;
    const auto limit = number_in(folder.path + names.limit, "");
    const auto usage = number_in(folder.path + names.usage, "");
    if (!limit || !usage) continue;
    const uint64_t cached = number_in(folder.path + "/memory.stat", names.reclaimable).value_or(0);
    const uint64_t used = *usage > cached ? *usage - cached : 0;
    least = std::min(least, *limit > used ? *limit - used : 0);
  }
  return least;
}

// What a limit of the address space (ulimit -v) leaves.
uint64_t free_addresses() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<uint64_t>::max();
  }
  const uint64_t used = number_in("/proc/self/statm", "").value_or(0) *
                        static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

}  // namespace

FreeMemory read_free_memory(const std::string& root) {
  const uint64_t available = number_in(root + "/proc/meminfo", "MemAvailable:").value_or(0) * kKiB;
  const uint64_t allowed = free_in_groups(root);
  return {std::min(available, allowed), allowed < available};
}

FreeMemory free_memory() {
  const FreeMemory machine = read_free_memory("");
  const uint64_t allowed = free_addresses();
  return allowed < machine.bytes ? FreeMemory{allowed, true} : machine;
}

}  // namespace sluice
