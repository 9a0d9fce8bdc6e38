// The table of routes: which handler a method and a path belong to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/exchange.h"

namespace sluice::server {

// Answers, or throws ApiError or Error, which become the answer.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

// open: needs no API key.
enum class Access { keyed, open };

struct Route {
  std::string method;
  std::string path;  // a '*' at its end stands for anything but nothing
  Handler handler;
  Access access = Access::keyed;
};

class Router {
 public:
  void add(Route route) { routes_.push_back(std::move(route)); }
  void get(const std::string& path, Handler handler, Access access = Access::keyed) {
    add({"GET", path, std::move(handler), access});
  }
  void post(const std::string& path, Handler handler) { add({"POST", path, std::move(handler)}); }

  // Throws ApiError: 404, or 405 where the very path is known with another method.
  const Route& find(std::string_view method, std::string_view path) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace sluice::server
