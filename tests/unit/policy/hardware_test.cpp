// Descriptions of machines: names from the table, numbers, both, and what is wrong with them.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/hardware.h"

#include <gtest/gtest.h>

#include <set>

#include "policy/plan/hardware_table.h"
#include "unit/policy/planner_shapes.h"

namespace sluice::policy::planner_test {
namespace {

Hardware parse(std::string_view text) { return parse_hardware(text, without_gpu()); }

std::string refusal(std::string_view text) {
  return error_of(Errc::bad_request, [&] { parse(text); });
}

TEST(Hardware, IsDescribedByTheNamesOfItsParts) {
  const Hardware h = parse("rtx4070ti-12g+64g-ddr5");
  EXPECT_EQ(h.gpu, "rtx4070ti");
  EXPECT_EQ(h.vram_free, 12 * kGiB);
  EXPECT_EQ(h.ram_free, 60 * kGiB);  // a sixteenth is the system's
  EXPECT_DOUBLE_EQ(h.gpu_gbps, 504 * 0.8);
  EXPECT_DOUBLE_EQ(h.link_gbps, 25.0);
  EXPECT_NEAR(h.cpu_gbps, 60.0, 0.1);
  EXPECT_EQ(h.n_cores, 8);
  EXPECT_EQ(h.gpu_source, "the table: 504 GB/s x 0.8, pcie4x16");
  EXPECT_EQ(h.ram_source, "1/16 of 64.0 GiB left to the system");
  EXPECT_EQ(h.cpu_source, "the table: 89.6 GB/s x 0.67");
}

TEST(Hardware, IsDescribedByNumbers) {
  const Hardware h = parse(
      "vram=12GiB,link=25GB/s,cpu=60GB/s,ram=64GiB,gpu=500GB/s,handshake=18us,cores=16,pin=1g,"
      "overhead=0B,interference=0.25,register=no");
  EXPECT_EQ(h.vram_free, 12 * kGiB);
  EXPECT_EQ(h.ram_free, 64 * kGiB);
  EXPECT_DOUBLE_EQ(h.link_gbps, 25.0);
  EXPECT_DOUBLE_EQ(h.cpu_gbps, 60.0);
  EXPECT_DOUBLE_EQ(h.gpu_gbps, 500.0);
  EXPECT_DOUBLE_EQ(h.handshake_us, 18.0);
  EXPECT_EQ(h.n_cores, 16);
  EXPECT_EQ(h.pin_limit, kGiB);
  EXPECT_EQ(h.vram_overhead, 0u);
  EXPECT_DOUBLE_EQ(h.copy_interference, 0.25);
  EXPECT_FALSE(h.registers_in_place);
  for (const std::string& source : {h.gpu_source, h.ram_source, h.cpu_source}) {
    EXPECT_EQ(source, "given");
  }
}

TEST(Hardware, TakesNumbersOverTheTable) {
  const Hardware h = parse("rtx4090+64g-ddr5-quad+pcie3x16,cpu=99,vram=20GiB");
  EXPECT_DOUBLE_EQ(h.link_gbps, 12.5);
  EXPECT_DOUBLE_EQ(h.cpu_gbps, 99.0);
  EXPECT_EQ(h.vram_free, 20 * kGiB);
  EXPECT_EQ(h.n_cores, 24);
}

TEST(Hardware, IsAsTheBaseInWhatIsNotSaid) {
  Hardware base = desktop();
  base.n_cores = 5;
  const Hardware h = parse_hardware("rtx3090", base);
  EXPECT_EQ(h.vram_free, 24 * kGiB);
  EXPECT_EQ(h.ram_free, base.ram_free);
  EXPECT_EQ(h.n_cores, 5);
  const Hardware cpu = parse_hardware("cpu", base);
  EXPECT_FALSE(cpu.has_gpu());
  EXPECT_DOUBLE_EQ(cpu.cpu_gbps, base.cpu_gbps);
  EXPECT_FALSE(parse_hardware("vram=0g", base).has_gpu());
}

TEST(Hardware, GetsTypicalRatesForAGpuWithoutThemAndSaysSo) {
  const Hardware h = parse("vram=12GiB");
  EXPECT_DOUBLE_EQ(h.gpu_gbps, MachineRates().gpu_gbps);
  EXPECT_DOUBLE_EQ(h.link_gbps, MachineRates().link_gbps);
  EXPECT_EQ(h.vram_overhead, kCudaBytes);
  EXPECT_TRUE(says(h.gpu_source, {"typical"}));
}

TEST(Hardware, IgnoresCaseAndSpaces) {
  const Hardware h = parse("RTX 4070 Ti - 12G + 64g-DDR5");
  EXPECT_EQ(h.vram_free, 12 * kGiB);
}

TEST(Hardware, KnowsTheSizesACardComesIn) {
  EXPECT_EQ(parse("rtx4060ti").vram_free, 8 * kGiB);
  EXPECT_EQ(parse("rtx4060ti-16g").vram_free, 16 * kGiB);
  EXPECT_DOUBLE_EQ(parse("rtx3080-12g").gpu_gbps, 912 * 0.8);
  EXPECT_TRUE(says(refusal("rtx4070ti-16g"), {"rtx4070ti has 12g, not 16g", "vram=16GiB"}));
  EXPECT_TRUE(says(refusal("rtx4060ti-12g"), {"has 8g or 16g"}));
}

TEST(Hardware, SuggestsKnownNamesForUnknownOnes) {
  EXPECT_TRUE(says(refusal("rtx4070t+64g-ddr5"), {"'rtx4070t'", "rtx4070ti", "vram=12GiB"}));
  EXPECT_TRUE(says(refusal("4090"), {"'4090'", "rtx4090"}));
  EXPECT_TRUE(says(refusal("rtx3090+64g-ddr6"), {"'ddr6'", "ddr5", "cpu=60GB/s"}));
  EXPECT_TRUE(says(refusal("rtx3090+pcie4x15"), {"'pcie4x15'", "pcie4x16"}));
  EXPECT_TRUE(says(refusal("cpu+rtx3090"), {"'rtx3090'", "neither RAM nor a link"}));
}

TEST(Hardware, RefusesWhatMakesNoSense) {
  for (const char* text : {"",
                           ",",
                           "+",
                           "rtx3090+",
                           "rtx3090,",
                           "vram",
                           "vram=",
                           "vram=12",
                           "vram=12GiBs",
                           "vram=-1GiB",
                           "vram=nan",
                           "vram=infGiB",
                           "vram=1e300GiB",
                           "link=0",
                           "link=-5GB/s",
                           "link=GB/s",
                           "link=25Gb/s/s",
                           "cpu=0GB/s",
                           "gpu=1e9GB/s",
                           "handshake=-1us",
                           "handshake=5s",
                           "cores=0",
                           "cores=1.5",
                           "cores=99999",
                           "overhead=5",
                           "interference=-1",
                           "interference=lots",
                           "speed=5",
                           "=5",
                           "register=maybe",
                           "ram=5parsec",
                           "0g-ddr5",
                           "99999999g",
                           "99999999999999999999999g",
                           "64g-",
                           "ram=0g",
                           "rtx3090,64g-ddr5"}) {
    EXPECT_FALSE(refusal(text).empty()) << text;
  }
  EXPECT_TRUE(says(refusal("link=fast"), {"link is 'fast'", "link=25GB/s"}));
  EXPECT_TRUE(says(refusal("speed=5"), {"'speed=5'", "handshake"}));
  EXPECT_LT(refusal(std::string(100'000, 'x')).size(), 300u);
}

TEST(Hardware, NeedsRamAndCpu) {
  EXPECT_TRUE(says(error_of(Errc::bad_request, [] { parse_hardware("rtx3090", {}); }),
                   {"RAM and CPU", "+64g-ddr5"}));
}

TEST(Hardware, ReadsSizesInPowersOf1024AndOf1000) {
  EXPECT_EQ(parse_bytes("12GiB", "--vram"), 12 * kGiB);
  EXPECT_EQ(parse_bytes("12g", "--vram"), 12 * kGiB);
  EXPECT_EQ(parse_bytes("12288 MiB", "--vram"), 12 * kGiB);
  EXPECT_EQ(parse_bytes("1.5GiB", "--vram"), 1536 * kMiB);
  EXPECT_EQ(parse_bytes("12GB", "--vram"), 12'000'000'000u);
  EXPECT_EQ(parse_bytes("0g", "--vram"), 0u);
  EXPECT_TRUE(says(error_of(Errc::bad_request, [] { parse_bytes("12", "--vram"); }),
                   {"--vram is '12'", "12GiB"}));
}

TEST(Hardware, ReadsRatesAndTimesWithTheirUnitsOrWithout) {
  EXPECT_EQ(parse_gbps("25GB/s", "--link"), 25.0);
  EXPECT_EQ(parse_gbps(" 6.5 GB/s", "--link"), 6.5);
  EXPECT_EQ(parse_gbps("25", "--link"), 25.0);
  EXPECT_EQ(parse_gbps("1 GiB/s", "--link"), 1.073741824);
  EXPECT_EQ(parse_microseconds("18us", "--handshake"), 18.0);
  EXPECT_EQ(parse_microseconds("0.2 ms", "--handshake"), 200.0);
  EXPECT_EQ(parse_microseconds("0", "--handshake"), 0.0);
  for (const char* text : {"", "fast", "0", "-1", "25 parsecs", "1e9", "nan"}) {
    EXPECT_TRUE(says(error_of(Errc::bad_request, [&] { parse_gbps(text, "--link"); }),
                     {cat("--link is '", text, "'"), "25GB/s"}));
  }
  EXPECT_TRUE(says(error_of(Errc::bad_request, [] { parse_microseconds("-1us", "--handshake"); }),
                   {"--handshake is '-1us'", "18us"}));
}

TEST(HardwareTable, NamesEveryPartOnceAndOnlyKnownLinks) {
  std::set<std::pair<std::string_view, int>> gpus;
  for (const KnownGpu& gpu : known_gpus()) {
    EXPECT_TRUE(gpus.emplace(gpu.name, gpu.vram_gib).second) << gpu.name;
    EXPECT_NO_THROW(parse(gpu.name)) << gpu.name;
    EXPECT_GT(parse(gpu.name).link_gbps, 0.0) << gpu.name;
  }
  for (const KnownMemory& memory : known_memories()) {
    EXPECT_GT(parse(cat("cpu+64g-", memory.name)).cpu_gbps, 0.0) << memory.name;
  }
  for (const KnownLink& link : known_links()) {
    EXPECT_DOUBLE_EQ(parse(cat("rtx3090+", link.name)).link_gbps, link.gbps);
  }
}

}  // namespace
}  // namespace sluice::policy::planner_test
