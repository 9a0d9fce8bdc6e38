// Memory of the CPU's operations: it grows to the widest step and stays, and where it runs out, in
// whichever thread, the caller gets an exception and the next step is as if nothing had happened.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backend/ops.h"
#include "base/error.h"
#include "support/count_allocations.h"
#include "unit/backend/attention.h"
#include "unit/backend/expect.h"
#include "unit/backend/routing.h"

namespace sluice::backend::test {
namespace {

using quant::Type;
using sluice::test::FailingAllocation;
using sluice::test::n_requests;

constexpr int64_t kLayerModel = 64, kLayerHidden = 96, kLayerShared = 64, kLayerVocab = 50,
                  kLayerWidest = 33;
constexpr int kLayerExperts = 9, kLayerUsed = 3;

// A layer's experts, with a shared one.
struct LayerExperts {
  Weight gate{Type::q8_0, {kLayerModel, kLayerHidden, kLayerExperts}, 1, 0.1f};
  Weight up{Type::q4_0, {kLayerModel, kLayerHidden, kLayerExperts}, 2, 0.1f};
  Weight down{Type::q8_0, {kLayerHidden, kLayerModel, kLayerExperts}, 3, 0.1f};
  Weight shared_gate{Type::q8_0, {kLayerModel, kLayerShared}, 4, 0.1f};
  Weight shared_up{Type::q8_0, {kLayerModel, kLayerShared}, 5, 0.1f};
  Weight shared_down{Type::q4_0, {kLayerShared, kLayerModel}, 6, 0.1f};

  ExpertsView view() const {
    return {.gate = gate.view(),
            .up = up.view(),
            .down = down.view(),
            .shared_gate = shared_gate.view(),
            .shared_up = shared_up.view(),
            .shared_down = shared_down.view()};
  }
};

// Some rows of a step with experts, whose memory was taken before.
struct ExpertStep {
  ExpertStep(int64_t n_rows, uint64_t seed)
      : input(Rows::random(n_rows, kLayerModel, seed)),
        routing(Routing::random(n_rows, kLayerUsed, kLayerExperts, seed)),
        x(n_rows, kLayerModel) {}

  ExpertInput input;
  Routing routing;
  Rows x;
};

// One thread: with more, which of them first meets a large piece is left to chance.
TEST(CpuMemory, StaysFlatWithASharedExpertOverThousandsOfTokens) {
  const LayerExperts experts;
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  std::vector<ExpertStep> steps;
  for (uint64_t i = 0; i < 12; ++i) steps.emplace_back(i % 3 == 0 ? kLayerWidest : 1 + i, i);
  const auto run_all = [&] {
    int64_t n_tokens = 0;
    for (ExpertStep& s : steps) {
      ops->experts(experts.view(), s.input.view(), s.routing.view(), s.x.view());
      n_tokens += s.x.n_rows;
    }
    return n_tokens;
  };
  run_all();  // the widest group of each expert has been seen
  const uint64_t before = n_requests;
  int64_t n_tokens = 0;
  while (n_tokens < 5000) n_tokens += run_all();
  EXPECT_EQ(n_requests - before, 0u) << "requests for memory in " << n_tokens << " tokens";
}

// All operations of a layer, and the logits, on rows of one sequence.
class WholeLayer {
 public:
  explicit WholeLayer(int64_t n_rows)
      : cache_(attention_, 1, kLayerWidest, 8, 1),
        step_(n_rows, 7),
        x_(Rows::random(n_rows, kLayerModel, 8)),
        qkv_(n_rows, attention_.view.q_cols() + 2 * attention_.view.kv_cols()),
        attended_(n_rows, attention_.view.q_cols()),
        logits_(n_rows, kLayerVocab),
        data_(attention_.view.rope, span_of(0, 0, static_cast<int>(n_rows))) {}

  // Asks for no memory of its own.
  void run(Ops& ops) {
    const StepView step = data_.view(cache_);
    const Projection to_model{out_.view(), nullptr};
    std::ranges::copy(x_.values, step_.x.values.begin());
    ops.project_in(x_.view(), norm_, projections_, qkv_.view());
    ops.attend(qkv_.view(), attention_.view, step, cache_.view(), attended_.view());
    ops.project_add(attended_.view(), to_model, step_.x.view());
    ops.route(step_.x.view(), norm_, {router_.view(), kLayerUsed, true, gate_.data()},
              step_.input.view(), step_.routing.view());
    ops.experts(experts_.view(), step_.input.view(), step_.routing.view(), step_.x.view());
    ops.logits(step_.x.view(), step, 0, norm_, output_.view(), logits_.view());
  }

  const std::vector<float>& result() const { return logits_.values; }

 private:
  Attention attention_{{.head_dim = 16, .n_rot = 16, .head_norm = HeadNorm::per_head}};
  Cache cache_;
  LayerExperts experts_;
  Weight qkv_weight_{Type::q8_0, {kLayerModel, 128}, 11},
      out_{Type::q8_0, {kLayerModel, kLayerModel}, 12};
  Weight router_{Type::f32, {kLayerModel, kLayerExperts}, 13},
      output_{Type::q4_0, {kLayerModel, kLayerVocab}, 14};
  std::vector<float> norm_weight_ = random_norm_weight(kLayerModel, 15);
  std::vector<float> gate_ = random_values(kLayerModel, 16, 0.1f);
  NormView norm_{norm_weight_.data(), 1e-6f};
  std::vector<Projection> projections_{{qkv_weight_.view(), nullptr}};
  ExpertStep step_;
  Rows x_, qkv_, attended_, logits_;
  StepData data_;
};

// Every single request for memory fails once: those of the caller and those of the pool's threads.
// Then the same step again, or another one before it.
void expect_right_after_failures(ThreadPool& pool, bool same_again) {
  WholeLayer narrow(1), wide(kLayerWidest);
  const auto reference = make_cpu_ops(pool);
  narrow.run(*reference);
  wide.run(*reference);
  const std::vector<float> one = narrow.result(), many = wide.result();
  int64_t n_failures = 0;
  for (bool failed = true; failed; n_failures += failed) {
    const auto ops = make_cpu_ops(pool);
    narrow.run(*ops);
    try {
      const FailingAllocation failing(n_failures);
      wide.run(*ops);
      failed = false;
    } catch (const std::bad_alloc&) {
    }
    const std::string what =
        cat(pool.n_threads(), " threads, after request ", n_failures, " failed: ");
    for (const bool is_wide : {same_again, !same_again}) {
      (is_wide ? wide : narrow).run(*ops);
      expect_same_bits(is_wide ? many : one, (is_wide ? wide : narrow).result(),
                       what + (is_wide ? "many rows" : "one row"));
    }
    ASSERT_LT(n_failures, 10000) << "one step asks for memory without end";
  }
  EXPECT_GT(n_failures, 20) << "requests of the widest step";
}

TEST(CpuMemory, WhereverItRunsOutTheNextStepIsRight) {
  for (const int n_threads : {1, 3}) {
    ThreadPool pool(n_threads);
    expect_right_after_failures(pool, /*same_again=*/true);
    expect_right_after_failures(pool, /*same_again=*/false);
  }
}

}  // namespace
}  // namespace sluice::backend::test
