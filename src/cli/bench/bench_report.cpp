// See bench_report.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/bench_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/units.h"
#include "cli/experts/expert_stats_table.h"
#include "cli/terminal/terminal_text.h"
#include "gguf/in_quotes.h"

namespace sluice::cli {
namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
constexpr double kWarm = 0.99;  // a stray page or two says nothing
constexpr double kCold = 0.01;

// Of tokens/s over the repeats.
struct Summary {
  double mean = 0.0;
  double deviation = 0.0;  // of a sample; 0 for a single one
  double median = 0.0;
  double min = 0.0;
  double max = 0.0;
};

Summary summary_of(const BenchTest& test) {
  std::vector<double> rates;
  for (const double s : test.seconds) rates.push_back(test.n_tokens / s);
  std::ranges::sort(rates);
  const size_t n = rates.size();
  Summary out{.median = (rates[(n - 1) / 2] + rates[n / 2]) / 2.0,
              .min = rates.front(),
              .max = rates.back()};
  out.mean = std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(n);
  double squares = 0.0;
  for (const double rate : rates) squares += (rate - out.mean) * (rate - out.mean);
  if (n > 1) out.deviation = std::sqrt(squares / static_cast<double>(n - 1));
  return out;
}

// What the median means for the machine: bytes in decode, operations in prefill.
struct Use {
  double per_token = 0.0;   // bytes, or multiply-adds
  double per_second = 0.0;  // bytes, or operations
  double share = 0.0;       // of what was measured as the most
};

Use use_of(const BenchReport& report, const BenchRun& run, const BenchTest& test, double median) {
  Use use;
  if (test.kind == BenchKind::decode) {
    use.per_token = report.cost.decode_bytes(test.n_tokens, test.depth);
    use.per_second = median * use.per_token;
    use.share = use.per_second / run.read_bytes();
  } else {
    use.per_token = report.cost.prefill_multiply_adds(test.n_tokens);
    use.per_second = 2.0 * median * use.per_token;
    use.share = use.per_second / run.int8_ops();
  }
  return use;
}

const char* kind_name(BenchKind kind) { return kind == BenchKind::prefill ? "prefill" : "decode"; }

const char* pages_name(double cached_share) {
  return cached_share >= kWarm ? "warm" : cached_share <= kCold ? "cold" : "partly warm";
}

const char* weights_name(WeightMemory weights) {
  return weights == WeightMemory::copied ? "copied" : "mapped";
}

Json test_json(const BenchReport& report, const BenchRun& run, const BenchTest& test) {
  const Summary rate = summary_of(test);
  const Use use = use_of(report, run, test, rate.median);
  Json json = {{"kind", kind_name(test.kind)},
               {"n_tokens", test.n_tokens},
               {"depth", test.depth},
               {"tokens_per_second",
                {{"mean", rate.mean},
                 {"deviation", rate.deviation},
                 {"median", rate.median},
                 {"min", rate.min},
                 {"max", rate.max}}},
               {"seconds", test.seconds}};
  const bool is_decode = test.kind == BenchKind::decode;
  json[is_decode ? "bytes_per_token" : "multiply_adds_per_token"] = use.per_token;
  json[is_decode ? "gbps" : "tops"] = use.per_second / (is_decode ? kGiga : kTera);
  json["predicted_tokens_per_second"] = test.predicted;
  if (!run.on_device()) json[is_decode ? "share_of_read" : "share_of_int8"] = use.share;
  return json;
}

Json run_json(const BenchReport& report, const BenchRun& run) {
  Json tests = Json::array();
  for (const BenchTest& test : run.tests) tests.push_back(test_json(report, run, test));
  Json json = {{"n_threads", run.n_threads()},
               {"predicted_by", run.predicted_by},
               {"tests", std::move(tests)}};
  if (run.on_device()) {
    json["experts"] = expert_stats_json(run.placement, run.experts);
  } else {
    json.update({{"read_gbps", run.read_bytes() / kGiga},
                 {"read_gbps_before", run.before.read_bytes / kGiga},
                 {"read_gbps_after", run.after.read_bytes / kGiga},
                 {"int8_tops", run.int8_ops() / kTera},
                 {"int8_instruction", run.before.int8_instruction}});
  }
  return json;
}

template <typename... Args>
std::string text(const char* format, Args... args) {
  char buffer[128];
  std::snprintf(buffer, sizeof(buffer), format, args...);
  return buffer;
}

std::string head_line(const BenchReport& report) {
  const ModelInfo& model = report.model;
  return cat(one_line(std::filesystem::path(report.path).filename().string()), ": ",
             gguf::in_quotes(model.architecture), " ", gguf::in_quotes(model.name), ", ",
             format_bytes(model.file_bytes), ", ", weights_name(model.weights), " in ",
             text("%.2f", report.load_seconds), " s with pages ", pages_name(report.cached_share),
             text(" (%.0f %% cached%s)", 100.0 * report.cached_share,
                  report.was_dropped ? " after --cold" : ""));
}

std::string machine_line(const BenchReport& report, const BenchRun& run) {
  if (run.on_device()) {
    return cat(report.cpu, ", ", run.n_threads(), " threads on ", report.n_cores, " cores; sluice ",
               SLUICE_VERSION);
  }
  return cat(
      report.cpu, ", ", run.n_threads(), " threads on ", report.n_cores, " cores; reads ",
      text("%.1f GB/s (%.1f before, %.1f after); int8 %.2f TOPS (", run.read_bytes() / kGiga,
           run.before.read_bytes / kGiga, run.after.read_bytes / kGiga, run.int8_ops() / kTera),
      run.before.int8_instruction, "); sluice ", SLUICE_VERSION);
}

std::string cost_line(const BenchReport& report) {
  const BenchCost& cost = report.cost;
  return cat("a decoded token reads ", format_bytes(cost.weight_bytes), " of weights (",
             format_bytes(cost.expert_bytes),
             report.model.is_dense ? " of dense networks" : " of experts", ") and ",
             format_bytes(cost.kv_bytes), " of KV for each position");
}

using Row = std::vector<std::string>;

// On a device the most that this machine can do says nothing.
Row header_of(const BenchReport& report) {
  Row row = {"test",     "depth",     "threads", "tokens/s", "median",
             "min..max", "predicted", "/token",  "rate"};
  if (!report.runs.front().on_device()) row.push_back("of the most");
  return row;
}

Row row_of(const BenchReport& report, const BenchRun& run, const BenchTest& test) {
  const Summary rate = summary_of(test);
  const Use use = use_of(report, run, test, rate.median);
  const bool decode = test.kind == BenchKind::decode;
  Row row = {cat(kind_name(test.kind), " ", test.n_tokens),
             cat(test.depth),
             cat(run.n_threads()),
             text("%.1f ± %.1f", rate.mean, rate.deviation),
             text("%.1f", rate.median),
             text("%.1f..%.1f", rate.min, rate.max),
             text("%.1f", test.predicted),
             text(decode ? "%.1f MB" : "%.1f M mul-add", use.per_token / 1e6),
             decode ? text("%.1f GB/s", use.per_second / kGiga)
                    : text("%.3f TOPS", use.per_second / kTera)};
  if (!run.on_device()) {
    row.push_back(text(decode ? "%.0f %% of reads" : "%.0f %% of int8", 100.0 * use.share));
  }
  return row;
}

std::vector<Row> rows_of(const BenchReport& report) {
  std::vector<Row> rows = {header_of(report)};
  for (const BenchRun& run : report.runs) {
    for (const BenchTest& test : run.tests) rows.push_back(row_of(report, run, test));
  }
  return rows;
}

// On a screen: bytes that continue a character take no room.
size_t width(const std::string& cell) {
  return static_cast<size_t>(std::ranges::count_if(
      cell, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void print_lines(const BenchReport& report, const char* end) {
  std::printf("%s%s\n", head_line(report).c_str(), end);
  for (const BenchRun& run : report.runs) {
    std::printf("%s%s\n", machine_line(report, run).c_str(), end);
    if (run.on_device()) {
      std::printf("%s; %s%s\n", describe(run.placement).c_str(), run.placement.reason.c_str(), end);
    }
    std::printf("predicted by %s%s\n", run.predicted_by.c_str(), end);
  }
  if (!report.route_trace.empty()) {
    std::printf("routing from %s (%zu steps), not the model's own%s\n",
                one_line(report.route_trace).c_str(), report.n_route_steps, end);
  }
  std::printf("%s%s\n\n", cost_line(report).c_str(), end);
}

}  // namespace

Json bench_json(const BenchReport& report) {
  const ModelInfo& model = report.model;
  const BenchCost& cost = report.cost;
  Json runs = Json::array();
  for (const BenchRun& run : report.runs) runs.push_back(run_json(report, run));
  Json json = {{"version", SLUICE_VERSION},
               {"machine", {{"cpu", report.cpu}, {"n_cores", report.n_cores}}},
               {"model",
                {{"path", report.path},
                 {"file_bytes", model.file_bytes},
                 {"architecture", model.architecture},
                 {"name", model.name},
                 {"n_layers", model.n_layers},
                 {"n_experts", model.n_experts},
                 {"n_experts_used", model.n_experts_used},
                 {"weight_bytes_per_token", cost.weight_bytes},
                 {"expert_bytes_per_token", cost.expert_bytes},
                 {"kv_bytes_per_position", cost.kv_bytes},
                 {"layer_multiply_adds", cost.layer_multiply_adds},
                 {"output_multiply_adds", cost.output_multiply_adds}}},
               {"load",
                {{"seconds", report.load_seconds},
                 {"weights", weights_name(model.weights)},
                 {"pages", pages_name(report.cached_share)},
                 {"cached_share", report.cached_share},
                 {"dropped", report.was_dropped}}},
               {"n_ctx", report.session.n_ctx},
               {"prefill_chunk", report.runs.front().placement.prefill_chunk},
               {"seed", report.seed},
               {"runs", std::move(runs)}};
  if (!report.route_trace.empty()) {
    json["route_trace"] = {{"path", report.route_trace}, {"n_steps", report.n_route_steps}};
  }
  return json;
}

void print_bench(const BenchReport& report) {
  print_lines(report, "");
  const std::vector<Row> rows = rows_of(report);
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  for (const Row& row : rows) {
    std::string line = row[0] + std::string(widths[0] - width(row[0]), ' ');
    for (size_t i = 1; i < row.size(); ++i) {
      line += std::string(2 + widths[i] - width(row[i]), ' ') + row[i];
    }
    std::printf("%s\n", line.c_str());
  }
}

void print_bench_markdown(const BenchReport& report) {
  print_lines(report, "  ");  // two spaces: a new line
  std::vector<Row> rows = rows_of(report);
  Row rule(rows.front().size(), "---:");
  rule[0] = "---";
  rows.insert(rows.begin() + 1, std::move(rule));
  for (const Row& row : rows) {
    std::string line = "|";
    for (const std::string& cell : row) line += cat(" ", cell, " |");
    std::printf("%s\n", line.c_str());
  }
}

}  // namespace sluice::cli
