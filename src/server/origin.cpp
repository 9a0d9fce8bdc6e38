// See origin.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/origin.h"

#include <algorithm>

#include "server/api_error.h"

namespace sluice::server {
namespace {

// "http://127.0.0.1:8080" is the same place as the host "127.0.0.1:8080".
bool is_own(std::string_view origin, std::string_view host) {
  const size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && origin.substr(scheme + 3) == host;
}

}  // namespace

bool OriginRule::is_allowed(std::string_view origin) const {
  return std::ranges::any_of(allowed_,
                             [&](const std::string& a) { return a == "*" || a == origin; });
}

void OriginRule::check(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || is_own(origin, request.header("host")) || is_allowed(origin)) return;
  throw ApiError(403, "pages of other origins may not call this server; --cors allows one");
}

std::vector<std::pair<std::string, std::string>> OriginRule::headers(
    const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || !is_allowed(origin)) return {};
  return {{"Access-Control-Allow-Origin", std::string(origin)}, {"Vary", "Origin"}};
}

HttpResponse OriginRule::preflight(const HttpRequest& request) const {
  check(request);
  HttpResponse response{.status = 204, .content_type = ""};
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  response.headers.emplace_back("Access-Control-Allow-Headers",
                                "Authorization, Content-Type, X-Api-Key");
  response.headers.emplace_back("Access-Control-Max-Age", "600");
  return response;
}

}  // namespace sluice::server
