// GET /v1/models, and one of them by name: those that a request may ask for.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "server/endpoints/endpoints.h"

namespace sluice::server {
namespace {

constexpr std::string_view kPrefix = "/v1/models/";

Json model_json(const ModelService& service) {
  const ModelInfo& info = service.info();
  return {{"id", service.name()},
          {"object", "model"},
          {"created", service.started()},
          {"owned_by", "sluice"},
          {"meta",
           {{"name", info.name},
            {"architecture", info.architecture},
            {"n_vocab", info.n_vocab},
            {"n_layers", info.n_layers},
            {"n_experts", info.n_experts},
            {"n_experts_used", info.n_experts_used},
            {"is_dense", info.is_dense},
            {"n_ctx", service.n_ctx()},
            {"n_ctx_train", info.n_ctx_train},
            {"file_bytes", info.file_bytes}}}};
}

// Where requests do not choose, the one there is.
Json models_json(const ModelHost& host) {
  Json all = Json::array();
  const ModelHost::Handle loaded = host.peek();
  if (loaded) all.push_back(model_json(*loaded));
  for (const ModelHost::Known& known : host.list()) {
    if (loaded && loaded->name() == known.name) continue;
    if (!host.swaps() && (loaded || known.name != host.name())) continue;
    all.push_back(
        {{"id", known.name}, {"object", "model"}, {"created", 0}, {"owned_by", "sluice"}});
  }
  return all;
}

}  // namespace

void add_models(Router& router, const EndpointContext& all) {
  router.get("/v1/models", [&all](const std::shared_ptr<Exchange>& exchange) {
    send_json(*exchange, {{"object", "list"}, {"data", models_json(all.host)}});
  });
  router.get("/v1/models/*", [&all](const std::shared_ptr<Exchange>& exchange) {
    const std::string name = exchange->request().path.substr(kPrefix.size());
    std::string names;
    for (const Json& model : models_json(all.host)) {
      if (model["id"] == name) return send_json(*exchange, model);
      names += cat(names.empty() ? "" : ", ", model["id"].get<std::string>());
    }
    throw ApiError(404, cat("there is no such model; this server has ", names), "model",
                   "model_not_found");
  });
}

}  // namespace sluice::server
