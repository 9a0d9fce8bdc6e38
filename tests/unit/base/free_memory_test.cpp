// Free memory: of this machine, and of described ones in containers of both kinds.
// SPDX-License-Identifier: Apache-2.0
#include "base/free_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/units.h"
#include "support/temp_dir.h"

namespace sluice {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

TEST(FreeMemory, IsSomeOfWhatTheMachineHas) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  const uint64_t all = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * page;
  const FreeMemory free = free_memory();
  EXPECT_GT(free.bytes, 0u);
  EXPECT_LT(free.bytes, all);
}

// A machine with 64 MiB available, whose process is in these groups.
FreeMemory read_of(const std::string& groups, const Files& settings) {
  const test::TempDir dir;
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(dir / path).parent_path());
    test::write_file(dir / path, text + "\n");
  };
  write("proc/meminfo", "MemTotal: 131072 kB\nMemAvailable: 65536 kB\nSwapFree: 7 kB");
  write("proc/self/cgroup", groups);
  for (const auto& [path, text] : settings) write("sys/fs/cgroup/" + path, text);
  return read_free_memory(dir.path());
}

struct MemoryCase {
  const char* what;
  std::string groups;
  Files settings;  // below /sys/fs/cgroup
  uint64_t bytes;
  bool in_container;
};

TEST(FreeMemory, IsWithinTheLimitsOfEveryGroupAround) {
  const std::string v1 = "4:cpu,memory:/docker/ab\n1:cpuset:/";
  const MemoryCase cases[] = {
      {"no group", "", {}, 64 * kMiB, false},
      {"no limit", "0::/", {{"memory.max", "max"}, {"memory.current", "1000"}}, 64 * kMiB, false},
      {"a limit", "0::/", {{"memory.max", "5000"}, {"memory.current", "1000"}}, 4000, true},
      {"a limit above what is free",
       "0::/",
       {{"memory.max", "1000000000"}, {"memory.current", "1000"}},
       64 * kMiB,
       false},
      {"cached files make room",
       "0::/a",
       {{"a/memory.max", "5000"},
        {"a/memory.current", "4500"},
        {"a/memory.stat", "active_file 900\ninactive_file 300\ntotal_inactive_file 7"}},
       800,
       true},
      {"more used than allowed", "0::/", {{"memory.max", "5"}, {"memory.current", "9"}}, 0, true},
      {"the group around is the tighter one",
       "0::/a/b",
       {{"a/memory.max", "3000"},
        {"a/memory.current", "2000"},
        {"a/b/memory.max", "9000"},
        {"a/b/memory.current", "2000"}},
       1000,
       true},
      {"a path of the host's",
       "0::/seen/from/the/host",
       {{"memory.max", "70"}, {"memory.current", "0"}},
       70,
       true},
      {"version 1, among other controllers",
       v1,
       {{"memory/docker/ab/memory.limit_in_bytes", "6000"},
        {"memory/docker/ab/memory.usage_in_bytes", "2000"},
        {"memory/docker/ab/memory.stat", "inactive_file 5\ntotal_inactive_file 500"}},
       4500,
       true},
      {"a limit for other processes",
       "1:cpuset:/\n",
       {{"memory.max", "5000"}, {"memory.current", "0"}},
       64 * kMiB,
       false},
  };
  for (const MemoryCase& c : cases) {
    const FreeMemory free = read_of(c.groups, c.settings);
    EXPECT_EQ(free.bytes, c.bytes) << c.what;
    EXPECT_EQ(free.in_container, c.in_container) << c.what;
  }
}

}  // namespace
}  // namespace sluice
