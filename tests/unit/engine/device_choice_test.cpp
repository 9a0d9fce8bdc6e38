// Which device a session gets that leaves it open, and why a GPU is not used: with made-up GPUs, on
// any machine.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/units.h"
#include "engine/machine/session_plan.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* const part : parts) expect_contains(text, part);
}

struct DeviceChosen : testing::Test {
  static model_file::SynthOptions supported() {
    model_file::SynthOptions o = model::test::tiny_options("qwen3moe", "Q8_0");
    o.config.n_vocab = 264;
    return o;
  }

  DeviceChoice choose() const { return choose_for(model); }
  DeviceChoice choose_for(const OpenModel& m) const {
    return choose_device({.file = m.file(), .options = options, .n_threads = 1, .weights = weights},
                         &*m, list);
  }
  DeviceChoice choose_with(const MachineRecord& record) const {
    return choose_device(
        {.file = model.file(), .options = options, .n_threads = 1, .record = &record}, &*model,
        list);
  }
  std::string error_of_choice(Errc code) const {
    return error_of(code, [&] { choose(); });
  }
  SessionPlan plan() const {
    return plan_session({.file = model.file(),
                         .options = options,
                         .n_threads = 1,
                         .weights = weights,
                         .gpu = &list.gpus[0]});
  }

  OpenModel model{supported()};
  SessionOptions options = [] {
    SessionOptions o{.n_ctx = 64};
    o.device.kind = DeviceKind::automatic;
    return o;
  }();
  WeightMemory weights = WeightMemory::automatic;
  GpuList list{{{.index = 0,
                 .name = "NVIDIA Test",
                 .vram_bytes = 8 * kGiB,
                 .vram_free = 6 * kGiB,
                 .vram_overhead = 100 * kMiB,
                 .problem = {}}},
               {}};
};

TEST_F(DeviceChosen, TheGpuWhereItCanAndIsFaster) {
  const DeviceChoice choice = choose();
  EXPECT_EQ(choice.kind, DeviceKind::cuda);
  EXPECT_EQ(choice.reason, "");
}

TEST_F(DeviceChosen, ADeviceThatWasAskedForIsKept) {
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::sim, DeviceKind::cuda}) {
    options.device.kind = kind;
    EXPECT_EQ(choose().kind, kind);
  }
}

TEST_F(DeviceChosen, TheGpuForRecurrentLayersToo) {
  for (const char* architecture : model::test::kHybrids) {
    const OpenModel hybrid(architecture, "Q8_0");
    const DeviceChoice choice = choose_for(hybrid);
    EXPECT_EQ(choice.kind, DeviceKind::cuda) << architecture << ": " << choice.reason;
  }
}

// This one is so small that the two are about as fast.
TEST_F(DeviceChosen, TheFasterOneForADenseModel) {
  const OpenModel dense("qwen3", "Q8_0");
  const DeviceChoice choice = choose_for(dense);
  if (choice.kind == DeviceKind::cpu) {
    expect_parts(choice.reason, {"the CPU computes", "predicted at"});
  } else {
    EXPECT_EQ(choice.kind, DeviceKind::cuda);
  }
}

TEST_F(DeviceChosen, WithoutAGpuTheCpuAndNoNews) {
  list = {{}, "this machine has no NVIDIA driver"};
  const DeviceChoice choice = choose();
  EXPECT_EQ(choice.kind, DeviceKind::cpu);
  EXPECT_FALSE(choice.has_gpu);
  expect_parts(choice.reason, {"the CPU computes", "no NVIDIA driver"});
  options.device.kind = DeviceKind::cuda;
  expect_parts(error_of_choice(Errc::device), {"GPU 0", "no NVIDIA driver"});
}

TEST_F(DeviceChosen, OfSeveralTheOneThatWasAskedFor) {
  list.gpus.push_back(list.gpus[0]);
  list.gpus[0].problem = "GPU 0 (NVIDIA Test) is too old";
  EXPECT_EQ(choose().kind, DeviceKind::cpu);
  expect_parts(choose().reason, {"too old"});
  EXPECT_TRUE(choose().has_gpu);
  options.device.gpu = 1;
  EXPECT_EQ(choose().kind, DeviceKind::cuda);
  options.device.gpu = 2;
  expect_parts(choose().reason, {"there is no GPU 2", "has 2, GPU 0 to 1"});
  options.device.kind = DeviceKind::cuda;
  expect_parts(error_of_choice(Errc::device), {"there is no GPU 2"});
  list.gpus.pop_back();
  expect_parts(error_of_choice(Errc::device), {"there is no GPU 2", "has 1, GPU 0"});
}

TEST_F(DeviceChosen, AGpuWithoutRoomIsRefusedWithTheNumbers) {
  list.gpus[0].vram_free = 100 * kMiB + 1;
  const DeviceChoice choice = choose();
  EXPECT_EQ(choice.kind, DeviceKind::cpu);
  expect_parts(choice.reason, {"GPU 0 (NVIDIA Test)", "of VRAM where 100 MiB are free"});
  options.device.kind = DeviceKind::cuda;
  expect_parts(error_of(Errc::out_of_memory, [&] { plan(); }),
               {"GPU 0 (NVIDIA Test)", "of VRAM where 100 MiB are free", "--device cpu"});
  list.gpus[0].vram_free = 6 * kGiB;
  options.device.vram_bytes = 100 * kMiB;
  expect_parts(error_of(Errc::out_of_memory, [&] { plan(); }), {"where 100 MiB are free"});
}

