// Routing traces and profiles as files. A trace is CSV or our binary format, told apart by its
// first bytes; the binary one is read step by step, however long it is. Files that we write appear
// whole or not at all, and errors begin with the name of the file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/output_file.h"
#include "policy/trace/replay.h"
#include "policy/trace/routing_profile.h"
#include "policy/trace/routing_trace.h"
#include "policy/trace/trace_csv.h"

namespace sluice::cli {

// A trace on its way in, to be read once.
struct TraceInput {
  policy::TraceHeader header;
  policy::StepSource next;
  uint64_t n_steps = 0;  // approximately; 0: unknown
};

// Throws Errc::bad_file, also later from next(), for what is no trace or ends too early.
TraceInput open_trace(const std::string& path);

// As CSV where the name ends in .csv, else in the binary format.
class TraceOutput {
 public:
  TraceOutput(const std::string& path, const policy::TraceHeader& header);
  void write(const policy::RoutingStep& step);
  void commit();

 private:
  OutputFile file_;
  std::optional<policy::TraceWriter> binary_;
  std::optional<policy::TraceCsvWriter> csv_;
};

// Throws Errc::bad_file for what is no profile, or that of a model of another shape.
policy::RoutingProfile read_profile(const std::string& path, const policy::RoutingShape& shape);

void write_profile(const std::string& path, const policy::RoutingProfile& profile);

}  // namespace sluice::cli
