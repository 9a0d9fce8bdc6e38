// GET /models and /models/NAME/plan, POST /models/load and /models/unload: the models there are,
// what would live where, and which one is loaded.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/error.h"
#include "server/endpoints/endpoints.h"

namespace sluice::server {
namespace {

constexpr std::string_view kPrefix = "/models/";
constexpr std::string_view kPlan = "/plan";

Json model_json(const ModelHost::Known& known, const ModelHost& host) {
  using State = ModelHost::Known::State;
  std::error_code ignored;
  const uint64_t n_bytes = std::filesystem::file_size(known.path, ignored);  // of a first shard
  Json json = {{"name", known.name}, {"bytes", ignored ? 0 : n_bytes}, {"status", "unloaded"}};
  if (known.state == State::loading) json["status"] = "loading";
  if (known.state != State::loaded) return json;
  if (const ModelHost::Handle model = host.peek(); model && model->name() == known.name) {
    json["status"] = "loaded";
    json["placement"] = placement_json(*model);
  }
  return json;
}

void load(const EndpointContext& all, const std::shared_ptr<Exchange>& exchange) {
  const Json body = parse_body(exchange->request().body);
  const Fields fields(body);
  const std::string name = fields.required_string("model");
  if (fields.boolean("plan_only").value_or(false)) {
    return send_json(*exchange, {{"model", name}, {"plan", all.host.plan(name)}});
  }
  const auto run = [exchange, name](const ModelHost::Handle& model) {
    send_json(*exchange,
              {{"model", name}, {"status", "loaded"}, {"placement", placement_json(*model)}});
  };
  all.host.use(name, run, refuse_with(exchange));
}

void unload(const EndpointContext& all, const std::shared_ptr<Exchange>& exchange) {
  if (!exchange->request().body.empty()) {
    const Json body = parse_body(exchange->request().body);
    const std::optional<std::string> name = Fields(body).string("model");
    const ModelHost::Handle model = all.host.peek();
    if (name && (!model || model->name() != *name)) {
      throw ApiError(404, "this model is not loaded; GET /models says which is", "model",
                     "model_not_found");
    }
  }
  const auto run = [exchange](const ModelHost::Handle&) {
    send_json(*exchange, {{"status", "unloaded"}});
  };
  all.host.unload(run, refuse_with(exchange));
}

}  // namespace

void add_hosted_models(Router& router, const EndpointContext& all) {
  router.get("/models", [&all](const std::shared_ptr<Exchange>& exchange) {
    Json models = Json::array();
    for (const auto& known : all.host.list()) models.push_back(model_json(known, all.host));
    send_json(*exchange, {{"models", models}});
  });
  router.get("/models/*", [&all](const std::shared_ptr<Exchange>& exchange) {
    std::string_view name = std::string_view(exchange->request().path).substr(kPrefix.size());
    if (!name.ends_with(kPlan)) throw ApiError(404, "expected /models/NAME/plan");
    name.remove_suffix(kPlan.size());
    send_json(*exchange, all.host.plan(std::string(name)));
  });
  router.post("/models/load",
              [&all](const std::shared_ptr<Exchange>& exchange) { load(all, exchange); });
  router.post("/models/unload",
              [&all](const std::shared_ptr<Exchange>& exchange) { unload(all, exchange); });
}

}  // namespace sluice::server
