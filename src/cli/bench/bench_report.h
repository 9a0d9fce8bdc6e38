// What a benchmark found, and its three forms: a table for people, Markdown, and JSON with
// everything.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "cli/bench/bench_cost.h"
#include "cli/files/json_text.h"
#include "sluice/sluice.h"

namespace sluice::cli {

enum class BenchKind { prefill, decode };

// One length at one depth, measured several times.
struct BenchTest {
  BenchKind kind = BenchKind::prefill;
  int n_tokens = 0;
  int depth = 0;                // tokens in the context before
  std::vector<double> seconds;  // of each repeat
  double predicted = 0.0;       // tokens/s, by what was known before
};

// What the threads of a run can do at most.
struct MachineSpeed {
  int n_threads = 0;
  double read_bytes = 0.0;  // bytes/s
  double int8_ops = 0.0;    // operations/s
  std::string int8_instruction;
};

// All tests with one number of threads. Of what is measured before and after them the higher
// counts: other programs can only have slowed it down.
struct BenchRun {
  MachineSpeed before;
  MachineSpeed after;
  std::vector<BenchTest> tests;
  PlacementInfo placement;  // without a mode where there is no device
  ExpertStats experts;      // of all tests

  std::string predicted_by;  // for people: what the predictions rest on

  bool on_device() const { return !placement.mode.empty(); }
  int n_threads() const { return before.n_threads; }
  double read_bytes() const { return std::max(before.read_bytes, after.read_bytes); }
  double int8_ops() const { return std::max(before.int8_ops, after.int8_ops); }
};

struct BenchReport {
  std::string path;
  ModelInfo model;
  BenchCost cost;
  SessionOptions session;
  uint64_t seed = 0;
  std::string route_trace;   // where the routing is from, if it is not the model's own
  size_t n_route_steps = 0;  // of it

  std::string cpu;
  int n_cores = 0;  // that this process may use

  double load_seconds = 0.0;
  double cached_share = 0.0;  // of the file, before it was loaded
  bool was_dropped = false;   // from the page cache, on request

  std::vector<BenchRun> runs;
};

Json bench_json(const BenchReport& report);
void print_bench(const BenchReport& report);
void print_bench_markdown(const BenchReport& report);

}  // namespace sluice::cli
