// The line that names a machine: from files of made-up machines, and of this one.
// SPDX-License-Identifier: Apache-2.0
#include "base/machine_fingerprint.h"

#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace sluice {
namespace {

using test::TempDir;

std::string fingerprint_of(const std::string& cpuinfo, const std::string& meminfo,
                           const std::string& device = "RTX 4090") {
  const TempDir root;
  std::filesystem::create_directory(root / "proc");
  test::write_file(root / "proc/cpuinfo", cpuinfo);
  test::write_file(root / "proc/meminfo", meminfo);
  return machine_fingerprint(root.path(), 16, device);
}

constexpr const char* kRyzen =
    "processor\t: 0\nmodel\t\t: 97\nmodel name\t: AMD Ryzen 9 7950X 16-Core Processor\n\n"
    "processor\t: 1\nmodel name\t: another\n";

TEST(MachineFingerprint, NamesCpuCoresRamAndDevice) {
  EXPECT_EQ(fingerprint_of(kRyzen, "MemTotal:       65011712 kB\nMemFree: 1 kB\n"),
            "AMD Ryzen 9 7950X 16-Core Processor, 16 cores, 62 GiB, RTX 4090");
}

TEST(MachineFingerprint, RamIsRoundedSoThatAKernelUpdateChangesNothing) {
  const std::string expected = fingerprint_of(kRyzen, "MemTotal: 65011712 kB\n");
  EXPECT_EQ(fingerprint_of(kRyzen, "MemTotal: 64911712 kB\n"), expected);
  EXPECT_NE(fingerprint_of(kRyzen, "MemTotal: 32505856 kB\n"), expected);
}

TEST(MachineFingerprint, AnArmCpuIsNamedByItsNumbers) {
  EXPECT_EQ(fingerprint_of("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n",
                           "MemTotal: 16777216 kB\n", ""),
            "CPU 0x41:0xd4f, 16 cores, 16 GiB, no device");
}

TEST(MachineFingerprint, WhatTheSystemDoesNotTellIsSaidToBeUnknown) {
  EXPECT_EQ(fingerprint_of("", "nonsense"), "unknown CPU, 16 cores, 0 GiB, RTX 4090");
}

TEST(MachineFingerprint, IsTheSameInEveryRunAndAnotherForAnotherDevice) {
  const std::string line = machine_fingerprint("RTX 4090");
  EXPECT_EQ(machine_fingerprint("RTX 4090"), line);
  EXPECT_NE(machine_fingerprint("RTX 3090"), line);
  EXPECT_EQ(line.find(" 0 GiB"), std::string::npos) << line;
}

}  // namespace
}  // namespace sluice
