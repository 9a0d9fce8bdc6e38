// How a request gets the model that it needs; see endpoints.h.
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "server/endpoints/endpoints.h"

namespace sluice::server {
namespace {

// Ollama's clients add a tag, of which there is one.
std::string model_of(const HttpRequest& request) {
  constexpr std::string_view kTag = ":latest";
  const Json body = parse_body(request.body);
  std::string name = Fields(body).string("model").value_or("");
  if (name.ends_with(kTag)) name.resize(name.size() - kTag.size());
  return name;
}

}  // namespace

ModelHost::Fail refuse_with(std::shared_ptr<Exchange> exchange) {
  return [exchange = std::move(exchange)](const ApiError& error) {
    exchange->send(error_response(api_of(exchange->request().path), error));
  };
}

void add_with_model(Router& router, const EndpointContext& all, const std::string& path,
                    ModelHandler handler) {
  router.post(path, [&all, handler = std::move(handler)](std::shared_ptr<Exchange> exchange) {
    const std::string name = all.host.swaps() ? model_of(exchange->request()) : "";
    const auto run = [&all, handler, exchange](ModelHost::Handle model) {
      all.guard(exchange, [&] { handler({std::move(model), all.metrics, all.log}, exchange); });
    };
    all.host.use(name, run, refuse_with(exchange));
  });
}

}  // namespace sluice::server
