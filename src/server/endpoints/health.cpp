// GET /health, /props and /metrics: whether the server lives, what it serves, and what it counts.
// SPDX-License-Identifier: Apache-2.0
#include "server/endpoints/endpoints.h"

namespace sluice::server {
namespace {

Json props(const ModelService& service) {
  return {{"model", service.name()},
          {"n_ctx", service.n_ctx()},
          {"total_slots", service.options().n_sequences},
          {"n_queued", service.options().n_queued},
          {"has_chat_template", service.text().has_template()},
          {"supports_tools", service.text().template_mentions("tools")},
          {"placement", placement_json(service)}};
}

}  // namespace

Json placement_json(const ModelService& service) {
  const PlacementInfo placement = service.engine().placement();
  return {{"device", placement.device},   {"mode", placement.mode_key},
          {"reason", placement.reason},   {"vram_bytes", placement.vram_bytes},
          {"n_slots", placement.n_slots}, {"predicted_decode", placement.predicted_decode}};
}

void add_health(Router& router, const EndpointContext& all) {
  router.get(
      "/health",
      [&all](const std::shared_ptr<Exchange>& exchange) {
        if (!all.host.is_loading()) return send_json(*exchange, {{"status", "ok"}});
        exchange->send({.status = 503,
                        .body = dump({{"status", "loading"}}),
                        .headers = {{"Retry-After", "1"}}});
      },
      Access::open);
  router.get("/props", [&all](const std::shared_ptr<Exchange>& exchange) {
    send_json(*exchange, props(*all.host.loaded()));
  });
  router.get("/metrics", [&all](const std::shared_ptr<Exchange>& exchange) {
    exchange->send({.content_type = "text/plain; version=0.0.4; charset=utf-8",
                    .body = all.metrics.text(all.host)});
  });
}

}  // namespace sluice::server
