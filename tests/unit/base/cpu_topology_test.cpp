// CpuTopology, read from trees of files as machines of several kinds show them.
// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_topology.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/units.h"
#include "support/temp_dir.h"

namespace sluice {
namespace {

using test::TempDir;
using Ids = std::vector<int>;

// A machine's /sys and /proc.
class FakeMachine {
 public:
  void write(const std::string& path, const std::string& line) {
    std::filesystem::create_directories(std::filesystem::path(dir_ / path).parent_path());
    test::write_file(dir_ / path, line + "\n");
  }
  void write_cpu(int id, const std::string& file, const std::string& line) {
    write(cat("sys/devices/system/cpu/cpu", id, "/", file), line);
  }
  // The hardware threads of each core, as numbers and as the file names them.
  void add_cores(const std::vector<std::pair<Ids, std::string>>& cores) {
    for (const auto& [ids, list] : cores) {
      for (const int id : ids) write_cpu(id, "topology/core_cpus_list", list);
    }
  }
  // 8 cores, of which core c has the hardware threads c and c + 8.
  void make_desktop() {
    write("sys/devices/system/cpu/online", "0-15");
    for (int c = 0; c < 8; ++c) add_cores({{{c, c + 8}, cat(c, ",", c + 8)}});
    const std::pair<const char*, const char*> caches[] = {
        {"1", "32K"}, {"1", "32K"}, {"2", "1024K"}, {"3", "96M"}};
    for (int i = 0; i < 4; ++i) {
      write_cpu(0, cat("cache/index", i, "/level"), caches[i].first);
      write_cpu(0, cat("cache/index", i, "/size"), caches[i].second);
    }
  }
  // 8 fast cores of two hardware threads, 0-15, and 8 slow ones of one, 16-23.
  void make_hybrid_cores() {
    write("sys/devices/system/cpu/online", "0-23");
    for (int c = 0; c < 16; c += 2) add_cores({{{c, c + 1}, cat(c, "-", c + 1)}});
    for (int id = 16; id < 24; ++id) add_cores({{{id}, cat(id)}});
  }
  // Two nodes of 4 cores with two hardware threads: 0-3 and 8-11, 4-7 and 12-15.
  void make_two_sockets() {
    make_desktop();
    write("sys/devices/system/node/online", "0-1");
    write("sys/devices/system/node/node0/cpulist", "0-3,8-11");
    write("sys/devices/system/node/node1/cpulist", "4-7,12-15");
  }

  CpuTopology read(const Ids& allowed = {}) const {
    return read_cpu_topology(dir_.path(), allowed);
  }

