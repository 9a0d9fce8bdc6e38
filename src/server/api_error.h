// What goes wrong with a request, and how each API says it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "server/http/exchange.h"
#include "server/json.h"
#include "sluice/error.h"

namespace sluice::server {

class ApiError : public std::runtime_error {
 public:
  // param: the field at fault, such as "messages[2].role"; empty: none. code: OpenAI's word for it,
  // such as "model_not_found"; empty: none.
  ApiError(int status, const std::string& message, std::string param = "", std::string code = "")
      : std::runtime_error(message),
        status_(status),
        param_(std::move(param)),
        code_(std::move(code)) {}
  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }

 private:
  int status_;
  std::string param_, code_;
};

inline ApiError bad_request(std::string param, const std::string& message) {
  return ApiError(400, message, std::move(param));
}

// The APIs whose shapes we speak; each path belongs to one.
enum class Api { openai, anthropic, ollama };
Api api_of(std::string_view path);

// {"error": {"message", "type", "param", "code"}}, {"error": "message"} or
// {"type": "error", "error": {"type", "message", "details": {"error_code"}}}, details where there
// is a code
Json error_json(Api api, const ApiError& error);
HttpResponse error_response(Api api, const ApiError& error);

// An Error of the engine or the text library. What is the server's own fault says no more than
// that: its text is for the log.
ApiError to_api_error(const Error& error);

}  // namespace sluice::server
