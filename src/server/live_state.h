// What the page shows while the model works: speed, plan and where the experts are. One thread
// looks at the engine now and then, and tells all who listen.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "server/http/exchange.h"
#include "server/json.h"
#include "server/model_host.h"

namespace sluice::server {

class LiveState {
 public:
  explicit LiveState(const ModelHost& host);  // outlives it
  ~LiveState();
  LiveState(const LiveState&) = delete;
  LiveState& operator=(const LiveState&) = delete;

  // Of the model that is loaded; without one, as it was last, at rest.
  Json now() const;
  // Sends the state, once a second or, while something runs, four times, until the client leaves.
  void follow(std::shared_ptr<Exchange> exchange);
  void end();  // of all streams; no new ones

 private:
  struct Listener {
    std::shared_ptr<Exchange> exchange;
    std::shared_ptr<std::atomic<bool>> is_gone;  // shared: the connection sets it whenever it ends
  };
  // Tokens per second between two looks.
  struct Rates {
    double decode = 0.0, prefill = 0.0;
  };

  void run();
  void look();
  Json state() const;
  static Json state_of(const ModelService& service, const Rates& rates);

  const ModelHost& host_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::vector<Listener> listeners_;
  Rates rates_;
  EngineStats last_;
  std::string last_name_;  // of the model that these are of
  mutable Json last_state_;
  std::chrono::steady_clock::time_point last_time_;
  std::thread thread_;
};

// For the page: bytes 0 (RAM), 1 (VRAM) or 2 (arriving), and 0 to 255 by the logarithm of heat.
Json map_json(const ExpertMap& map);
std::string base64(std::span<const uint8_t> bytes);

}  // namespace sluice::server
