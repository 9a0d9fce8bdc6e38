// What the server counts, and its text for Prometheus. The names are in docs/metrics.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "server/http/http_server.h"
#include "server/model_host.h"

namespace sluice::server {

// Seconds, in buckets that grow by a factor of about two. Any thread may observe.
class Histogram {
 public:
  void observe(double seconds);
  // Its lines for Prometheus.
  std::string text(std::string_view name, std::string_view help) const;

 private:
  static constexpr std::array<double, 14> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                     0.25,  0.5,    1,     2.5,  5,     10,   30};
  mutable std::mutex mutex_;
  std::array<uint64_t, kBounds.size() + 1> counts_ = {};
  double sum_ = 0.0;
};

class Metrics {
 public:
  Histogram first_token;  // from the request to its first token
  Histogram token_gap;    // between two tokens of an answer
  Histogram request;      // from the first byte of a request to the end of its answer

  void on_request(const RequestRecord& record);
  // All of it, and what the engine of the model that is loaded counts.
  std::string text(const ModelHost& host) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, std::string, int>, uint64_t> requests_;  // method, route, status
  uint64_t n_gone_ = 0;
};

}  // namespace sluice::server
