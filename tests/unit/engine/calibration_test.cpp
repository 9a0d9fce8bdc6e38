// What calibration measures on this machine: figures that can be true, in the time it was given,
// and what is kept of them between starts.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/calibration.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "base/machine_fingerprint.h"
#include "base/units.h"
#include "engine/machine/measured_machine.h"
#include "sluice/sluice.h"
#include "support/sanitizers.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

using sluice::test::kSanitized;

backend::RamDeviceOptions device_with(uint64_t n_bytes, double link_gbps = 1.0) {
  return {.n_bytes = n_bytes, .link_gbps = link_gbps, .before_copy = {}};
}

// About 100 MB of experts, 1 MB each.
model_file::SynthOptions large_options() {
  model_file::SynthOptions o = model::test::tiny_options("qwen3moe", "Q8_0");
  o.config.d_model = 512;
  o.config.d_ff = 640;
  o.config.n_layers = 5;
  o.config.n_experts = 20;
  o.config.n_experts_used = 4;
  return o;
}

void expect_plausible(const MachineRecord& record) {
  for (const double rate : {record.link_gbps, record.cpu_gbps, record.device_gbps,
                            record.both_link_gbps, record.both_cpu_gbps}) {
    EXPECT_GT(rate, 1e-3);
    EXPECT_LT(rate, 1e4);
  }
  EXPECT_GE(record.handshake_us, 0.0);
  EXPECT_LT(record.handshake_us, 1e5);
}

struct Timed {
  MachineRecord record;
  double seconds = 0.0;
};

Timed calibrate_timed(const model::Model& model, backend::RamDevice& device) {
  ThreadPool threads(2);
  const auto start = std::chrono::steady_clock::now();
  Timed timed{calibrate(model, device, threads)};
  timed.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return timed;
}

// The machine may be busy with something else, once or twice.
template <typename Attempt>
void expect_within_three(const Attempt& attempt) {
  for (int i = 0; i < 2; ++i) {
    if (attempt()) return;
  }
  EXPECT_TRUE(attempt());
}

TEST(Calibration, TakesLessThanThreeSecondsAndGivesAllMemoryBack) {
  const OpenModel tiny("qwen2moe", "Q4_K"), large(large_options());
  for (const OpenModel* model : {&tiny, &large}) {
    expect_within_three([&] {
      backend::RamDevice device(device_with(256 * kMiB));
      const auto [record, seconds] = calibrate_timed(**model, device);
      expect_plausible(record);
      EXPECT_EQ(device.free_bytes(), 256 * kMiB);
      EXPECT_EQ(device.pinned_bytes(), 0u);
      return kSanitized || seconds < 3.0;
    });
  }
}

TEST(Calibration, TheLinkIsAsFastAsTheDeviceWasTold) {
  const OpenModel model("qwen3moe", "Q8_0");
  ThreadPool threads(2);
  for (const double told : {0.25, 2.0}) {
    expect_within_three([&] {
      backend::RamDevice device(device_with(256 * kMiB, told));
      const double link = calibrate(*model, device, threads, 1.0).link_gbps;
      return kSanitized ? link > 0.0 : std::abs(link / told - 1.0) < 0.25;
    });
  }
}

TEST(Calibration, ModelsOfEveryArchitectureAreMeasured) {
  ThreadPool threads(2);
  for (const char* const architecture : model::test::kArchitectures) {
    SCOPED_TRACE(architecture);
    const OpenModel model(architecture, "F32");
    backend::RamDevice device(device_with(64 * kMiB));
    expect_plausible(calibrate(*model, device, threads, 0.3));
  }
}

TEST(Calibration, WhatADeviceHasNoRoomForIsNotMeasured) {
  const OpenModel model(large_options());
  ThreadPool threads(2);
  backend::RamDevice none(device_with(0));
  const MachineRecord without_memory = calibrate(*model, none, threads, 0.2);
  EXPECT_GT(without_memory.cpu_gbps, 0.0);
  EXPECT_EQ(without_memory.link_gbps, 0.0);
  EXPECT_EQ(without_memory.both_link_gbps, 0.0);
  EXPECT_EQ(without_memory.both_cpu_gbps, 0.0);
  EXPECT_EQ(without_memory.device_gbps, 0.0);

  // Room for three experts, where four are used.
  backend::RamDevice small(device_with(5 * kMiB / 2 + 2 * kMiB));
  expect_plausible(calibrate(*model, small, threads, 0.5));

  backend::RamDeviceOptions options = device_with(64 * kMiB);
  options.pin_limit = 0;
  backend::RamDevice unpinned(options);
  const MachineRecord without_pinned = calibrate(*model, unpinned, threads, 0.2);
  EXPECT_GT(without_pinned.cpu_gbps, 0.0);
  EXPECT_EQ(without_pinned.link_gbps, 0.0);
  EXPECT_EQ(without_pinned.handshake_us, 0.0);
}

TEST(Calibration, AFaultOfTheDeviceIsNotAFigure) {
  const OpenModel model("olmoe", "Q8_0");
  ThreadPool threads(1);
  backend::RamDeviceOptions options = device_with(64 * kMiB);
  options.before_copy = [](int64_t) { throw Error(Errc::device, "the link is down"); };
  backend::RamDevice device(options);
  expect_contains(error_of(Errc::device, [&] { calibrate(*model, device, threads, 0.2); }),
                  "the link is down");
  EXPECT_EQ(device.free_bytes(), 64 * kMiB);
}

