// See json.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/json.h"

#include "base/error.h"
#include "server/api_error.h"
#include "text/json_depth.h"
#include "text/utf8.h"

namespace sluice::server {

Json parse_body(std::string_view body) {
  if (body.empty()) throw bad_request("", "the body is empty; expected a JSON object");
  const size_t n_valid = text::valid_utf8_length(body);
  if (n_valid < body.size()) {
    throw bad_request("", cat("the body is not UTF-8 at byte ", n_valid, "; JSON must be"));
  }
  if (text::json_depth(body) > kMostDepth) {
    throw bad_request(
        "", cat("the body nests deeper than ", kMostDepth, " levels; expected less than that"));
  }
  Json json;
  try {
    json = Json::parse(body);
  } catch (const Json::parse_error& error) {
    throw bad_request("", cat("the body is no JSON: there is a mistake at byte ", error.byte,
                              "; expected a JSON object"));
  } catch (const Json::exception&) {  // a number beyond all doubles
    throw bad_request("", "the body holds a number that is out of range; expected a JSON object");
  }
  if (!json.is_object()) {
    throw bad_request("", cat("the body is ", json.type_name(), "; expected a JSON object"));
  }
  return json;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sluice::server
