// HTTP/1.1 on a few threads: accepts connections, reads requests within limits and deadlines, hands
// each to one handler, and writes the answers. Knows no API. It is made with Boost.Beast, of which
// nothing shows here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/http/exchange.h"

namespace sluice::server {

struct HttpLimits {
  size_t header_bytes = 16 << 10;
  size_t body_bytes = 16 << 20;
  size_t pending_bytes = 8 << 20;  // of an answer that the client has not read yet
  int n_connections = 1024;        // at the same time; more are closed at once
  // For a whole request to arrive, and for the client to take any part of an answer.
  std::chrono::milliseconds receive_time{30'000};
  std::chrono::milliseconds idle_time{75'000};  // between two requests
  std::chrono::milliseconds send_time{30'000};
  std::chrono::milliseconds drain_time{30'000};  // for running answers, once asked to end
};

// How a request ended, for logs and metrics: nothing in it was written by the client.
struct RequestRecord {
  std::string method;
  std::string route;  // empty: none was found
  int status = 0;     // 0: the client was gone before there was one
  double seconds = 0.0;
  bool was_gone = false;  // the client left before its answer was complete
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: any that is free
  int n_threads = 4;
  HttpLimits limits = {};
  std::function<void(std::shared_ptr<Exchange>)> handle;  // must not throw
  // Makes the body of an answer that no handler saw: a request too large or no HTTP at all.
  std::function<HttpResponse(int status, const std::string& message)> refuse;
  // Header lines for the answer to a request, whoever makes it.
  std::function<std::vector<std::pair<std::string, std::string>>(const HttpRequest&)> headers = {};
  std::function<void(const RequestRecord&)> on_done = {};
  std::function<void()> on_drain = {};  // asked to end: new requests find draining() true
};

class HttpServer {
 public:
  // Listens from here on. Throws Errc::bad_request where it cannot.
  explicit HttpServer(HttpOptions options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;

  // Serves until SIGTERM, SIGINT or stop(), and then until the running answers are complete or
  // drain_time is over. A second signal ends the program.
  void run();
  void stop();  // from any thread
  bool draining() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::server
