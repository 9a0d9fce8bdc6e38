// Recorded routing as CSV: `#` lines that name the model and the bytes of an expert in
// every layer, a line of column names, then one row per routed expert:
//   # model=... n_layer=48 n_expert=128 n_expert_used=6
//   # layer=0 expert_bytes=3059712 ...
//   turn,phase,step,layer,slot,expert,weight,...
// phase is 0 (prompt) or 1 (decode), slot the rank in the top-k. Rows may come in any order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "policy/trace/routing_trace.h"

namespace sluice::policy {

// Throws Errc::bad_file, with the number of the line.
RoutingTrace parse_trace_csv(std::string_view text);

// The same, written as it comes. A prompt behind decoded tokens begins a new turn. Token ids are
// not part of it.
class TraceCsvWriter {
 public:
  explicit TraceCsvWriter(const TraceHeader& header);
  // What comes next of the file.
  const std::string& head() const { return head_; }
  std::string rows(const RoutingStep& step);

 private:
  std::string head_;
  Phase phase_ = Phase::prefill;
  int turn_ = 0;
  int64_t step_ = 0;
};

}  // namespace sluice::policy
