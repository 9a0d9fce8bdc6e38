// The keys that clients must show, if any were given. They are never printed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/exchange.h"

namespace sluice::server {

class ApiKeys {
 public:
  explicit ApiKeys(std::vector<std::string> keys);

  // Throws ApiError (401) where keys are needed and the request has none of them, as
  // "Authorization: Bearer KEY" or "X-Api-Key: KEY".
  void check(const HttpRequest& request) const;

  // Takes as long for a wrong key as for a right one of the same length, wherever they differ.
  bool knows(std::string_view key) const;

 private:
  std::vector<std::string> keys_;
};

// The keys in a text: one in a line; empty lines and those that begin with '#' are left out.
std::vector<std::string> keys_of(std::string_view text);

}  // namespace sluice::server
