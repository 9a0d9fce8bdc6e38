// In what order and by how many kernels a GPU's stream does its operations: what a recording of a
// layer holds, and that nothing waits for the default stream.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/cuda_stream.h"
#include "gpu/ops_test.h"

namespace sluice::backend::cuda::test {
namespace {

// A layer's projection, router and experts, of one row: what they leave, and what a recording of
// them has.
struct RowLayer {
  size_t n_nodes = 0;
  std::vector<float> x, weights;
  std::vector<int32_t> experts;
};

class RowLayerTest : public CudaOpsTest {
 protected:
  static constexpr int kCols = 512;

  void SetUp() override {
    CudaOpsTest::SetUp();
    if (!IsSkipped()) model = std::make_unique<TinyModel>(TinyShape{}, *gpu);
  }

  // n_added: of x's columns, the first ones, that the projection makes.
  RowLayer run(bool is_recorded, int n_added, bool wants_f32) {
    constexpr int64_t d = TinyShape{}.d_model;
    const Projection out{woven_weight(*gpu, Type::q4_k, kCols, n_added, 3), nullptr};
    const RowsView in = rows(*gpu, 1, kCols, 5), x = rows(*gpu, 1, d, 6);
    const auto floats = [&](int64_t n) { return gpu->put(std::vector<float>(count(n))); };
    const RoutingView routing{kUsed, gpu->put(std::vector<int32_t>(kUsed)), floats(kUsed),
                              floats(1)};
    const ExpertInputView a{1,
                            d,
                            wants_f32 ? floats(d) : nullptr,
                            gpu->put(std::vector<int8_t>(count(d))),
                            floats(d / 32),
                            floats(d / 32)};
    const ExpertsView& experts = model->experts(0);
    LookupView lookup;
    lookup.layer = LayerId(0), lookup.table = experts.table;
    RowLayer got;
    if (is_recorded) stream->begin_recording();
    gpu_ops->project_add(in, out, {x.data, 1, n_added});
    gpu_ops->route(x, model->ffn_norm(0), model->router(0), a, routing);
    gpu_ops->find_experts(experts, lookup, a, routing);
    gpu_ops->compute_found(experts, a);
    gpu_ops->add_found(routing, x);
    if (is_recorded) {
      got.n_nodes = n_recorded();
      const auto recording = stream->end_recording();
      stream->replay(*recording);
      stream->finish();
    }
    stream->finish();
    got.x = read(*gpu, x);
    got.weights = gpu->get(routing.weights, kUsed);
    got.experts = gpu->get(routing.experts, kUsed);
    return got;
  }

  std::unique_ptr<TinyModel> model;

 private:
  size_t n_recorded() {
    const cudaStream_t handle = static_cast<CudaStream&>(*stream).handle();
    cudaStreamCaptureStatus status{};
    cudaGraph_t graph = nullptr;
    size_t n = 0;
    CHECK_CUDA(cudaStreamGetCaptureInfo(handle, &status, nullptr, &graph));
    CHECK_CUDA(cudaGraphGetNodes(graph, nullptr, &n));
    return n;
  }
};

// By the projection, where it makes the row that the router reads, and gate_up gives the row in no
// other form than int8. Otherwise by a kernel of their own; f32 is another one.
TEST_F(RowLayerTest, ARecordedRowsScoresAreAddedUpBeforeTheRouter) {
  constexpr int d = TinyShape{}.d_model;
  const size_t n_added_up = run(true, d, false).n_nodes;
  constexpr struct {
    int n_added;
    bool wants_f32;
    size_t n_more;
  } kCases[] = {{d, false, 0}, {d / 2, false, 1}, {d, true, 2}};
  for (const auto& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.n_added << " columns, f32 " << c.wants_f32);
    const RowLayer got = run(true, c.n_added, c.wants_f32);
    const RowLayer want = run(false, c.n_added, c.wants_f32);
    EXPECT_EQ(got.n_nodes, n_added_up + c.n_more);
    EXPECT_EQ(got.experts, want.experts);
    expect_same_bits(want.weights, got.weights, "weights");
    expect_same_bits(want.x, got.x, "x");
  }
}

// Keeps the default stream at work until it goes.
class BusyDefaultStream {
 public:
  BusyDefaultStream() { CHECK_CUDA(cudaLaunchHostFunc(nullptr, wait, &has_ended_)); }
  ~BusyDefaultStream() {
    has_ended_ = true;
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  }
  BusyDefaultStream(const BusyDefaultStream&) = delete;
  BusyDefaultStream& operator=(const BusyDefaultStream&) = delete;

 private:
  static void wait(void* has_ended) {
    while (!*static_cast<std::atomic<bool>*>(has_ended)) std::this_thread::yield();
  }
  std::atomic<bool> has_ended_ = false;
};

// What stands in zeros at the start does so before the first kernel, though another program may
// have the card meanwhile. (It did not, beside one: logits were wrong.)
TEST_F(CudaOpsTest, NeedsNothingOfTheDefaultStream) {
  const std::vector<float> logits = random_values(1000, 3);
  TinyStep step{};
  step.n_logits = step.n_best = 1;
  const auto* const at =
      reinterpret_cast<const TinyStep*>(gpu->put(std::as_bytes(std::span(&step, 1))));
  float* const values = gpu->put(logits);
  const Buffer got = device->allocate(MemoryKind::mapped, sizeof(PickedRow));
  const auto pick = [&](DeviceOps& ops) {
    std::memset(got.data(), 0x55, got.n_bytes());
    ops.pick({values, 1, std::ssize(logits)}, TinyStep::view(at, 1), 0, got.as<PickedRow>());
    stream->finish();
    return got.as<PickedRow>()->best[0].token;
  };
  const int64_t best = std::ranges::max_element(logits) - logits.begin();
  ASSERT_EQ(pick(*gpu_ops), best);  // the kernel is loaded, which waits for all streams
  const Buffer memory = device->allocate(MemoryKind::device, kMiB);
  stream->fill(memory.data(), std::byte{0xff}, kMiB);
  stream->finish();
  std::unique_ptr<DeviceOps> ops;
  const BusyDefaultStream busy;
  ops = device->make_ops(*stream, {}, {memory.data(), kMiB});
  EXPECT_EQ(pick(*ops), best);
}

}  // namespace
}  // namespace sluice::backend::cuda::test
