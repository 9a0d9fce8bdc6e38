// Sessions on a GPU and its memory: what --vram caps, what is told where there is too little, files
// that are only mapped, prompts of every length; and a GPU that is lost in the midst of a session.
// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"
#include "gpu/device.h"
#include "sluice/sluice.h"
#include "unit/engine/placed_model.h"

namespace sluice::engine::test {
namespace {

using CudaMemoryTest = backend::cuda::test::DeviceTest;

SessionOptions gpu_options(int n_ctx) {
  SessionOptions options{.n_ctx = n_ctx};
  options.device.kind = DeviceKind::cuda;
  return options;
}

uint64_t free_vram() { return find_gpus().gpus[0].vram_free; }

// As the driver sees it before the context is made, and with every graph that a session records.
TEST_F(CudaMemoryTest, ACapIsOnAllThatTheProcessTakes) {
  const OpenModel file("qwen3moe", "Q4_K_M");
  const Model model = Model::load(file.path(), {.n_threads = 2});
  const GpuInfo gpu = find_gpus().gpus[0];
  EXPECT_GT(gpu.vram_overhead, 64 * kMiB) << "no context takes so little";
  EXPECT_LT(gpu.vram_overhead, 2 * kGiB);
  SessionOptions options = gpu_options(2048);
  options.device.vram_bytes = gpu.vram_overhead + 256 * kMiB;
  Session session(model, options);
  for (const int n : {1, 2, 3, 5, 9, 40, 700}) {
    session.truncate(0);
    session.generate(random_tokens(static_cast<size_t>(n), 3), {.n_tokens = 3});
  }
  const uint64_t taken = gpu.vram_free - free_vram() + gpu.vram_overhead;
  EXPECT_LE(taken, *options.device.vram_bytes);
  std::printf("CUDA takes %s, with the session %s of %s\n", format_bytes(gpu.vram_overhead).c_str(),
              format_bytes(taken).c_str(), format_bytes(*options.device.vram_bytes).c_str());
}

TEST_F(CudaMemoryTest, ACapThatIsTooSmallIsRefusedWithTheNumbers) {
  const OpenModel file("qwen3moe", "Q4_K_M");
  const Model model = Model::load(file.path(), {.n_threads = 1});
  SessionOptions options = gpu_options(256);
  options.device.vram_bytes = 100 * kMiB;
  const std::string error = error_of(Errc::out_of_memory, [&] { Session(model, options); });
  expect_contains(error, "of VRAM where 100 MiB are free");
}

// Somebody else has it: another program, or another session.
TEST_F(CudaMemoryTest, AGpuThatIsFullIsRefusedOrLeftAlone) {
  const OpenModel file("qwen3moe", "Q4_K_M");
  const Model model = Model::load(file.path(), {.n_threads = 1});
  const auto device = backend::make_cuda_device(0);
  const backend::Buffer others =
      device->allocate(backend::MemoryKind::device, device->free_bytes() - 64 * kMiB);
  const std::string error =
      error_of(Errc::out_of_memory, [&] { Session(model, gpu_options(256)); });
  expect_contains(error, "of VRAM where");
  SessionOptions open = gpu_options(256);
  open.device.kind = DeviceKind::automatic;
  Session session(model, open);
  expect_contains(session.placement().reason, "of VRAM where");
  EXPECT_EQ(session.generate(random_tokens(5, 3), {.n_tokens = 2}).tokens.size(), 2u);
}

TEST_F(CudaMemoryTest, WeightsThatAreOnlyMappedGiveTheSameBits) {
  for (const char* const mix : {"Q4_K_M", "Q8_0", "F16"}) {
    const OpenModel file("qwen2moe", mix);
    std::vector<Logits> logits;
    for (const WeightMemory weights : {WeightMemory::copied, WeightMemory::mapped}) {
      const Model model = Model::load(file.path(), {.n_threads = 2, .weights = weights});
      Session session(model, gpu_options(128));
      Logits& all = logits.emplace_back();
      session.append(random_tokens(60, 7), [&](int, std::span<const float> l) {
        all.insert(all.end(), l.begin(), l.end());
      });
      EXPECT_GT(session.placement().upload_bytes, 0u);
    }
    expect_same_bits(logits[0], logits[1], mix);
  }
}

TEST_F(CudaMemoryTest, PromptsOfEveryLengthTakeNoMoreMemory) {
  const OpenModel file("qwen3moe", "Q4_K_M");
  const Model model = Model::load(file.path(), {.n_threads = 2});
  Session session(model, gpu_options(2100));
  session.generate(random_tokens(17, 3), {.n_tokens = 2});
  const uint64_t before = free_vram();
  for (const int n : {18, 33, 70, 150, 310, 650, 1300, 2000}) {
    session.truncate(0);
    session.append(random_tokens(static_cast<size_t>(n), 3));
    EXPECT_EQ(free_vram(), before) << n;
  }
}

// In a process of its own: CUDA keeps the error. Every request fails, and says why; the CPU goes
// on.
TEST_F(CudaMemoryTest, ALostGpuFailsItsSessionsAndNotTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto lose_it = [] {
    const OpenModel file("qwen3moe", "Q4_K_M");
    const Model model = Model::load(file.path(), {.n_threads = 1});
    Session session(model, gpu_options(128));
    session.generate(random_tokens(5, 3), {.n_tokens = 3});
    const auto device = backend::make_cuda_device(0);
    device->make_stream("other")->set(reinterpret_cast<uint64_t*>(uint64_t{1} << 46), 1);
    int n_told = 0;
    for (int i = 0; i < 2; ++i) {
      try {
        session.generate(random_tokens(2, 3), {.n_tokens = 3});
      } catch (const Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        n_told += e.code() == Errc::device;
      }
    }
    const bool is_refused = !find_gpus().gpus.empty() && !find_gpus().gpus[0].problem.empty();
    SessionOptions open{.n_ctx = 64};
    open.device.kind = DeviceKind::automatic;
    Session next(model, open);
    const bool computes = next.generate(random_tokens(5, 3), {.n_tokens = 2}).tokens.size() == 2;
    std::exit(n_told == 2 && is_refused && computes ? 42 : 1);
  };
  EXPECT_EXIT(lose_it(), testing::ExitedWithCode(42), "CUDA: cuda");
}

}  // namespace
}  // namespace sluice::engine::test
