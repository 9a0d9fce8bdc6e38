// Which web pages may call: those of this server, and those of origins that were named (CORS). A
// browser says where a page came from; other programs mostly say nothing, and pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/http/exchange.h"

namespace sluice::server {

class OriginRule {
 public:
  // "*" allows all.
  explicit OriginRule(std::vector<std::string> allowed) : allowed_(std::move(allowed)) {}

  // Throws ApiError (403) for a page from elsewhere.
  void check(const HttpRequest& request) const;
  // Lets the page read the answer; nothing for those that need no leave.
  std::vector<std::pair<std::string, std::string>> headers(const HttpRequest& request) const;
  // The answer to a browser that asks beforehand (OPTIONS).
  HttpResponse preflight(const HttpRequest& request) const;

 private:
  bool is_allowed(std::string_view origin) const;

  std::vector<std::string> allowed_;
};

}  // namespace sluice::server
