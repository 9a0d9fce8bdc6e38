// See api_error.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/api_error.h"

namespace sluice::server {
namespace {

// How OpenAI and Anthropic name a status.
const char* openai_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 501:
      return "not_supported_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

const char* anthropic_type(int status) {
  if (status == 413) return "request_too_large";
  if (status == 503) return "overloaded_error";
  return status >= 500 ? "api_error" : openai_type(status);
}

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

Api api_of(std::string_view path) {
  if (path.starts_with("/v1/messages")) return Api::anthropic;
  if (path.starts_with("/api/") && !path.starts_with("/api/sluice/")) return Api::ollama;
  return Api::openai;
}

Json error_json(Api api, const ApiError& error) {
  const std::string message = error.what();
  switch (api) {
    case Api::anthropic: {
      Json inside = {{"type", anthropic_type(error.status())}, {"message", message}};
      if (!error.code().empty()) inside["details"] = {{"error_code", error.code()}};
      return {{"type", "error"}, {"error", inside}};
    }
    case Api::ollama:
      return {{"error", message}};
    case Api::openai:
      break;
  }
  return {{"error",
           {{"message", message},
            {"type", openai_type(error.status())},
            {"param", or_null(error.param())},
            {"code", or_null(error.code())}}}};
}

HttpResponse error_response(Api api, const ApiError& error) {
  HttpResponse response;
  response.status = error.status();
  response.body = dump(error_json(api, error));
  if (error.status() == 429 || error.status() == 503) {
    response.headers.emplace_back("Retry-After", "1");
  }
  if (error.status() == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

ApiError to_api_error(const Error& error) {
  switch (error.code()) {
    case Errc::bad_request:
      return ApiError(400, error.what());
    case Errc::busy:
      return ApiError(429, error.what());
    case Errc::shutting_down:
      return ApiError(503, error.what());
    default:
      return ApiError(500, "the model could not answer; the server's log says why");
  }
}

}  // namespace sluice::server
