// Once a session has seen steps as large as they get, nobody asks for memory any more, of the host
// or of the device: however its steps are run, and whatever is missing.
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

// On the virtual clock and one thread, where every run is the same.
TEST(SessionMemory, StaysFlatOnceTheLargestStepsWereSeen) {
  const OpenModel model("qwen2moe", "Q4_K_M");
  for (const SteadyCase& c :
       {SteadyCase{StepCut::whole, 0.0, false, 0}, SteadyCase{StepCut::whole, 0.5, true, 0},
        SteadyCase{StepCut::whole, 0.0, true, 0}, SteadyCase{StepCut::whole, 0.0, false, 1},
        SteadyCase{StepCut::segmented, 0.5, false, 0},
        SteadyCase{StepCut::segmented, 0.0, true, 1}}) {
    Place place{.share = 0.3,
                .link_share = c.link_share,
                .n_host_layers = c.n_host_layers,
                .n_host_threads = 1,
                .cut = c.cut,
                .n_ctx = 256};
    place.device.clock = backend::Clock::virtual_time;
    if (c.prefetches) place.staging = eager_staging();
    Placed placed(model, place);
    TokenId token = 7;
    requests_of_tokens(placed, 50, token);
    const uint64_t free = placed.device.free_bytes(), pinned = placed.device.pinned_bytes();
    EXPECT_EQ(requests_of_tokens(placed, 200, token), 0u)
        << (c.cut == StepCut::whole ? "whole" : "segmented") << ", link share " << c.link_share
        << ", prefetch " << c.prefetches << ", " << c.n_host_layers << " layers on the host";
    EXPECT_EQ(placed.device.free_bytes(), free);
    EXPECT_EQ(placed.device.pinned_bytes(), pinned);
  }
}

}  // namespace
}  // namespace sluice::engine::test
