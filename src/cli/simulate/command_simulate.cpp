// sluice simulate: what each cache policy would do with recorded or generated routing, on a machine
// that need not be there.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/output_file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/files/model_registry.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/hub_flags.h"
#include "cli/simulate/report/page.h"
#include "cli/simulate/routing_shape.h"
#include "cli/simulate/simulate_flags.h"
#include "cli/simulate/simulate_report.h"
#include "cli/simulate/simulate_table.h"
#include "cli/simulate/trace_file.h"
#include "cli/terminal/progress_bar.h"
#include "policy/trace/trace_generator.h"

namespace sluice::cli {
namespace {

constexpr uint64_t kMostTraceBytes = 8 * kGiB;  // held in memory, for Belady

struct SimulateFlags {
  std::string trace;
  policy::GeneratorOptions generator;
  std::string model;
  std::string policies;
  std::string budgets = "3,6.25,12.5,18.75,25,37.5,50,60";
  MachineFlags machines;
  std::optional<double> copy_cost;
  std::string profile;
  std::string write_profile;
  std::string write_trace;
  std::string report;
  bool json = false;
};

// Qwen3-30B-A3B in Q4_K_M, where the outer layers and every third one have larger experts.
policy::RoutingShape qwen3_30b_shape() {
  policy::RoutingShape shape = policy::generator_shape(48, 128, 8, 2'654'208);
  for (size_t l = 0; l < 48; ++l) {
    if (l < 6 || l >= 42 || l % 3 == 2) shape.expert_bytes[l] = 3'059'712;
  }
  return shape;
}

TraceInput generated_trace(policy::GeneratorOptions options, const std::string& model) {
  options.shape = model.empty() ? qwen3_30b_shape() : read_routing_shape(model);
  // shared: a std::function can be copied
  const auto generator = std::make_shared<policy::TraceGenerator>(options);
  policy::TraceHeader header = generator->header();
  header.model = model.empty() ? "Qwen3-30B-A3B Q4_K_M" : model;
  return {header, [generator](policy::RoutingStep& step) { return generator->next(step); },
          static_cast<uint64_t>(options.n_prefill) + static_cast<uint64_t>(options.n_decode)};
}

// All of it, or an error that says how much that would be.
policy::RoutingTrace hold(const TraceInput& input, const policy::StepSource& next) {
  const policy::RoutingShape& shape = input.header.shape;
  const auto n_layers = static_cast<uint64_t>(shape.n_layers);
  const auto n_routed = n_layers * static_cast<uint64_t>(shape.n_experts_used);
  const uint64_t step_bytes = sizeof(policy::RoutingStep) + (n_layers + 1) * sizeof(int) +
                              n_routed * (sizeof(policy::RoutedExpert) + sizeof(int));
  policy::RoutingTrace trace{input.header, {}};
  const auto require_room = [&](uint64_t n_steps) {
    if (n_steps <= kMostTraceBytes / step_bytes) return;
    throw Error(Errc::out_of_memory,
                cat("belady must hold the whole trace, ", n_steps, " or more steps, in ",
                    format_bytes(n_steps * step_bytes), "; expected at most ",
                    format_bytes(kMostTraceBytes),
                    ": leave it out of --policy (and --report), or take a shorter trace"));
  };
  require_room(input.n_steps);
  policy::RoutingStep step;
  while (next(step)) {
    require_room(trace.steps.size() + 1);
    trace.steps.push_back(step);
  }
  return trace;
}

// The profile to go on with: what stands in the file, or an empty one.
policy::RoutingProfile profile_to_update(const std::string& path,
                                         const policy::RoutingShape& shape) {
  if (std::filesystem::is_regular_file(path)) return read_profile(path, shape);
  return {shape.n_layers, shape.n_experts};
}

void write_report(OutputFile& file, const Json& document) {
  const std::string page = report::page(dump(document));
  file.append(std::as_bytes(std::span(page)));
  file.commit();
}

void run(const SimulateFlags& flags) {
  SimulateOptions options{parse_contenders(flags.policies), parse_budgets(flags.budgets),
                          flags.machines.all(), flags.copy_cost, nullptr};
  const bool generates = flags.trace.empty();
  const TraceInput input =
      generates ? generated_trace(flags.generator, flags.model) : open_trace(flags.trace);
  const policy::RoutingShape& shape = input.header.shape;

  std::optional<policy::RoutingProfile> profile, updated;
  if (!flags.profile.empty()) {
    options.profile = &profile.emplace(read_profile(flags.profile, shape));
  }
  if (!flags.write_profile.empty()) updated = profile_to_update(flags.write_profile, shape);
  // What takes long to gather is opened now: a place that cannot be written shows at once.
  std::optional<OutputFile> report_file;
  if (!flags.report.empty()) report_file.emplace(flags.report);
  std::optional<TraceOutput> written;
  if (!flags.write_trace.empty()) written.emplace(flags.write_trace, input.header);

  TraceSummary summary(input.header,
                       generates ? cat("generated, seed ", flags.generator.seed) : flags.trace);
  policy::StepSource next = [&](policy::RoutingStep& step) {
    if (!input.next(step)) return false;
    summary.add(step);
    if (written) written->write(step);
    return true;
  };
  std::optional<policy::RoutingTrace> whole;
  if (options.needs_whole_trace() || report_file) {
    next = policy::steps_of(whole.emplace(hold(input, next)));
  }

  std::vector<SimulatedRow> rows;
  Json document;
  {
    ProgressBar bar("replaying", "steps");
    rows = simulate(shape, next, input.n_steps, whole ? &*whole : nullptr, options, bar.updater());
    if (summary.n_decode == 0) {
      throw Error(Errc::bad_request, cat(summary.source, ": ", summary.n_prefill,
                                         " prompt tokens and none decoded; expected some to count "
                                         "hits of"));
    }
    if (report_file) document = report_document(summary, *whole, options, bar.updater());
  }
  if (written) written->commit();
  if (updated) {
    updated->add_run(summary.uses, summary.n_steps());
    write_profile(flags.write_profile, *updated);
  }
  if (report_file) write_report(*report_file, document);
  if (flags.json) {
    std::printf("%s\n", dump(rows_json(rows), 2).c_str());
  } else {
    print_rows(summary, rows);
  }
}

}  // namespace

void add_simulate(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("simulate", "replay routing against cache policies, budgets and machines");
  auto flags =
      std::make_shared<SimulateFlags>();  // shared: lives in the callback, after this returns
  policy::GeneratorOptions& generator = flags->generator;
  CLI::Option* trace =
      command->add_option("--trace", flags->trace, "recorded routing: CSV, or as sluice writes it");
  CLI::Option* generate =
      command->add_option("--generate", generator.n_decode, "instead, generate so many tokens")
          ->transform(whole_number(1, 1000000000))
          ->excludes(trace);
  CLI::Option* model = command
                           ->add_option("-m,--model,model", flags->model,
                                        "whose shape to generate for (Qwen3-30B-A3B)")
                           ->needs(generate);
  add_hub_flags(*command, flags->model, model);
  command->add_option("--seed", generator.seed, "seed (3)")
      ->transform(whole_number(0, std::numeric_limits<int64_t>::max()))
      ->needs(generate);
  command->add_option("--topic-steps", generator.topic_steps, "tokens of a topic (400)")
      ->transform(at_least(1))
      ->needs(generate);
  command
      ->add_flag("--uniform", generator.is_uniform,
                 "every expert as likely as any other, whatever came before: no text is like that")
      ->needs(generate);
  command->add_option("--policy", flags->policies,
                      "default,lru,lru-global,slru,lfu,dlfu,belady, or some of them (all)");
  command->add_option("--budget", flags->budgets, "per cent of all experts that VRAM holds")
      ->capture_default_str();
  flags->machines.add_to(*command);
  command
      ->add_option("--copy-cost", flags->copy_cost,
                   "what the default policy weighs a copy at, in uses; 0: hits alone (what the "
                   "machine's copies take from its CPU and link)")
      ->transform(number_between(0.0, 1e6));
  command->add_option("--profile", flags->profile, "start with what this profile has used most");
  command->add_option("--write-profile", flags->write_profile,
                      "add what was used to this profile; older uses fade");
  command->add_option("--write-trace", flags->write_trace, "save the trace, in the binary format");
  command->add_option("--report", flags->report,
                      "write a page for the browser: curves, speed map, layers, frontier");
  command->add_flag("--json", flags->json, "print JSON");
  command->callback([flags, trace, generate] {
    if (trace->empty() && generate->empty()) {
      throw CLI::RequiredError("--trace FILE or --generate N");
    }
    run(*flags);
  });
}

}  // namespace sluice::cli