struct KeptMachine : testing::Test {
  MachineRecord start(ThreadPool& threads) {
    return measured_machine(path, *model, device, threads, warnings);
  }

  OpenModel model{"qwen3moe", "Q8_0"};
  backend::RamDevice device{device_with(64 * kMiB)};
  ThreadPool all{0}, one{1};
  TempDir dir;
  std::string path = dir / "folder/machine";
  std::vector<std::string> warnings;
};

TEST_F(KeptMachine, IsMeasuredOnce) {
  const MachineRecord first = start(all);
  expect_plausible(first);
  expect_contains(first.fingerprint, device.name());
  // No two measurements are alike in all digits of six figures.
  EXPECT_EQ(start(all), first);
  EXPECT_TRUE(warnings.empty()) << warnings.front();
  EXPECT_EQ(measured_cpu_gbps(path), first.cpu_gbps);
  EXPECT_EQ(measured_cpu_gbps(dir / "nothing"), 0.0);
}

TEST_F(KeptMachine, IsMeasuredAgainWhenItIsAnother) {
  const MachineRecord other{
      .fingerprint = machine_fingerprint("", 7, device.name()), .cpu_gbps = 12.5, .trials = {}};
  other.save(path);
  EXPECT_EQ(measured_cpu_gbps(path), 0.0);
  const MachineRecord measured = start(one);
  expect_plausible(measured);
  EXPECT_NE(measured.fingerprint, other.fingerprint);
  std::string warning;
  EXPECT_EQ(MachineRecord::load(path, measured.fingerprint, &warning), measured);
  EXPECT_TRUE(warnings.empty()) << warnings.front();
}

TEST_F(KeptMachine, WhatCannotBeReadOrKeptIsAWarning) {
  std::filesystem::create_directories(path);
  expect_plausible(start(all));
  ASSERT_EQ(warnings.size(), 2u);
  expect_contains(warnings[0], "machine: ");
  expect_contains(warnings[1], "what was measured on this machine is not kept: ");
}

TEST(UseMeasured, ReplacesWhatWasMeasuredAlone) {
  policy::Hardware hardware;
  hardware.cpu_gbps = 60.0;
  hardware.gpu_gbps = 400.0;
  hardware.link_gbps = 25.0;
  hardware.cpu_source = hardware.gpu_source = "described";
  use_measured({}, hardware);
  EXPECT_EQ(hardware.cpu_gbps, 60.0);
  EXPECT_EQ(hardware.gpu_gbps, 400.0);
  EXPECT_EQ(hardware.link_gbps, 25.0);
  EXPECT_EQ(hardware.handshake_us, 18.0);
  EXPECT_EQ(hardware.copy_interference, 0.4);
  EXPECT_EQ(hardware.cpu_source, "described");
  EXPECT_EQ(hardware.gpu_source, "described");

  MachineRecord record{.link_gbps = 20.0,
                       .cpu_gbps = 50.0,
                       .device_gbps = 300.0,
                       .both_link_gbps = 16.0,
                       .both_cpu_gbps = 42.0,
                       .handshake_us = 7.0};
  use_measured(record, hardware);
  EXPECT_EQ(hardware.cpu_gbps, 50.0);
  EXPECT_EQ(hardware.gpu_gbps, 300.0);
  EXPECT_EQ(hardware.link_gbps, 20.0);
  EXPECT_EQ(hardware.handshake_us, 7.0);
  EXPECT_EQ(hardware.copy_interference, 0.5);
  EXPECT_EQ(hardware.cpu_source, "measured");
  EXPECT_EQ(hardware.gpu_source, "measured");

  record.both_cpu_gbps = 55.0;
  use_measured(record, hardware);
  EXPECT_EQ(hardware.copy_interference, 0.0);
  record.both_cpu_gbps = 10.0;
  use_measured(record, hardware);
  EXPECT_EQ(hardware.copy_interference, 1.0);
}

// As a user meets it: the first start measures, the second one knows, and a described machine is
// believed.
TEST_F(KeptMachine, ASessionPlansWithWhatWasMeasured) {
  const Model loaded = Model::load(model.path(), {.n_threads = 2});
  SessionOptions options{.n_ctx = 64};
  options.device.kind = DeviceKind::sim;
  options.device.sim.vram_bytes = 64 * kMiB;
  options.device.sim.link_gbps = 1.0;
  const double assumed = Session(loaded, options).placement().predicted_decode;
  options.device.machine_path = path;
  options.device.least_measured_bytes = 0;
  options.device.sim.is_virtual = true;
  Session(loaded, options);
  EXPECT_FALSE(std::filesystem::exists(path));

  options.device.sim.is_virtual = false;
  const double measured = Session(loaded, options).placement().predicted_decode;
  const std::string kept = gguf::test::read_file(path);
  EXPECT_NE(measured, assumed) << kept;
  Session again(loaded, options);
  EXPECT_EQ(gguf::test::read_file(path), kept);
  EXPECT_EQ(again.placement().predicted_decode, measured);
  EXPECT_TRUE(again.placement().warnings.empty()) << again.placement().warnings.front();
}

}  // namespace
}  // namespace sluice::engine::test
