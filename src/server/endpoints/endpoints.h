// What the server answers, one file for each endpoint or family. Each adds its routes to the table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/answering/answer_run.h"
#include "server/model_host.h"
#include "server/router.h"

namespace sluice::server {

class LiveState;
class SavedPrefixes;

struct EndpointContext {
  ModelHost& host;
  Metrics& metrics;
  std::function<void(const std::string& line)> log;
  // Calls it; what it throws becomes the answer.
  std::function<void(const std::shared_ptr<Exchange>&, const std::function<void()>&)> guard;
};

// A POST whose handler needs a model: the one that the field "model" names, where requests choose,
// else the one there is. It may be called later, from another thread.
using ModelHandler = std::function<void(const AnswerContext&, std::shared_ptr<Exchange>)>;
void add_with_model(Router& router, const EndpointContext& all, const std::string& path,
                    ModelHandler handler);
// Refuses what failed before a handler was called.
ModelHost::Fail refuse_with(std::shared_ptr<Exchange> exchange);

// {"device", "mode", ...}: where a model that is loaded lives.
Json placement_json(const ModelService& service);

// `all` outlives the router.
void add_apply_template(Router& router, const EndpointContext& all);    // /apply-template
void add_chat_completions(Router& router, const EndpointContext& all);  // /v1/chat/completions
void add_completions(Router& router, const EndpointContext& all);       // /v1/completions
void add_health(Router& router, const EndpointContext& all);            // /health, /metrics, /props
void add_hosted_models(Router& router, const EndpointContext& all);     // /models
void add_infill(Router& router, const EndpointContext& all);            // /infill
void add_live(Router& router, LiveState& live);                         // /api/sluice/...
void add_messages(Router& router, const EndpointContext& all);          // /v1/messages
void add_models(Router& router, const EndpointContext& all);            // /v1/models
void add_ollama_answers(Router& router, const EndpointContext& all);    // /api/chat, /api/generate
void add_ollama_models(Router& router, const EndpointContext& all);     // /api/tags, /api/show
void add_page(Router& router);                                          // / and its files
void add_prefixes(Router& router, const EndpointContext& all,           // /prefixes
                  const SavedPrefixes& prefixes);
void add_responses(Router& router, const EndpointContext& all);  // /v1/responses
void add_tokenize(Router& router, const EndpointContext& all);   // /tokenize, /detokenize

// A whole answer as JSON.
inline void send_json(Exchange& exchange, const Json& json) { exchange.send({.body = dump(json)}); }

// Something new in every call: "chatcmpl-4f1c0a...".
std::string make_id(const std::string& prefix);

}  // namespace sluice::server
