// What was measured on a machine, kept in a file: all of it comes back, on the same machine and
// from a whole file alone.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/machine_record.h"

#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/temp_dir.h"

namespace sluice::engine {
namespace {

using test::TempDir;

const std::string kMachine = "Some CPU, 16 cores, 62 GiB, Some GPU";

MachineRecord some_record() {
  return {.fingerprint = kMachine,
          .link_gbps = 25.1,
          .cpu_gbps = 1.0 / 3.0,  // needs all digits
          .device_gbps = 800.0,
          .both_link_gbps = 0.0,
          .both_cpu_gbps = 41.25,
          .handshake_us = 17.5,
          .trials = {{model_key("Qwen3  30B A3B\n(mine)", 18'632'000'000), "cache", 31.25},
                     {model_key("", 5), "cpu", 1e-3}}};
}

std::string saved_text() {
  const TempDir dir;
  some_record().save(dir / "machine");
  return ::sluice::test::read_file(dir / "machine");
}

// That of loading a file with this text, which must come to nothing.
std::string machine_warning_for(const std::string& text) {
  const TempDir dir;
  ::sluice::test::write_file(dir / "machine", text);
  std::string warning;
  EXPECT_FALSE(MachineRecord::load(dir / "machine", kMachine, &warning)) << text;
  const std::string prefix = (dir / "machine") + ": ";
  EXPECT_TRUE(warning.starts_with(prefix)) << warning << " for " << text;
  EXPECT_EQ(warning.find('\n'), std::string::npos) << warning;
  return warning.substr(std::min(prefix.size(), warning.size()));
}

// The saved text with `from`, which is in it, replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = saved_text();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(MachineRecord, WhatWasSavedComesBack) {
  const TempDir dir;
  some_record().save(dir / "folder/machine");
  std::string warning;
  EXPECT_EQ(MachineRecord::load(dir / "folder/machine", kMachine, &warning), some_record());
  EXPECT_EQ(warning, "");
}

TEST(MachineRecord, IsTextThatPeopleCanRead) {
  EXPECT_EQ(saved_text(),
            "sluice-machine 1\nfingerprint Some CPU, 16 cores, 62 GiB, Some GPU\nlink_gbps 25.1\n"
            "cpu_gbps 0.3333333333333333\ndevice_gbps 800\nboth_link_gbps 0\nboth_cpu_gbps 41.25\n"
            "handshake_us 17.5\ntrial 31.25 cache Qwen3  30B A3B (mine), 18632000000 bytes\n"
            "trial 0.001 cpu , 5 bytes\nend\n");
}

TEST(MachineRecord, AnotherMachinesRecordIsLeftOutWithoutAWord) {
  const TempDir dir;
  some_record().save(dir / "machine");
  std::string warning;
  EXPECT_FALSE(MachineRecord::load(dir / "machine", kMachine + " Ti", &warning));
  EXPECT_FALSE(MachineRecord::load(dir / "none", kMachine, &warning));
  EXPECT_EQ(warning, "");
}

TEST(MachineRecord, EveryTruncationIsAWarning) {
  const std::string whole = saved_text();
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_EQ(machine_warning_for(whole.substr(0, n)), "ends too early; starting without it")
        << n << " bytes";
  }
}

TEST(MachineRecord, WhatItDoesNotKnowIsAWarning) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"sluice-machine 1", "sluice-machine 2"},
      {"sluice-machine 1",
       "\x7f"
       "ELF"},
      {"fingerprint Some CPU, 16 cores, 62 GiB, Some GPU", "fingerprint "},
      {"link_gbps 25.1\n", ""},
      {"link_gbps 25.1", "link_gbps"},
      {"link_gbps 25.1", "link_gbps\t25.1"},
      {"link_gbps 25.1", "link_gbpsx 25.1"},
      {"link_gbps 25.1", "link_gbps 25.1\nlink_gbps 25.1"},
      {"trial 31.25 cache", "trial fast cache"},
      {"trial 31.25 cache", "trial 31.25 "},
      {"trial 0.001 cpu , 5 bytes", "trial 0.001 cpu "},
      {"trial 0.001 cpu , 5 bytes", "trial 0.001 cpu"},
      {"trial 0.001 cpu , 5 bytes", "trial 0.001"},
      {"trial 0.001 cpu , 5 bytes", "trial "},
      {"end\n", "end\nend\n"},
      {"end\n", "END\n"},
  };
  for (const auto& [from, to] : cases) {
    EXPECT_TRUE(machine_warning_for(with(from, to)).ends_with("; starting without it")) << to;
  }
  EXPECT_EQ(machine_warning_for(with("sluice-machine 1", "sluice-machine 2")),
            "has the line 'sluice-machine 2'; expected 'sluice-machine 1'; starting without it");
  EXPECT_EQ(machine_warning_for(std::string(2'000'000, 'x')),
            "is larger than 1.00 MiB; starting without it");
  machine_warning_for(with("sluice-machine 1", std::string(1000, '\0')));
}

TEST(MachineRecord, NumbersThatNoMachineHasAreAWarning) {
  for (const char* number :
       {"nan", "-nan", "inf", "-1", "1e7", "1e999", "0x10", "+3", "3,5", "3GB/s", " 3", ""}) {
    machine_warning_for(with("link_gbps 25.1", cat("link_gbps ", number)));
    machine_warning_for(with("trial 31.25", cat("trial ", number)));
  }
  machine_warning_for(with("link_gbps 25.1", "link_gbps 3 5"));
  EXPECT_EQ(machine_warning_for(with("handshake_us 17.5", "handshake_us 2e6")),
            "has the line '2e6'; expected for handshake_us a number from 0 to 1e+06; starting "
            "without it");
}

TEST(MachineRecord, ANewTrialTakesThePlaceOfTheOlderOne) {
  MachineRecord record;
  record.add_trial({"a", "cache", 1.0});
  record.add_trial({"a", "cpu", 2.0});
  record.add_trial({"b", "cache", 3.0});
  record.add_trial({"a", "cache", 4.0});
  const std::vector<TrialRecord> expected = {
      {"a", "cpu", 2.0}, {"b", "cache", 3.0}, {"a", "cache", 4.0}};
  EXPECT_EQ(record.trials, expected);
}

TEST(MachineRecord, ASaveThatFailsLeavesTheOlderFile) {
  const TempDir dir;
  some_record().save(dir / "machine");
  std::filesystem::create_symlink("/dev/full", dir / "machine.partial");
  MachineRecord newer = some_record();
  newer.link_gbps = 50.0;
  const auto save = [&] { newer.save(dir / "machine"); };
  EXPECT_NE(test::error_of(Errc::bad_file, save).find("No space left"), std::string::npos);
  EXPECT_EQ(::sluice::test::read_file(dir / "machine"), saved_text());
}

TEST(MachineRecord, ModelsOfTheSameNameDifferByTheirSize) {
  EXPECT_NE(model_key("Qwen3", 1), model_key("Qwen3", 2));
  EXPECT_LT(model_key(std::string(1'000'000, 'x'), 1).size(), 300u);
}

}  // namespace
}  // namespace sluice::engine
