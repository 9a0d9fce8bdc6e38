// How much memory this process may still take without pushing others out: what the machine has
// free, within the limits of the container it may run in, and of its address space.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

struct FreeMemory {
  uint64_t bytes = 0;
  bool in_container = false;  // a limit of the container, or of the process, is the tighter one
};

// As the files below root/proc and root/sys say.
FreeMemory read_free_memory(const std::string& root);

FreeMemory free_memory();

}  // namespace sluice
