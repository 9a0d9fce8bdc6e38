// Carries out an answer: gives its prompt to the engine, and its tokens, as one API shows them, to
// the client. A client that leaves cancels it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/answering/answer_format.h"
#include "server/answering/answer_plan.h"
#include "server/http/exchange.h"
#include "server/metrics.h"

namespace sluice::server {

struct AnswerContext {
  std::shared_ptr<const ModelService> model;  // shared: held until the answer is complete
  Metrics& metrics;
  std::function<void(const std::string& line)> log;  // any thread; must not block
  const ModelService& service = *model;
};

// Returns at once; the answer comes from the engine's thread. Throws, with nothing sent, where the
// engine refuses the request. What `context` refers to outlives the engine.
void run_answer(const AnswerContext& context, std::shared_ptr<Exchange> exchange, AnswerPlan plan,
                std::unique_ptr<AnswerFormat> format);

}  // namespace sluice::server
