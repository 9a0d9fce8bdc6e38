// GET /api/sluice/state and /api/sluice/live: the state of the engine for the page, once or as a
// stream.
// SPDX-License-Identifier: Apache-2.0
#include "server/endpoints/endpoints.h"
#include "server/live_state.h"

namespace sluice::server {

void add_live(Router& router, LiveState& live) {
  router.get("/api/sluice/state", [&live](const std::shared_ptr<Exchange>& exchange) {
    send_json(*exchange, live.now());
  });
  router.get("/api/sluice/live",
             [&live](std::shared_ptr<Exchange> exchange) { live.follow(std::move(exchange)); });
}

}  // namespace sluice::server
