// See cpu_topology.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_topology.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <thread>
#include <tuple>

#include "base/control_groups.h"
#include "base/error.h"
#include "base/units.h"

namespace sluice {
namespace {

constexpr int kMostCpus = 8192;  // as many as Linux can be built for

std::string line_of(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// A whole number, or nothing where the file is not there or says something else, such as "max".
std::optional<int64_t> number_in(const std::string& path) {
  std::ifstream in(path);
  int64_t number = 0;
  if (in >> number) return number;
  return {};
}

// "0-3,8" -> 0 1 2 3 8. Ends at the first thing that is no number below kMostCpus.
std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> ids;
  const char* next = text.data();
  const char* const end = next + text.size();
  while (next < end) {
    int first = 0;
    auto parsed = std::from_chars(next, end, first);
    if (parsed.ec != std::errc()) break;
    int last = first;
    if (parsed.ptr < end && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, end, last);
      if (parsed.ec != std::errc()) break;
    }
    if (first < 0 || last >= kMostCpus) break;
    for (int id = first; id <= last; ++id) ids.push_back(id);
    if (parsed.ptr == end || *parsed.ptr != ',') break;
    next = parsed.ptr + 1;
  }
  return ids;
}

std::string cpu_folder(const std::string& root, int id) {
  return cat(root, "/sys/devices/system/cpu/cpu", id, "/");
}

void read_nodes(const std::string& root, std::vector<LogicalCpu>& cpus) {
  const std::string folder = root + "/sys/devices/system/node/";
  for (const int node : parse_cpu_list(line_of(folder + "online"))) {
    const std::vector<int> ids = parse_cpu_list(line_of(cat(folder, "node", node, "/cpulist")));
    for (LogicalCpu& cpu : cpus) {
      if (std::ranges::binary_search(ids, cpu.id)) cpu.node = node;
    }
  }
}

// Where `file` gives each CPU a number, those below three quarters of the best are slow. Cores of
// one kind differ by up to a tenth, because some may clock higher.
void find_slow_by(const std::string& root, const char* file, std::vector<LogicalCpu>& cpus) {
  std::vector<int64_t> numbers;
  for (const LogicalCpu& cpu : cpus) {
    numbers.push_back(number_in(cpu_folder(root, cpu.id) + file).value_or(0));
  }
  const int64_t best = std::ranges::max(numbers);
  for (size_t i = 0; i < cpus.size(); ++i) {
    if (numbers[i] > 0 && numbers[i] / 3 < best / 4) cpus[i].is_fast = false;
  }
}

// Intel's hybrids list their fast cores; elsewhere capacities or clocks tell.
void read_kinds(const std::string& root, std::vector<LogicalCpu>& cpus) {
  const std::vector<int> listed = parse_cpu_list(line_of(root + "/sys/devices/cpu_core/cpus"));
  const auto is_listed = [&](const LogicalCpu& cpu) {
    return std::ranges::binary_search(listed, cpu.id);
  };
  if (std::ranges::any_of(cpus, is_listed)) {
    for (LogicalCpu& cpu : cpus) cpu.is_fast = is_listed(cpu);
  } else if (listed.empty()) {
    find_slow_by(root, "cpu_capacity", cpus);
    find_slow_by(root, "cpufreq/cpuinfo_max_freq", cpus);
  }
}

// "2048K" -> bytes.
uint64_t parse_size(std::string_view text) {
  uint64_t size = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), size);
  const std::string_view unit = text.substr(static_cast<size_t>(parsed.ptr - text.data()));
  return size * (unit == "K" ? kKiB : unit == "M" ? kMiB : 1);
}

uint64_t cache_bytes(const std::string& root, int cpu, int level) {
  for (int i = 0;; ++i) {
    const std::string folder = cat(cpu_folder(root, cpu), "cache/index", i, "/");
    const auto found = number_in(folder + "level");
    if (!found) return 0;
    if (found == level) return parse_size(line_of(folder + "size"));
  }
}

