// sluice bench: how fast a model reads a prompt and writes an answer, and how much of what the
// machine can do at most that is.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>

#include "base/error.h"
#include "cli/bench/bench_pages.h"
#include "cli/bench/bench_rates.h"
#include "cli/bench/bench_runner.h"
#include "cli/bench/route_trace.h"
#include "cli/command.h"
#include "cli/experts/expert_watch.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/model_options.h"
#include "cli/simulate/routing_shape.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/terminal_text.h"
#include "engine/machine/session_plan.h"
#include "gguf/model_file.h"
#include "model_file/shape.h"

namespace sluice::cli {
namespace {

// A list of numbers, and whether the user gave it.
struct Numbers {
  std::vector<int> values;
  CLI::Option* option = nullptr;

  bool given() const { return option->count() > 0; }
  void add_to(CLI::App& command, const char* name, const char* what, const CLI::Validator& range) {
    option = command.add_option(name, values, what)
                 ->delimiter(',')
                 ->allow_extra_args(false)
                 ->transform(range);
  }
};

struct BenchFlags {
  ModelOptions model;
  ExpertWatchFlags experts;
  std::string route_trace;
  Numbers prefill{{256, 1024}};
  Numbers decode{{64}};
  Numbers depths{{0, 4096}};
  Numbers threads{{0}};
  int n_repeats = 5;
  uint64_t seed = 0;
  bool cold = false;
  bool json = false;
  bool markdown = false;
};

// All lengths at all depths. What does not fit is refused where the user asked for it, and left out
// where it is only a default.
std::vector<BenchTest> tests_of(const BenchFlags& flags, int n_ctx_train) {
  const int n_ctx = flags.model.session.n_ctx > 0 ? flags.model.session.n_ctx : n_ctx_train;
  std::vector<BenchTest> tests;
  const auto add = [&](BenchKind kind, const Numbers& lengths, int depth) {
    for (const int n : lengths.values) {
      if (n == 0) continue;
      if (int64_t{depth} + n <= n_ctx) {
        tests.push_back({.kind = kind, .n_tokens = n, .depth = depth});
      } else if (lengths.given() && (flags.depths.given() || depth == 0)) {
        throw Error(Errc::bad_request,
                    cat(n, " tokens at depth ", depth, " do not fit into the context of ", n_ctx,
                        "; give smaller lengths (-p, -n) or depths (-d), or a larger context "
                        "(-c, trained for ",
                        n_ctx_train, ")"));
      }
    }
  };
  std::vector<int> depths = flags.depths.values;
  std::ranges::sort(depths);
  for (const int depth : depths) {
    add(BenchKind::prefill, flags.prefill, depth);
    add(BenchKind::decode, flags.decode, depth);
  }
  if (tests.empty()) {
    throw Error(Errc::bad_request,
                cat("nothing to measure; give lengths above 0 (-p, -n) that fit into the context "
                    "of ",
                    n_ctx));
  }
  return tests;
}

int context_for(const std::vector<BenchTest>& tests) {
  int n_ctx = 0;
  for (const BenchTest& test : tests) n_ctx = std::max(n_ctx, test.depth + test.n_tokens);
  return n_ctx;
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

// The whole file, whoever looks: what is read only when it is needed would be timed as decode.
Model load_model(const std::string& path, int n_threads, WeightMemory weights) {
  ProgressBar bar("loading");
  return Model::load(path, {.n_threads = n_threads, .weights = weights, .progress = bar.updater()});
}

// Instead of the model's own routing.
std::optional<RouteTrace> take_route_trace(const BenchFlags& flags, BenchReport& report) {
  if (flags.route_trace.empty()) return {};
  RouteTrace trace(flags.route_trace, read_routing_shape(report.path), report.session.n_ctx);
  report.route_trace = trace.path();
  report.n_route_steps = trace.n_steps();
  return trace;
}

// Each at its own depth.
void add_predictions(const BenchForecast& on_cpu, BenchRun& run) {
  const PlacementInfo& placement = run.placement;
  for (size_t i = 0; i < run.tests.size(); ++i) {
    BenchTest& test = run.tests[i];
    test.predicted = run.on_device() ? placement.predict(test.kind == BenchKind::prefill,
                                                         test.n_tokens, test.depth)
                                     : on_cpu.tokens_per_second[i];
  }
  run.predicted_by = !run.on_device()     ? cat("what was known before this run: ", on_cpu.rates)
                     : placement.is_dense ? "what a token reads, by where it is"
                                          : cat("the locality of routing, ", placement.locality);
}

// Before anything is predicted or measured: it is the device's.
void choose_device(const gguf::ModelFile& file, int n_threads, SessionOptions& session) {
  if (session.device.kind != DeviceKind::automatic) return;
  const engine::DeviceChoice choice = engine::choose_device(
      {.file = file, .options = session, .n_threads = n_threads}, nullptr, find_gpus());
  session.device.kind = choice.kind;
  if (choice.has_gpu && !choice.reason.empty()) print_warning(choice.reason);
}

BenchReport measure(const BenchFlags& flags) {
  if (flags.threads.values.size() > 1 && (flags.experts.table || !flags.experts.json.empty())) {
    throw Error(Errc::bad_request,
                "--expert-stats is about one run; expected one number of threads (-t), or --json, "
                "which has it for each");
  }
  BenchReport report{.path = flags.model.file(),
                     .session = flags.model.session,
                     .seed = flags.seed,
                     .cpu = cpu_name(),
                     .n_cores = engine::this_machine().n_cores,
                     .was_dropped = flags.cold};
  BenchPlan plan{.n_repeats = flags.n_repeats, .seed = flags.seed};
  policy::ModelShape shape;
  std::vector<BenchForecast> forecasts;  // by the number of threads
  {
    const gguf::ModelFile file = gguf::ModelFile::open(report.path);
    shape = model_file::read_shape(file);
    report.cost = cost_of(shape, flags.model.session);
    plan.tests = tests_of(flags, shape.n_ctx_train);
    flags.model.warn_of_context(file);
    if (report.session.n_ctx == 0) report.session.n_ctx = context_for(plan.tests);
    choose_device(file, flags.threads.values.front(), report.session);
    plan.session = report.session;
    const std::vector<std::string> paths = file.paths();
    if (flags.cold) drop_from_cache(paths);
    report.cached_share = cached_share(paths);
    for (const int n_threads : flags.threads.values) {
      forecasts.push_back(forecast_tests(file, plan, n_threads));
    }
  }
  const std::optional<RouteTrace> route = take_route_trace(flags, report);
  if (route) {
    plan.session.reroute = [&](int pos, int layer, std::span<int32_t> experts) {
      route->apply(pos, layer, experts);
    };
  }
  ExpertWatch watch(flags.experts, report.path, plan.session);
  for (const int n_threads : flags.threads.values) {
    const bool is_first = report.runs.empty();  // the others find the pages warm
    report.runs.push_back(run_bench(plan, n_threads, [&](int n) {
      const auto start = std::chrono::steady_clock::now();
      Model model = load_model(report.path, n, flags.model.weights);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (is_first) report.load_seconds = took.count();
      report.model = model.info();
      return model;
    }));
    add_predictions(forecasts[report.runs.size() - 1], report.runs.back());
  }
  watch.finish(stderr, report.runs.back().placement, report.runs.back().experts);
  keep_rates(report, shape);
  return report;
}

void run(const BenchFlags& flags) {
  const BenchReport report = measure(flags);
  if (flags.json) {
    std::printf("%s\n", dump(bench_json(report), 2).c_str());
  } else if (flags.markdown) {
    print_bench_markdown(report);
  } else {
    print_bench(report);
  }
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "measure the speed of prefill and decode");
  auto flags = std::make_shared<BenchFlags>();  // shared: lives in the callback, after this returns
  flags->model.name = kDefaultModel;
  flags->model.device.profile = kNoProfile;  // random tokens are not text to learn from
  flags->model.add_to(*command);
  flags->experts.add_to(*command);
  command->add_option("--route-trace", flags->route_trace,
                      "experts as in this trace (of simulate, or --trace-out), not as routed");
  command->get_option("--profile")->description("routing profile to load and to add to (none)");
  command->remove_option(command->get_option("--threads"));  // here a list
  command->get_option("--ctx-size")->description("context in tokens (0: what the tests need)");
  flags->prefill.add_to(*command, "-p,--n-prompt", "prompt lengths; 0: none (256,1024)",
                        at_least(0));
  flags->decode.add_to(*command, "-n,--n-gen", "tokens to decode; 0: none (64)", at_least(0));
  flags->depths.add_to(*command, "-d,--depth", "tokens in the context before (0,4096)",
                       at_least(0));
  flags->threads.add_to(*command, "-t,--threads",
                        "CPU threads, or several: 1,2 (0: one per physical core)",
                        whole_number(0, 1024));
  command->add_option("-r,--repeats", flags->n_repeats, "timed repeats of each test (5)")
      ->transform(at_least(1));
  command->add_option("--seed", flags->seed, "seed of the random tokens (0)")
      ->transform(whole_number(0, std::numeric_limits<int64_t>::max()));
  command->add_flag("--cold", flags->cold, "load with the file dropped from the page cache");
  CLI::Option* json = command->add_flag("--json", flags->json, "print JSON");
  command->add_flag("--md", flags->markdown, "print a Markdown table")->excludes(json);
  command->callback([flags] { run(*flags); });
}

}  // namespace sluice::cli