// What CUDA has taken and what its graphs will take is part of the plan, and of --vram.
TEST_F(DeviceChosen, WhatCudaTakesIsPriced) {
  options.device.kind = DeviceKind::cuda;
  const uint64_t unmeasured = plan().plan().price.vram.cuda;
  EXPECT_EQ(unmeasured, (100 + 40 + 64) * kMiB);
  MachineRecord record = MachineRecord::of_this_machine();
  MachineRates rates = unmeasured_rates();
  rates.graphs_mib = 3.0;
  record.add(DeviceRates{"GPU 0 (NVIDIA Test)", 1, rates});
  const auto measured = [&] {
    return plan_session({.file = model.file(),
                         .options = options,
                         .n_threads = 1,
                         .record = &record,
                         .gpu = &list.gpus[0]})
        .plan()
        .price.vram;
  };
  EXPECT_EQ(measured().cuda, (100 + 40 + 3) * kMiB);
  options.device.vram_bytes = measured().total();
  EXPECT_EQ(measured().total(), *options.device.vram_bytes);
  options.device.vram_bytes = *options.device.vram_bytes - 1;
  options.device.moe = ExpertPlace::gpu;
  EXPECT_THROW(measured(), Error);
}

TEST_F(DeviceChosen, TheCpuWhereItIsPredictedToBeFaster) {
  MachineRecord record = MachineRecord::of_this_machine();
  MachineRates rates = unmeasured_rates();
  rates.gpu_gbps = 0.001;
  record.add(DeviceRates{"GPU 0 (NVIDIA Test)", 1, rates});
  const DeviceChoice choice = choose_with(record);
  EXPECT_EQ(choice.kind, DeviceKind::cpu);
  expect_parts(choice.reason, {"predicted", "tokens/s, GPU 0 (NVIDIA Test) at"});
  options.device.moe = ExpertPlace::gpu;  // a wish that the CPU cannot fulfil
  EXPECT_EQ(choose_with(record).kind, DeviceKind::cuda);
}

TEST_F(DeviceChosen, TheCpuForWhatGpusCannotComputeYet) {
  const auto expect_cpu = [&](const DeviceChoice& choice, const char* why) {
    EXPECT_EQ(choice.kind, DeviceKind::cpu) << why;
    expect_parts(choice.reason, {"GPUs cannot compute this yet", why});
  };
  EXPECT_EQ(choose_for(OpenModel("qwen3moe", "F16")).kind, DeviceKind::cuda);
  for (const WeightMemory memory : {WeightMemory::mapped, WeightMemory::copied}) {
    weights = memory;
    EXPECT_EQ(choose().kind, DeviceKind::cuda);
  }
  model_file::SynthOptions wide = model::test::tiny_options("qwen35moe", "Q8_0");
  wide.config.delta_net.head_dim = 256;
  expect_cpu(choose_for(OpenModel(wide)), "layer 0: recurrent heads of 256 values; 128");
}

TEST_F(DeviceChosen, PromptsOfAGpuComeInAsManyRowsAsItsKernelsTake) {
  options.device.kind = DeviceKind::cuda;
  options.prefill_chunk = 512;
  EXPECT_EQ(plan().plan().work.max_rows(), 64) << "as long as the context";
  options.prefill_chunk = 0;
  EXPECT_EQ(plan().plan().work.max_rows(), 64);
  EXPECT_EQ(most_gpu_rows(*OpenModel("qwen2moe", "Q4_K_M")), 4096);
  EXPECT_EQ(most_gpu_rows(*OpenModel("qwen2moe", "BF16")), 16);
  options.prefill_chunk = 3;
  EXPECT_EQ(plan().plan().work.max_rows(), 3);
}

TEST_F(DeviceChosen, AGpuHoldsAllExpertsOrSome) {
  options.device.kind = DeviceKind::cuda;
  EXPECT_EQ(plan().plan().mode, policy::Mode::all_resident);
  options.device.n_gpu_layers = 1;
  EXPECT_EQ(plan().plan().n_gpu_layers, 1);
  options.device.n_gpu_layers.reset();
  options.device.moe = ExpertPlace::cpu;
  EXPECT_NE(plan().plan().mode, policy::Mode::all_resident);
}

// They are woven on their way to the GPU, and only there.
TEST_F(DeviceChosen, OfAFileThatIsOnlyMappedAGpuHoldsAllExpertsOrNone) {
  options.device.kind = DeviceKind::cuda;
  weights = WeightMemory::mapped;
  EXPECT_EQ(plan().plan().mode, policy::Mode::all_resident);
  for (const ExpertPlace moe : {ExpertPlace::cache, ExpertPlace::cpu}) {
    options.device.moe = moe;
    expect_parts(error_of(Errc::bad_request, [&] { plan(); }), {"mapped", "--weights copied"});
  }
}

// A session without a GPU to find runs on the CPU, and says why to whoever asks.
TEST_F(DeviceChosen, ASessionTakesWhatThereIs) {
  if (!find_gpus().gpus.empty()) GTEST_SKIP() << "this machine has a GPU";
  Session session(Model::load(model.path(), {.n_threads = 1}), options);
  EXPECT_TRUE(session.append(std::vector<TokenId>{1, 2, 3}));
  EXPECT_TRUE(session.placement().warnings.empty());
  expect_parts(session.placement().reason, {"the CPU computes"});
}

}  // namespace
}  // namespace sluice::engine::test
