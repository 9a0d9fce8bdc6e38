// See chat_steps.h.
// SPDX-License-Identifier: Apache-2.0
#include "chat_steps.h"

#include <set>

#include "base/random.h"
#include "base/wall_clock.h"
#include "engine/model_driver.h"
#include "policy/trace/trace_generator.h"

namespace sluice::bench {

using policy::RoutingStep;
using policy::RoutingTrace;

std::vector<RoutingTrace> chat_routes(const policy::RoutingShape& shape, int n_chats, int n_tokens,
                                      bool share_topic) {
  // One long text of a model, cut into pieces: topics change where pieces begin, or never.
  const int n_all = n_chats * n_tokens;
  const RoutingTrace all = policy::generate_trace({.shape = shape,
                                                   .n_prefill = 0,
                                                   .n_decode = n_all,
                                                   .topic_steps = share_topic ? n_all : n_tokens});
  std::vector<RoutingTrace> chats(static_cast<size_t>(n_chats), {all.header, {}});
  for (size_t i = 0; i < all.steps.size(); ++i) {
    chats[i / static_cast<size_t>(n_tokens)].steps.push_back(all.steps[i]);
  }
  return chats;
}

double experts_of_layer(std::span<const RoutingTrace> routes, int n) {
  const int n_layers = static_cast<int>(routes[0].steps[0].begin.size()) - 1;
  double sum = 0.0;
  for (size_t step = 0; step < routes[0].steps.size(); ++step) {
    for (int layer = 0; layer < n_layers; ++layer) {
      std::set<int32_t> used;
      for (const RoutingTrace& chat : routes.first(static_cast<size_t>(n))) {
        for (const RoutedExpert& one : chat.steps[step].layer(layer)) used.insert(one.expert.value);
      }
      sum += static_cast<double>(used.size());
    }
  }
  return sum / static_cast<double>(n_layers) / static_cast<double>(routes[0].steps.size());
}

double run_chat_steps(const engine::LoadedModel& model, std::span<const RoutingTrace> routes,
                      int n_at_a_time) {
  constexpr int kPrompt = 32;
  size_t first = 0, step = 0;  // text of row 0, and its token
  bool is_prompt = false;      // then the router decides
  const auto reroute = [&](LayerId layer, int64_t row, std::span<int32_t> experts) {
    if (is_prompt) return;
    const RoutingTrace& chat = routes[first + static_cast<size_t>(row)];
    const std::span routed = chat.steps[step].layer(layer.value);
    for (size_t k = 0; k < experts.size(); ++k) experts[k] = routed[k].expert.value;
  };
  SessionOptions options{.n_ctx = 1024};
  PlacementInfo placement;
  const auto driver = engine::make_driver({.model = model,
                                           .options = options,
                                           .texts = {.n_sequences = n_at_a_time},
                                           .reroute = reroute},
                                          placement);
  uint64_t n_drawn = 0;
  const auto draw = [&] {
    return static_cast<TokenId>(random_bits(1, n_drawn++) %
                                static_cast<uint64_t>(model.info.n_vocab));
  };
  double seconds = 0.0;
  const size_t n_steps = routes[0].steps.size();
  for (first = 0; first < routes.size(); first += static_cast<size_t>(n_at_a_time)) {
    std::vector<engine::StepRow> rows;
    is_prompt = true;
    for (int i = 0; i < n_at_a_time; ++i) {
      driver->truncate(SequenceId(i), 0);
      rows.assign(kPrompt, {.sequence = SequenceId(i)});
      for (engine::StepRow& row : rows) row.token = draw();
      driver->step(rows, policy::Phase::prefill, {});
    }
    is_prompt = false;
    rows.assign(static_cast<size_t>(n_at_a_time), {.wants_logits = true, .is_decode = true});
    const double start = wall_seconds();
    for (step = 0; step < n_steps; ++step) {
      for (int i = 0; i < n_at_a_time; ++i) {
        rows[static_cast<size_t>(i)].sequence = SequenceId(i);
        rows[static_cast<size_t>(i)].token = draw();
      }
      driver->step(rows, policy::Phase::decode, {.on_logits = [](int64_t, auto) {}});
    }
    seconds += wall_seconds() - start;
  }
  return static_cast<double>(routes.size() * n_steps) / seconds;
}

}  // namespace sluice::bench
