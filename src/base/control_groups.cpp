// See control_groups.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/control_groups.h"

#include <fstream>

#include "base/error.h"

namespace sluice {

// A line is "<id>:<controllers>:<path>"; that of version 2 names no controllers.
std::vector<GroupFolder> control_group_folders(const std::string& root,
                                               std::string_view controller) {
  std::vector<GroupFolder> folders;
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string listed = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/" || !path.starts_with('/')) path.clear();
    const bool is_ours = cat(",", listed, ",").find(cat(",", controller, ",")) != std::string::npos;
    if (!is_ours && !listed.empty()) continue;
    const int version = is_ours ? 1 : 2;
    std::string mount = root + "/sys/fs/cgroup";
    if (version == 1) mount += cat("/", controller);
    for (;; path.resize(path.rfind('/'))) {
      folders.push_back({mount + path, version});
      if (path.empty()) break;
    }
  }
  return folders;
}

}  // namespace sluice
