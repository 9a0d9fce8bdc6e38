// What calibration measures on this machine: figures that can be true, and what is kept of them
// between starts.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "backend/ram/ram_device.h"
#include "base/units.h"
#include "sluice/sluice.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

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

void expect_plausible(const MachineRates& rates) {
  for (const double rate : {rates.link_gbps, rates.cpu_gbps, rates.gpu_gbps}) {
    EXPECT_TRUE(std::isfinite(rate) && rate > 0.0) << rate;
  }
  for (const double cost :
       {rates.handshake_us, rates.launch_us, rates.readback_us, rates.sampling_us}) {
    EXPECT_TRUE(std::isfinite(cost) && cost >= 0.0) << cost;
  }
  EXPECT_GE(rates.copy_interference, 0.0);
  EXPECT_LE(rates.copy_interference, 1.0);
}

TEST(Calibration, GivesAllMemoryBack) {
  const OpenModel tiny("qwen2moe", "Q4_K"), large(large_options());
  ThreadPool threads(2);
  for (const OpenModel* model : {&tiny, &large}) {
    backend::RamDevice device(device_with(256 * kMiB));
    const MachineRates rates = calibrate(**model, device, threads);
    expect_plausible(rates);
    EXPECT_TRUE(std::isfinite(rates.experts_us) && rates.experts_us >= 0.0) << rates.experts_us;
    EXPECT_EQ(device.free_bytes(), 256 * kMiB);
    EXPECT_EQ(device.pinned_bytes(), 0u);
  }
}

// A copy ends no sooner than the link allows, however busy the machine is; how much later is for
// bench/calibration.
TEST(Calibration, TheLinkIsNoFasterThanTheDeviceWasTold) {
  const OpenModel model("qwen3moe", "Q8_0");
  ThreadPool threads(2);
  for (const double told : {0.25, 2.0}) {
    backend::RamDevice device(device_with(256 * kMiB, told));
    const double link = calibrate(*model, device, threads, 0.5).link_gbps;
    EXPECT_GT(link, 0.0);
    EXPECT_LE(link, told);
  }
}

TEST(Calibration, ModelsOfEveryArchitectureAreMeasured) {
  ThreadPool threads(2);
  for (const char* const architecture : model::test::kAttending) {
    SCOPED_TRACE(architecture);
    const OpenModel model(architecture, "F32");
    backend::RamDevice device(device_with(64 * kMiB));
    expect_plausible(calibrate(*model, device, threads, 0.3));
  }
}

// On the RAM device, whose copies within it are the host's.
TEST(Calibration, OfAGpuItsMemoryAndLinkAreMeasuredByCopies) {
  const OpenModel model("qwen3moe", "Q8_0");
  ThreadPool threads(1);
  backend::RamDevice device(device_with(64 * kMiB, 0.5));
  const MachineRates rates = calibrate_gpu(*model, device, threads, 0.3);
  expect_plausible(rates);
  EXPECT_LE(rates.link_gbps, 0.5);
  EXPECT_EQ(device.free_bytes(), 64 * kMiB);
  EXPECT_EQ(device.pinned_bytes(), 0u);
}

TEST(Calibration, WhatADeviceHasNoRoomForIsNotMeasured) {
  const OpenModel model(large_options());
  ThreadPool threads(2);
  backend::RamDevice none(device_with(0));
  const MachineRates without_memory = calibrate(*model, none, threads, 0.2);
  EXPECT_GT(without_memory.cpu_gbps, 0.0);
  EXPECT_EQ(without_memory.link_gbps, 0.0);
  EXPECT_EQ(without_memory.copy_interference, -1.0);
  EXPECT_EQ(without_memory.gpu_gbps, 0.0);

  // Room for three experts, where four are used.
  backend::RamDevice small(device_with(5 * kMiB / 2 + 2 * kMiB));
  expect_plausible(calibrate(*model, small, threads, 0.5));

  backend::RamDeviceOptions options = device_with(64 * kMiB);
  options.pin_limit = 0;
  backend::RamDevice unpinned(options);
  const MachineRates without_pinned = calibrate(*model, unpinned, threads, 0.2);
  EXPECT_GT(without_pinned.cpu_gbps, 0.0);
  EXPECT_EQ(without_pinned.link_gbps, 0.0);
  EXPECT_EQ(without_pinned.handshake_us, 0.0);
  EXPECT_EQ(without_pinned.launch_us, -1.0);
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

TEST(UseMeasured, ReplacesWhatWasMeasuredAlone) {
  Machine machine;
  machine.cpu_source = machine.gpu_source = "described";
  use_measured(unmeasured_rates(), machine);
  EXPECT_EQ(static_cast<MachineRates&>(machine), MachineRates());
  EXPECT_EQ(machine.cpu_source, "described");
  EXPECT_EQ(machine.gpu_source, "described");

  const MachineRates rates{.link_gbps = 20.0,
                           .cpu_gbps = 50.0,
                           .gpu_gbps = 300.0,
                           .handshake_us = 7.0,
                           .experts_us = 0.0,
                           .launch_us = 3.0,
                           .readback_us = 4.0,
                           .sampling_us = 2.0,
                           .copy_interference = 0.0,
                           .cpu_gops = 90.0,
                           .cpu_kv_gbps = 30.0,
                           .cpu_kv_prompt_gbps = 60.0,
                           .graphs_mib = 9.0};
  use_measured(rates, machine);
  EXPECT_EQ(static_cast<MachineRates&>(machine), rates);
  EXPECT_EQ(machine.cpu_source, "measured");
  EXPECT_EQ(machine.gpu_source, "measured");
}

// As a user meets it: the first start measures, the second one knows, and a described machine is
// believed.
TEST(Calibration, ASessionPlansWithWhatWasMeasured) {
  const OpenModel model("qwen3moe", "Q8_0");
  const TempDir dir;
  const std::string path = dir / "folder/machine";
  const Model loaded = Model::load(model.path(), {.n_threads = 2});
  SessionOptions options{.n_ctx = 64};
  options.device.kind = DeviceKind::sim;
  options.device.sim.machine.vram_free = 64 * kMiB;
  options.device.sim.machine.link_gbps = 1.0;
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

  // What cannot be read or kept is a warning, and is measured all the same.
  std::filesystem::remove(path);
  std::filesystem::create_directories(path);
  const PlacementInfo unkept = Session(loaded, options).placement();
  ASSERT_GE(unkept.warnings.size(), 2u);
  expect_contains(unkept.warnings[0], "machine: ");
  expect_contains(unkept.warnings[1], "what was measured on this machine is not kept: ");
  EXPECT_NE(unkept.predicted_decode, assumed);
}

}  // namespace
}  // namespace sluice::engine::test