 private:
  TempDir dir_;
};

TEST(CpuTopology, AMachineOfTwoPlainCoresGetsAThreadOnEach) {
  FakeMachine machine;
  machine.write("sys/devices/system/cpu/online", "0-1");
  machine.add_cores({{{0}, "0"}, {{1}, "1"}});
  machine.write("sys/devices/system/node/online", "0");
  machine.write("sys/devices/system/node/node0/cpulist", "0-1");
  machine.write("proc/self/cgroup", "0::/");
  const CpuTopology topology = machine.read();
  EXPECT_EQ(topology.default_threads(), 2);
  EXPECT_EQ(topology.placement(2), (Ids{0, 1}));
  EXPECT_EQ(topology.homes(2), (std::vector<Ids>{{0, 1}, {0, 1}}));
  EXPECT_FALSE(topology.quota);
  EXPECT_EQ(topology.l3_bytes, 0u);
}

TEST(CpuTopology, SecondHardwareThreadsAreNotCountedAndComeLast) {
  FakeMachine machine;
  machine.make_desktop();
  const CpuTopology topology = machine.read();
  EXPECT_EQ(topology.default_threads(), 8);
  EXPECT_EQ(topology.placement(4), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(topology.placement(10), (Ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(topology.placement(17), Ids{});
  EXPECT_EQ(topology.l2_bytes, kMiB);
  EXPECT_EQ(topology.l3_bytes, 96 * kMiB);
}

TEST(CpuTopology, OlderKernelsNameSiblingsDifferently) {
  FakeMachine machine;
  machine.write("sys/devices/system/cpu/online", "0-3");
  for (int id = 0; id < 4; ++id) {
    machine.write_cpu(id, "topology/thread_siblings_list", id < 2 ? "0-1" : "2-3");
  }
  EXPECT_EQ(machine.read().default_threads(), 2);
  EXPECT_EQ(machine.read().placement(3), (Ids{0, 2, 1}));
}

TEST(CpuTopology, ThreadsHaveHomesOnlyWhereTheyFillWhatIsMeantForThem) {
  FakeMachine machine;
  machine.make_desktop();
  const CpuTopology topology = machine.read();
  EXPECT_EQ(topology.homes(7), std::vector<Ids>(7)) << "a core stays free";
  EXPECT_EQ(topology.homes(8), std::vector<Ids>(8, {0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(topology.homes(16).back().size(), 16u);
  EXPECT_EQ(topology.homes(17), std::vector<Ids>(17)) << "more than there are CPUs";
}

TEST(CpuTopology, SlowCoresOfAHybridAreLeftOutAndComeBeforeSecondHardwareThreads) {
  FakeMachine machine;
  machine.make_hybrid_cores();
  machine.write("sys/devices/cpu_core/cpus", "0-15");
  machine.write("sys/devices/cpu_atom/cpus", "16-23");
  const CpuTopology topology = machine.read();
  EXPECT_EQ(topology.default_threads(), 8);
  EXPECT_EQ(topology.placement(8), (Ids{0, 2, 4, 6, 8, 10, 12, 14}));
  EXPECT_EQ(topology.placement(17),
            (Ids{0, 2, 4, 6, 8, 10, 12, 14, 16, 17, 18, 19, 20, 21, 22, 23, 1}));
}

TEST(CpuTopology, SlowCoresAreFoundByCapacityAndByClockToo) {
  for (const std::string file : {"cpu_capacity", "cpufreq/cpuinfo_max_freq"}) {
    FakeMachine machine;
    machine.make_hybrid_cores();
    for (int id = 0; id < 24; ++id) {
      // A favoured core clocks a little higher than its like, which makes none of them slow.
      machine.write_cpu(id, file, id == 0 ? "5800" : id < 16 ? "5500" : "4200");
    }
    EXPECT_EQ(machine.read().default_threads(), 8) << file;
    EXPECT_EQ(machine.read().placement(9).back(), 16) << file;
  }
}

TEST(CpuTopology, SlowCoresJoinInWhereFewerThanFourAreFast) {
  FakeMachine machine;
  machine.make_hybrid_cores();
  machine.write("sys/devices/cpu_core/cpus", "0-15");
  EXPECT_EQ(machine.read({0, 1, 2, 3, 4, 5, 16, 17}).default_threads(), 5);
  EXPECT_EQ(machine.read({0, 1, 2, 3, 4, 5, 6, 16}).default_threads(), 4);
  EXPECT_EQ(machine.read({16, 17, 18, 19, 20}).default_threads(), 5) << "slow beside nothing";
}

TEST(CpuTopology, ThreadsSpreadOverNodesEvenlyAndNeighboursShareOne) {
  FakeMachine machine;
  machine.make_two_sockets();
  const CpuTopology topology = machine.read();
  EXPECT_EQ(topology.default_threads(), 8);
  EXPECT_EQ(topology.placement(4), (Ids{0, 1, 4, 5}));
  EXPECT_EQ(topology.placement(8), (Ids{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(topology.placement(10), (Ids{0, 1, 2, 3, 8, 4, 5, 6, 7, 12}));
  EXPECT_EQ(topology.homes(8).front(), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(topology.homes(8).back(), (Ids{4, 5, 6, 7}));
}

TEST(CpuTopology, ATasksetOfThreeHardwareThreadsIsAllThatIsUsed) {
  FakeMachine machine;
  machine.make_desktop();
  const CpuTopology topology = machine.read({11, 2, 3});
  EXPECT_EQ(topology.default_threads(), 2) << "3 and 11 are one core";
  EXPECT_EQ(topology.placement(3), (Ids{2, 3, 11}));
  EXPECT_EQ(topology.placement(4), Ids{});
}

struct QuotaCase {
  std::string groups;                                         // /proc/self/cgroup
  std::vector<std::pair<std::string, std::string>> settings;  // below /sys/fs/cgroup
  std::optional<double> quota;
  int default_threads;
};

TEST(CpuTopology, AContainersQuotaLimitsTheThreadsAndLeavesThemToTheKernel) {
  const std::string v1 = "4:memory:/docker/ab\n2:cpuacct,cpu:/docker/ab\n1:cpuset:/";
  const QuotaCase cases[] = {
      {"0::/", {{"cpu.max", "150000 100000"}}, 1.5, 1},
      {"0::/", {{"cpu.max", "250000 100000"}}, 2.5, 2},
      {"0::/", {{"cpu.max", "50000 100000"}}, 0.5, 1},
      {"0::/", {{"cpu.max", "max 100000"}}, {}, 8},
      {"0::/a/b", {{"a/cpu.max", "300000 100000"}, {"a/b/cpu.max", "max 100000"}}, 3.0, 3},
      {"0::/a/b", {{"a/cpu.max", "900000 100000"}, {"a/b/cpu.max", "400000 100000"}}, 4.0, 4},
      {"0::/seen/from/the/host", {{"cpu.max", "200000 100000"}}, 2.0, 2},
      {"0::/", {{"cpu.max", "6400000 100000"}}, 64.0, 8},
      {v1,
       {{"cpu/docker/ab/cpu.cfs_quota_us", "150000"},
        {"cpu/docker/ab/cpu.cfs_period_us", "100000"}},
       1.5,
       1},
      {v1, {{"cpu/cpu.cfs_quota_us", "350000"}, {"cpu/cpu.cfs_period_us", "100000"}}, 3.5, 3},
      {v1, {{"cpu/cpu.cfs_quota_us", "-1"}, {"cpu/cpu.cfs_period_us", "100000"}}, {}, 8},
      {"1:cpuset:/\n",
       {{"cpu/cpu.cfs_quota_us", "100000"}, {"cpu/cpu.cfs_period_us", "100000"}},
       {},
       8},
      {"0::/", {{"cpu.max", "100000 0"}}, {}, 8},
      {"nonsense", {{"cpu.max", "100000 100000"}}, {}, 8},
  };
  for (const QuotaCase& c : cases) {
    FakeMachine machine;
    machine.write("sys/devices/system/cpu/online", "0-7");
    machine.write("proc/self/cgroup", c.groups);
    for (const auto& [path, text] : c.settings) machine.write("sys/fs/cgroup/" + path, text);
    const std::string what = cat(c.groups, ", ", c.settings[0].first, ": ", c.settings[0].second);
    const CpuTopology topology = machine.read();
    EXPECT_EQ(topology.quota, c.quota) << what;
    EXPECT_EQ(topology.default_threads(), c.default_threads) << what;
    EXPECT_EQ(topology.homes(8).front().empty(), c.quota.has_value()) << what;
  }
}

TEST(CpuTopology, WithoutFilesEveryAllowedCpuIsACore) {
  const FakeMachine nothing;
  EXPECT_EQ(nothing.read({1, 4, 6}).default_threads(), 3);
  EXPECT_EQ(nothing.read({1, 4, 6}).placement(2), (Ids{1, 4}));
  EXPECT_EQ(nothing.read().default_threads(),
            std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
}

TEST(CpuTopology, NonsenseInFilesIsTakenAsFarAsItMakesSense) {
  for (const std::string list : {"", "x", "-", "5-", "7-2", "0-99999999", "-3", "99999999999999"}) {
    FakeMachine machine;
    machine.write("sys/devices/cpu_core/cpus", list);
    machine.write("sys/devices/system/node/online", list);
    for (int id = 0; id < 2; ++id) {
      machine.write_cpu(id, "topology/core_cpus_list", list);
      machine.write_cpu(id, "cpu_capacity", list);
      machine.write_cpu(id, "cache/index0/level", "2");
      machine.write_cpu(id, "cache/index0/size", list);
    }
    EXPECT_EQ(machine.read({0, 1}).placement(2), (Ids{0, 1})) << "'" << list << "'";
    EXPECT_EQ(machine.read({0, 1}).default_threads(), 2) << "'" << list << "'";
  }
}

TEST(CpuTopology, OfThisMachineKnowsTheCpusThatTheProcessMayUse) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  const CpuTopology topology = this_machines_cpus();
  EXPECT_EQ(std::ssize(topology.cpus), CPU_COUNT(&set));
  for (const LogicalCpu& cpu : topology.cpus) EXPECT_TRUE(CPU_ISSET(cpu.id, &set)) << cpu.id;
  EXPECT_GE(topology.default_threads(), 1);
}

TEST(CpuTopology, AThreadKeepsToItsCpusAndARefusalLeavesItThere) {
  const int cpu = this_machines_cpus().cpus.back().id;
  std::thread([&] {
    keep_this_thread_to({cpu});
    EXPECT_EQ(sched_getcpu(), cpu);
    keep_this_thread_to({8191});  // no machine has it
    keep_this_thread_to({});
    EXPECT_EQ(this_machines_cpus().cpus.size(), 1u);
  }).join();
}

}  // namespace
}  // namespace sluice
