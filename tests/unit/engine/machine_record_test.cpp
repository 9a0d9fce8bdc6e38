// What was measured on a machine, kept in a file: all of it comes back, on the same machine and
// from a whole file alone.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/machine_record.h"

#include <gtest/gtest.h>

#include "base/machine_fingerprint.h"
#include "support/error_of.h"
#include "support/temp_dir.h"

namespace sluice::engine {
namespace {

using test::TempDir;

MachineRates cpu_rates(double gbps) {
  MachineRates rates = unmeasured_rates();
  rates.cpu_gbps = gbps;
  return rates;
}

MachineRecord some_record() {
  MachineRecord record = MachineRecord::of_this_machine();
  record.devices = {{"Some GPU, 8 GiB",
                     16,
                     {.link_gbps = 25.1,
                      .cpu_gbps = 1.0 / 3.0,  // needs all digits
                      .gpu_gbps = 800.0,
                      .handshake_us = 17.5,
                      .experts_us = 5.5,
                      .launch_us = 0.0,
                      .readback_us = 9.25,
                      .sampling_us = 3.0,
                      .copy_interference = 0.0,
                      .cpu_gops = 120.0,
                      .cpu_kv_gbps = 3.5,
                      .cpu_kv_prompt_gbps = 44.0,
                      .graphs_mib = 12.5}},
                    {"CPU", 2, unmeasured_rates()}};
  record.models = {{model_key("Qwen3  30B A3B\n(mine)", 18'632'000'000), 2, cpu_rates(8.5)}};
  record.trials = {{model_key("Qwen3", 18) + "; context 64", "cache", 31.25},
                   {model_key("", 5), "cpu", 1e-3}};
  return record;
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
  EXPECT_EQ(MachineRecord::load(dir / "machine", &warning), MachineRecord::of_this_machine())
      << text;
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
  EXPECT_EQ(MachineRecord::load(dir / "folder/machine", &warning), some_record());
  EXPECT_EQ(warning, "");
}

TEST(MachineRecord, IsTextThatPeopleCanRead) {
  EXPECT_EQ(saved_text(),
            cat("sluice-machine 4\nhost ", machine_fingerprint(""),
                "\ndevice 16 Some GPU, 8 GiB\nlink_gbps 25.1\ncpu_gbps 0.3333333333333333\n"
                "gpu_gbps 800\nhandshake_us 17.5\nexperts_us 5.5\nlaunch_us 0\n"
                "readback_us 9.25\nsampling_us 3\ncopy_interference 0\ncpu_gops 120\n"
                "cpu_kv_gbps 3.5\ncpu_kv_prompt_gbps 44\ngraphs_mib 12.5\ndevice 2 CPU\n"
                "model 2 Qwen3  30B A3B (mine), 18632000000 bytes\ncpu_gbps 8.5\n"
                "trial 31.25 cache Qwen3, 18 bytes; context 64\ntrial 0.001 cpu , 5 bytes\nend\n"));
}

TEST(MachineRecord, AnotherMachinesRecordAndAnOlderVersionsAreLeftOutWithoutAWord) {
  const TempDir dir;
  const auto loaded = [&] {
    std::string warning;
    const MachineRecord record = MachineRecord::load(dir / "machine", &warning);
    EXPECT_EQ(warning, "");
    return record;
  };
  const MachineRecord nothing = MachineRecord::of_this_machine();
  EXPECT_EQ(loaded(), nothing) << "there is no file";
  MachineRecord other = some_record();
  other.host += " Ti";
  other.save(dir / "machine");
  EXPECT_EQ(loaded(), nothing);
  ::sluice::test::write_file(dir / "machine",
                             "sluice-machine 1\nfingerprint Some CPU, 16 cores, 62 GiB, Some GPU\n"
                             "link_gbps 25.1\ncpu_gbps 0.3\ndevice_gbps 800\nboth_link_gbps 0\n"
                             "both_cpu_gbps 41.25\nhandshake_us 17.5\ntrial 31 cache m, 5 bytes\n"
                             "end\n");
  EXPECT_EQ(loaded(), nothing);
  ::sluice::test::write_file(dir / "machine",
                             cat("sluice-machine 2\nhost ", nothing.host,
                                 "\nmodel 8.5 120 2 Qwen3 30B, 18632 bytes\nend\n"));
  EXPECT_EQ(loaded(), nothing);
  some_record().save(dir / "machine");
  EXPECT_EQ(loaded(), some_record()) << "it is replaced";
}

// It took what few experts cost besides their bytes for a lower rate; the CPU's figures hold.
TEST(MachineRecord, DevicesOfVersionThreeAreMeasuredAgainAndItSaysSo) {
  const TempDir dir;
  const auto load = [&](std::string text, std::string* warning) {
    text.replace(text.find("machine 4"), 9, "machine 3");
    ::sluice::test::write_file(dir / "machine", text);
    return MachineRecord::load(dir / "machine", warning);
  };
  MachineRecord expected = some_record();
  expected.devices.clear();
  std::string warning;
  EXPECT_EQ(load(saved_text(), &warning), expected);
  EXPECT_EQ(warning, cat(dir / "machine",
                         ": devices were measured by an older version of sluice, which knew less ",
                         "of a step's costs; they are measured again"));
  warning.clear();
  expected.save(dir / "machine");
  EXPECT_EQ(load(::sluice::test::read_file(dir / "machine"), &warning), expected);
  EXPECT_EQ(warning, "") << "nothing is lost of a file without devices";
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
      {"sluice-machine 4", "sluice-machine 5"},
      {"sluice-machine 4",
       "\x7f"
       "ELF"},
      {"host ", "hosts "},
      {"device 16 Some GPU, 8 GiB", "device "},
      {"device 16 Some GPU, 8 GiB", "device 16"},
      {"device 16 Some GPU, 8 GiB", "device many Some GPU"},
      {"device 16 Some GPU, 8 GiB", "device 5000 Some GPU"},
      {"model 2 Qwen3", "model Qwen3"},
      {"model 2 Qwen3", "model 2.5 0 2 Qwen3\nmodel"},
      {"cpu_gbps 8.5", "cpu_gbps fast"},
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
  EXPECT_EQ(machine_warning_for(with("sluice-machine 4", "sluice-machine 5")),
            "has the line 'sluice-machine 5'; expected 'sluice-machine 4'; starting without it");
  EXPECT_EQ(machine_warning_for(std::string(2'000'000, 'x')),
            "is larger than 1.00 MiB; starting without it");
  machine_warning_for(with("sluice-machine 4", std::string(1000, '\0')));
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

TEST(MachineRecord, WhatIsNewTakesThePlaceOfTheOlderAlone) {
  MachineRecord record;
  record.add(TrialRecord{"a", "cache", 1.0});
  record.add(TrialRecord{"a", "cpu", 2.0});
  record.add(TrialRecord{"b", "cache", 3.0});
  record.add(TrialRecord{"a", "cache", 4.0});
  const std::vector<TrialRecord> trials = {
      {"a", "cpu", 2.0}, {"b", "cache", 3.0}, {"a", "cache", 4.0}};
  EXPECT_EQ(record.trials, trials);
  ASSERT_TRUE(record.trial("a", "cpu") && record.trial("a", "cache"));
  EXPECT_EQ(record.trial("a", "cpu")->tokens_per_second, 2.0);
  EXPECT_EQ(record.trial("a", "cache")->tokens_per_second, 4.0);
  EXPECT_EQ(record.trial("b", "cpu"), nullptr) << "of another mode";

  const auto rates = [](double link) {
    MachineRates all = unmeasured_rates();
    all.link_gbps = link;
    return all;
  };
  record.add(DeviceRates{"X", 2, rates(1.0)});
  record.add(DeviceRates{"Y", 2, rates(2.0)});
  record.add(DeviceRates{"X", 1, rates(3.0)});  // other threads, another measurement
  record.add(DeviceRates{"X", 2, rates(4.0)});
  ASSERT_EQ(record.devices.size(), 3u);
  EXPECT_EQ(record.device("X", 2)->rates.link_gbps, 4.0);
  EXPECT_EQ(record.device("X", 1)->rates.link_gbps, 3.0);
  EXPECT_EQ(record.device("Y", 2)->rates.link_gbps, 2.0);
  EXPECT_EQ(record.device("Y", 1), nullptr);
  EXPECT_EQ(record.trials, trials) << "and trials stay";

  record.add(ModelRates{"m", 2, cpu_rates(8.0)});
  record.add(ModelRates{"n", 2, cpu_rates(9.0)});
  EXPECT_EQ(record.model("m", 2)->rates.cpu_gbps, 8.0);
  EXPECT_EQ(record.model("another", 2)->rates.cpu_gbps, 9.0)
      << "the newest speaks for those unknown";
  EXPECT_EQ(record.model("m", 1), nullptr);
}

TEST(MachineRecord, ASaveThatFailsLeavesTheOlderFile) {
  const TempDir dir;
  some_record().save(dir / "machine");
  std::filesystem::create_symlink("/dev/full", dir / "machine.partial");
  MachineRecord newer = some_record();
  newer.devices[0].rates.link_gbps = 50.0;
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
