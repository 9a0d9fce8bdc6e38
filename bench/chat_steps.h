// Steps of several texts by the engine's driver, with routing like that of recorded texts in the
// place of a random model's: for bench_serving.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "engine/loaded_model.h"
#include "policy/trace/routing_trace.h"

namespace sluice::bench {

// Steps of n_chats texts side by side, n_tokens for each, as one trace. Where they do not share a
// topic, each has its own.
std::vector<policy::RoutingTrace> chat_routes(const policy::RoutingShape& shape, int n_chats,
                                              int n_tokens, bool share_topic);

// Different experts of a layer that a step of the first n texts uses, in the mean.
double experts_of_layer(std::span<const policy::RoutingTrace> routes, int n);

// Tokens per second of all texts, so many at a time, each with the routing of its trace.
double run_chat_steps(const engine::LoadedModel& model,
                      std::span<const policy::RoutingTrace> routes, int n_at_a_time);

}  // namespace sluice::bench
