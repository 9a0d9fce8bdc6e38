// `sluice serve`: the model over HTTP. All that other folders see of the server.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/model_source.h"
#include "sluice/engine.h"

namespace sluice::server {

struct ServerOptions {
  EngineOptions engine;
  ModelSource models;                // that can be loaded besides the first
  bool swap = false;                 // requests choose their model by its name
  std::optional<double> keep_alive;  // seconds that an unused model stays loaded; none: for ever
  std::string prefix_folder = {};    // where prefixes are saved; empty: nowhere
  std::string host = "127.0.0.1";
  uint16_t port = 0;                  // 0: any that is free
  std::vector<std::string> api_keys;  // none: everybody may ask
  std::vector<std::string> origins;   // of web pages that may call, besides its own; "*": all
  size_t max_body_bytes = 16 << 20;
  double receive_seconds = 30.0;  // for a request to arrive, and for any part of an answer to go
  double drain_seconds = 30.0;    // for running answers to end, once asked to stop
  // One line for each fault and, with log_requests, for each request: nothing in it was written by
  // a client. Called by a thread of its own, so it may block; perhaps after the server is gone.
  std::function<void(const std::string& line)> log = {};
  bool log_requests = true;
};

class Server {
 public:
  // Loads the model into an engine and listens. Throws Error.
  Server(const Model& model, const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const;
  PlacementInfo placement() const;
  std::vector<std::string> warnings() const;  // about the model's text, and about its placement

  // Until SIGTERM or SIGINT, and then until all answers are complete.
  void run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One key in a line of the text; empty lines, and those that begin with '#', are left out.
std::vector<std::string> api_keys_of(const std::string& text);

}  // namespace sluice::server
