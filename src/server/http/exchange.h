// One request and its answer, as a handler sees them: no sockets. An answer is sent whole, or as a
// stream of bytes that goes out while it is made. All members may be called from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::server {

struct HttpRequest {
  std::string method;                          // "GET"
  std::string path;                            // "/v1/models", as it was sent, without the query
  std::string query;                           // what follows '?'
  std::map<std::string, std::string> headers;  // names in lower case; the first of several
  std::string body;

  // Empty where there is none. `name` is in lower case.
  std::string_view header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
  }
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // beside those of HTTP itself
};

class Exchange {
 public:
  explicit Exchange(HttpRequest request) : request_(std::move(request)) {}
  // Whoever lets go of an exchange without an answer makes it an error 500.
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const HttpRequest& request() const { return request_; }

  // The whole answer. Once, and not after begin_stream().
  virtual void send(HttpResponse response) = 0;

  // An answer in pieces: its head, with the first bytes in its body; then any number of writes.
  // What a client does not read in time is kept, up to a limit; then the client counts as gone.
  virtual void begin_stream(HttpResponse head) = 0;
  virtual void write(std::string bytes) = 0;
  virtual void end_stream() = 0;

  // Calls `gone`, once, if the client goes away before its answer is complete; soon, if it has.
  virtual void on_gone(std::function<void()> gone) = 0;

  // For the log and the metrics: the path as the table of routes has it, never as it was sent.
  virtual void set_route(std::string_view route) = 0;

 private:
  HttpRequest request_;
};

}  // namespace sluice::server
