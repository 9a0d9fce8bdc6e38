// GET / and the other files of the web page, which are part of the program (page.h).
// SPDX-License-Identifier: Apache-2.0
#include "server/page.h"

#include "server/endpoints/endpoints.h"

namespace sluice::server {
namespace {

void send_asset(Exchange& exchange, const Asset& asset) {
  const HttpRequest& request = exchange.request();
  HttpResponse response;
  response.content_type = asset.content_type;
  response.headers = {{"Content-Security-Policy", std::string(page_csp())},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-cache"},
                      {"ETag", std::string(asset.etag)},
                      {"Vary", "Accept-Encoding"}};
  const bool is_held = request.header("if-none-match") == asset.etag;
  const bool takes_gzip = request.header("accept-encoding").find("gzip") != std::string_view::npos;
  if (is_held) {
    response.status = 304;
  } else if (takes_gzip && !asset.gzip.empty()) {
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.body = asset.gzip;
  } else {
    response.body = asset.bytes;
  }
  exchange.send(std::move(response));
}

}  // namespace

void add_page(Router& router) {
  const auto serve = [](const std::shared_ptr<Exchange>& exchange) {
    const std::optional<Asset> asset = page_asset(exchange->request().path);
    if (!asset)
      throw ApiError(404, "there is nothing at this path; docs/serve.md lists what there is");
    send_asset(*exchange, *asset);
  };
  router.get("/", serve, Access::open);
  router.get("/*", serve, Access::open);
}

}  // namespace sluice::server
