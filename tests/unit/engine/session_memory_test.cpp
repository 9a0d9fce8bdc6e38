// From a session's first token to its last nobody asks for memory, of the host or of the device:
// however its steps are run, and whatever is missing.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/count_allocations.h"
#include "unit/engine/placed_model.h"

namespace sluice::engine::test {
namespace {

using sluice::test::n_requests;

struct SteadyCase {
  StepCut cut;
  double link_share;
  bool prefetches;
  int n_host_layers;
};

// Greedy: a token follows from the one before. Listener and rows are made once, as a session's are.
uint64_t requests_of_tokens(Placed& placed, int n_tokens, TokenId& token) {
  StepListener listener;
  listener.on_pick = [&](int64_t, const backend::PickedRow& picked) {
    token = picked.best[0].token;
  };
  const uint64_t before = n_requests;
  for (int i = 0; i < n_tokens; ++i) {
    const StepRow row{token, {}, false, 1};
    placed.runtime.step({&row, 1}, policy::Phase::decode, listener);
  }
  return n_requests - before;
}

// Whatever is missing, and whoever computes it: on the virtual clock and one thread, where every
// run is the same. The first token is recorded.
TEST(SessionMemory, StaysFlatFromTheFirstTokenOnHoweverStepsAreRun) {
  const OpenModel model("qwen2moe", "Q4_K_M"), floats("qwen3moe", "F16");
  for (const SteadyCase& c :
       {SteadyCase{StepCut::whole, 0.0, false, 0}, SteadyCase{StepCut::whole, 0.5, true, 0},
        SteadyCase{StepCut::whole, 0.0, true, 0}, SteadyCase{StepCut::whole, 0.0, false, 1},
        SteadyCase{StepCut::segmented, 0.5, false, 0},
        SteadyCase{StepCut::segmented, 0.0, true, 1}}) {
    for (const double share : {0.0, 0.3, 1.0}) {
      for (const OpenModel* m : {&model, &floats}) {
        Place place{.share = share,
                    .link_share = c.link_share,
                    .n_host_layers = c.n_host_layers,
                    .n_host_threads = 1,
                    .cut = c.cut,
                    .n_ctx = 256};
        place.device.clock = backend::Clock::virtual_time;
        if (c.prefetches) place.staging = eager_staging();
        Placed placed(*m, place);
        TokenId token = 7;
        EXPECT_GT(requests_of_tokens(placed, 1, token), 0u) << "they are not counted";
        const uint64_t free = placed.device.free_bytes(), pinned = placed.device.pinned_bytes();
        EXPECT_EQ(requests_of_tokens(placed, 200, token), 0u)
            << (c.cut == StepCut::whole ? "whole" : "segmented") << ", link share " << c.link_share
            << ", prefetch " << c.prefetches << ", " << c.n_host_layers
            << " layers on the host, of the experts " << share;
        EXPECT_EQ(placed.device.free_bytes(), free);
        EXPECT_EQ(placed.device.pinned_bytes(), pinned);
      }
    }
  }
}

TEST(SessionMemory, StaysFlatFromTheFirstTokenOnOnTheCpuAlone) {
  for (const char* mix : {"Q4_K_M", "F16"}) {
    const OpenModel model("qwen2moe", mix);
    ThreadPool pool(1);
    Stepper stepper(*model, backend::make_cpu_ops(pool), {.n_ctx = 256, .page_tokens = 16}, 64);
    TokenId token = 7;
    StepListener listener;
    listener.on_pick = [&](int64_t, const backend::PickedRow& picked) {
      token = picked.best[0].token;
    };
    uint64_t after_first = 0;
    for (int i = 0; i < 201; ++i) {
      const StepRow row{token, {}, false, 1};
      stepper.step({&row, 1}, policy::Phase::decode, listener);
      if (i == 0) after_first = n_requests;
    }
    EXPECT_EQ(n_requests - after_first, 0u) << mix;
  }
}

}  // namespace
}  // namespace sluice::engine::test
