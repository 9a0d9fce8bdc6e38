// The kernel's control groups that this process is in: where a container's limits stand. Knows the
// folders of both versions; what the files in them mean is for the callers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice {

struct GroupFolder {
  std::string path;  // without a slash at its end
  int version = 2;   // of the kernel's interface: 1 or 2, which name their files differently
};

// The folders of our group for a controller ("cpu", "memory") and of all groups around it, the
// innermost first, as root/proc/self/cgroup names them. Inside a container the path may be the
// host's, of which only the mounted end can be seen here: a folder need not exist.
std::vector<GroupFolder> control_group_folders(const std::string& root,
                                               std::string_view controller);

}  // namespace sluice