// CPUs' worth of time that one group grants in every period; nothing where it says "max" or -1.
std::optional<double> quota_in(const GroupFolder& folder) {
  std::optional<int64_t> quota, period;
  if (folder.version == 1) {
    quota = number_in(folder.path + "/cpu.cfs_quota_us");
    period = number_in(folder.path + "/cpu.cfs_period_us");
  } else {
    std::ifstream in(folder.path + "/cpu.max");
    int64_t first = 0, second = 0;
    if (in >> first >> second) quota = first, period = second;
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return {};
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// The least of our group's quota and those of all groups around it.
std::optional<double> read_quota(const std::string& root) {
  std::optional<double> least;
  for (const GroupFolder& folder : control_group_folders(root, "cpu")) {
    const auto quota = quota_in(folder);
    if (quota && (!least || *quota < *least)) least = quota;
  }
  return least;
}

std::vector<int> n_first_ids(unsigned n) {
  std::vector<int> ids;
  for (unsigned id = 0; id < std::max(1u, n); ++id) ids.push_back(static_cast<int>(id));
  return ids;
}

}  // namespace

CpuTopology read_cpu_topology(const std::string& root, const std::vector<int>& allowed) {
  std::vector<int> ids = allowed;
  if (ids.empty()) ids = parse_cpu_list(line_of(root + "/sys/devices/system/cpu/online"));
  if (ids.empty()) ids = n_first_ids(std::thread::hardware_concurrency());
  std::ranges::sort(ids);
  CpuTopology topology;
  for (const int id : ids) {
    const std::string folder = cpu_folder(root, id) + "topology/";
    auto siblings = parse_cpu_list(line_of(folder + "core_cpus_list"));
    if (siblings.empty()) siblings = parse_cpu_list(line_of(folder + "thread_siblings_list"));
    topology.cpus.push_back({.id = id, .core = siblings.empty() ? id : siblings.front()});
  }
  read_nodes(root, topology.cpus);
  read_kinds(root, topology.cpus);
  topology.quota = read_quota(root);
  const int first = std::ranges::find(topology.cpus, true, &LogicalCpu::is_fast)->id;
  topology.l2_bytes = cache_bytes(root, first, 2);
  topology.l3_bytes = cache_bytes(root, first, 3);
  return topology;
}

// Decode is bound by memory, which four fast cores of a desktop exhaust; what slow ones would add
// is the wait for the piece that one of them took last.
int CpuTopology::default_threads() const {
  constexpr size_t kEnoughFast = 4;
  std::set<int> fast, all;
  for (const LogicalCpu& cpu : cpus) {
    all.insert(cpu.core);
    if (cpu.is_fast) fast.insert(cpu.core);
  }
  const int n = static_cast<int>(fast.size() < kEnoughFast ? all.size() : fast.size());
  if (!quota) return n;
  return std::max(1, std::min(n, static_cast<int>(std::floor(*quota))));
}

std::vector<int> CpuTopology::placement(int n_threads) const {
  const auto n = static_cast<size_t>(n_threads);
  if (n > cpus.size()) return {};
  // Best first: which hardware thread of its core, which kind, how many such its node has before.
  using Rank = std::tuple<int, bool, int, int>;
  std::vector<std::pair<Rank, const LogicalCpu*>> ranked;
  std::map<int, int> n_in_core;
  std::map<std::tuple<int, bool, int>, int> n_in_node;
  for (const LogicalCpu& cpu : cpus) {
    const int sibling = n_in_core[cpu.core]++;
    const bool is_slow = !cpu.is_fast;
    const int before = n_in_node[{sibling, is_slow, cpu.node}]++;
    ranked.push_back({{sibling, is_slow, before, cpu.node}, &cpu});
  }
  std::ranges::sort(ranked, {}, &std::pair<Rank, const LogicalCpu*>::first);
  ranked.resize(n);
  std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.second->node; });
  std::vector<int> ids;
  for (const auto& [rank, cpu] : ranked) ids.push_back(cpu->id);
  return ids;
}

// Not one CPU each: a caller cannot be pinned (what it starts would inherit that), and may find
// itself on the CPU of a pinned worker. Measured in docs/decisions/0006.
std::vector<std::vector<int>> CpuTopology::homes(int n_threads) const {
  std::vector<std::vector<int>> homes(static_cast<size_t>(n_threads));
  if (quota || n_threads < default_threads()) return homes;
  const std::vector<int> ids = placement(n_threads);
  const auto node_of = [&](int id) { return std::ranges::find(cpus, id, &LogicalCpu::id)->node; };
  std::map<int, std::vector<int>> of_node;
  for (const int id : ids) of_node[node_of(id)].push_back(id);
  for (size_t i = 0; i < ids.size(); ++i) homes[i] = of_node[node_of(ids[i])];
  return homes;
}

CpuTopology this_machines_cpus() {
  std::vector<int> allowed;
  cpu_set_t set[kMostCpus / CPU_SETSIZE];
  if (sched_getaffinity(0, sizeof(set), set) == 0) {
    for (int id = 0; id < kMostCpus; ++id) {
      if (CPU_ISSET_S(static_cast<size_t>(id), sizeof(set), set)) allowed.push_back(id);
    }
  }
  return read_cpu_topology("", allowed);
}

void keep_this_thread_to(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set[kMostCpus / CPU_SETSIZE];
  CPU_ZERO_S(sizeof(set), set);
  for (const int id : cpus) CPU_SET_S(static_cast<size_t>(id), sizeof(set), set);
  sched_setaffinity(0, sizeof(set), set);
}

}  // namespace sluice
