// A whole small model on the GPU, by recordings for 1, 4, 8 and 16 rows that are replayed with
// 1, 3, 5 and 11 live ones: near the CPU's logits with the CPU's experts, and equal in every bit
// with the same rows computed alone, cache included.
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "backend/mailbox.h"
#include "base/error.h"
#include "gpu/tiny_model.h"

namespace sluice::backend::cuda::test {
namespace {

using CudaModelTest = DeviceTest;
using Sequences = std::vector<int>;  // of a step's rows

const std::vector<Sequences> kSteps = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {0, 1, 2, 3, 4}, {7, 7, 7}, {0},
    {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2},  {7, 0, 5},       {7},       {3, 3, 3, 3, 6}};

// Writes steps: tokens by sequence and position alone, pages in a scattered order, logits of the
// last row first.
class StepWriter {
 public:
  explicit StepWriter(RopeView rope) : rope_(rope) {}

  void write(const Sequences& rows, TinyStep& out) {
    const auto n = static_cast<int32_t>(rows.size());
    out = {};
    out.n_live = out.n_logits = n;
    for (int i = 0; i < kSequences * kPages; ++i)
      out.table[i] = (i * 7 + 3) % (kSequences * kPages);
    const size_t n_rot = 2 * rope_.frequencies.size();
    for (int32_t r = 0; r < n; ++r) {
      const int sequence = rows[static_cast<size_t>(r)];
      const int position = lengths_[sequence]++;
      out.tokens[r] = (sequence * 37 + position * 11) % kVocab;
      out.positions[r] = position;
      out.sequences[r] = sequence;
      out.logit_rows[r] = n - 1 - r;
      cpu::rope_angles(rope_, position, {out.angles + static_cast<size_t>(r) * n_rot, n_rot});
    }
    for (int32_t& f : out.forced) f = -1;
  }

 private:
  RopeView rope_;
  std::map<int, int> lengths_;
};

// The model on the GPU: one recording for a width.
class Recorded {
 public:
  Recorded(backend::Device& device, const TinyShape& shape)
      : stream_(device.make_stream("main")),
        side_(&device),
        model_(shape, side_),
        ops_(device.make_ops(*stream_, {}, {})),
        image_(device.allocate(MemoryKind::mapped, sizeof(TinyStep))),
        twin_(device.allocate(MemoryKind::device, sizeof(TinyStep))) {}

  std::vector<float> logits(const TinyStep& step, int width) {
    *image_.as<TinyStep>() = step;
    auto& recording = recordings_[width];
    if (!recording) {
      stream_->begin_recording();
      stream_->copy(twin_.data(), image_.data(), sizeof(TinyStep));
      model_.forward(*ops_, TinyStep::view(twin_.as<TinyStep>(), width));
      recording = stream_->end_recording();
    }
    stream_->replay(*recording);
    stream_->finish();
    return model_.logits(step.n_live);
  }
  std::vector<std::byte> cache() { return model_.cache(); }

 private:
  std::unique_ptr<Stream> stream_;
  Side side_;
  TinyModel model_;
  std::unique_ptr<DeviceOps> ops_;
  Buffer image_, twin_;
  std::map<int, std::unique_ptr<Recording>> recordings_;
};

// The model on the CPU, and what it chose: [kLayers, n_rows, kUsed].
class OnCpu {
 public:
  explicit OnCpu(const TinyShape& shape)
      : side_(nullptr), model_(shape, side_), pool_(2), ops_(make_cpu_ops(pool_)) {}

  std::vector<float> logits(const TinyStep& step) {
    const StepView view = TinyStep::view(&step, step.n_live);
    chosen.clear();
    model_.forward(*ops_, view, [&](int) {
      const auto layer = model_.chosen(step.n_live);
      chosen.insert(chosen.end(), layer.begin(), layer.end());
    });
    return model_.logits(step.n_live);
  }
  RopeView rope() const { return model_.rope(); }

  std::vector<int32_t> chosen;

 private:
  Side side_;
  TinyModel model_;
  ThreadPool pool_;
  std::unique_ptr<Ops> ops_;
};

// sum p log(p / q) of two rows of logits.
double divergence(std::span<const float> p, std::span<const float> q) {
  const auto log_sum = [](std::span<const float> row) {
    double sum = 0;
    for (const float v : row) sum += std::exp(double{v});
    return std::log(sum);
  };
  const double lp = log_sum(p), lq = log_sum(q);
  double kl = 0;
  for (size_t i = 0; i < p.size(); ++i) kl += std::exp(p[i] - lp) * ((p[i] - lp) - (q[i] - lq));
  return kl;
}

// Experts that the step takes, of all layers; rows of `from` on.
void force(TinyStep& step, int width, const std::vector<int32_t>& chosen, int n_chosen, int from) {
  for (int l = 0; l < kLayers; ++l) {
    for (int i = 0; i < step.n_live * kUsed; ++i) {
      step.forced[l * width * kUsed + i] =
          chosen[static_cast<size_t>((l * n_chosen + from) * kUsed + i)];
    }
  }
}

class Comparison {
 public:
  explicit Comparison(const TinyShape& shape)
      : device_(make_cuda_device(0)),
        cpu_(shape),
        together_(*device_, shape),
        alone_(*device_, shape),
        rows_(cpu_.rope()),
        rows_alone_(cpu_.rope()) {}

  void run() {
    for (const Sequences& step : kSteps) {
      compare(step);
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_LE(sum_ / n_rows_, 1e-5) << "mean divergence";
    EXPECT_EQ(together_.cache(), alone_.cache());
  }

 private:
  void compare(const Sequences& sequences) {
    const auto n = static_cast<int>(sequences.size());
    const int width = static_cast<int>(std::bit_ceil(sequences.size()));
    TinyStep step;
    rows_.write(sequences, step);
    const std::vector<float> want = cpu_.logits(step);
    force(step, width, cpu_.chosen, n, 0);
    const std::vector<float> got = together_.logits(step, width);
    for (int i = 0; i < n; ++i) {  // logits of the last row stand first
      const std::span<const float> row = std::span(got).subspan(size_t(i) * kVocab, kVocab);
      const double kl = divergence(std::span(want).subspan(size_t(i) * kVocab, kVocab), row);
      ASSERT_LE(kl, 1e-3) << "row " << n - 1 - i << " of " << n;
      sum_ += kl, ++n_rows_;
    }
    for (int r = 0; r < n; ++r) {
      TinyStep one;
      rows_alone_.write({sequences[size_t(r)]}, one);
      force(one, 1, cpu_.chosen, n, r);
      expect_same_bits(alone_.logits(one, 1),
                       std::span(got).subspan(size_t(n - 1 - r) * kVocab, kVocab),
                       cat("row ", r, " of ", n));
      if (testing::Test::HasFatalFailure()) return;
    }
  }

  std::unique_ptr<backend::Device> device_;
  OnCpu cpu_;
  Recorded together_, alone_;
  StepWriter rows_, rows_alone_;
  double sum_ = 0;
  int n_rows_ = 0;
};

TEST_F(CudaModelTest, IsNearTheCpuAndTheSameForRowsAlone) { Comparison(TinyShape{}).run(); }

TEST_F(CudaModelTest, IsSoWithoutWholeChunks) { Comparison(odd_shape()).run(); }

}  // namespace
}  // namespace sluice::backend::cuda::test
