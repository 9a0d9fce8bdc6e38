// JSON as text. Paths and names from files need not be UTF-8, JSON must: what is not is replaced.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sluice::cli {

using Json = nlohmann::ordered_json;

inline std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sluice::cli
