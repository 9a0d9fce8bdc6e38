// Which CPUs this process may use and how they hang together: cores and their hardware threads,
// fast and slow kinds of cores, memory nodes, caches, and the CPU time that a container grants.
// Linux only; what the system does not tell is taken to be the simplest.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

struct LogicalCpu {
  int id = 0;
  int core = 0;         // the lowest id among the hardware threads of its core
  int node = 0;         // of memory
  bool is_fast = true;  // false: an efficiency core, beside others that are fast
};

struct CpuTopology {
  std::vector<LogicalCpu> cpus;  // that the process may use, by ascending id; at least one
  std::optional<double> quota;   // CPUs' worth of time in every period; none: no limit
  uint64_t l2_bytes = 0;         // that the first fast CPU sees; 0: unknown
  uint64_t l3_bytes = 0;

  // One thread per fast core, or per core of any kind where fewer than four are fast; within the
  // quota, and at least one.
  int default_threads() const;

  // A CPU for each of n threads, neighbours on the same node: fast cores first, then slow ones,
  // then second hardware threads, of each equally many on every node as far as they go. Empty where
  // there are more threads than CPUs.
  std::vector<int> placement(int n_threads) const;

  // The CPUs that each of n threads should keep to: those of the placement that are on its node.
  // Empty where a thread is better left to the kernel: where cores stay free, or a quota says that
  // others have a part of their time, all programs that choose would choose the same few.
  std::vector<std::vector<int>> homes(int n_threads) const;
};

// What the files below root/sys and root/proc say of the allowed CPUs; none: all that are online.
CpuTopology read_cpu_topology(const std::string& root, const std::vector<int>& allowed);

CpuTopology this_machines_cpus();

// Does nothing where the system refuses, or where no CPUs are named.
void keep_this_thread_to(const std::vector<int>& cpus);

}  // namespace sluice
