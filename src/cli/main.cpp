// sluice: the program. Reads flags, runs one command, and turns every failure into one line on
// standard error and an exit code: 1 for what went wrong, 2 for flags that make no sense.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/terminal_text.h"

namespace {

// Flags users know from llama.cpp that have one dash and several letters, which the parser cannot.
constexpr std::array<std::array<std::string_view, 2>, 5> kSpellings = {{
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-ngl", "--n-gpu-layers"},
    {"-np", "--parallel"},
    {"-ub", "--prefill-chunk"},
}};

// In the same words in README.md and docs/placement.md; tests/docs_test.py compares them.
constexpr const char* kPromises = R"(
One answer, wherever it runs
For the same trunk device and trunk split, the logits are bit-for-bit the same whatever the expert placement is: no
expert in VRAM, some, all, moved in mid-run, prefetched or not. Three promises, and no more:

1. Experts: input quantisation, row dots, SwiGLU and combine are bit-equal on every device, for any number of rows.
   Projections and logits use the same row dots and are bit-equal too.
2. Rows: with 1 to 16 rows in a step a row's bytes do not depend on the other rows, on any device. In wider steps that
   holds for experts and projections; attention may take another kernel there.
3. Attention, norms and router on a GPU are within derived bounds of the CPU's, not bit-equal. So moving trunk layers
   (-ngl) between CPU and GPU changes bits; on the RAM device it does not.
)";

std::vector<std::string> arguments(int argc, char** argv) {
  std::vector<std::string> args;
  for (int i = argc - 1; i > 0; --i) {  // the parser takes them in reverse
    std::string_view arg = argv[i];
    for (const auto& [known, spelled] : kSpellings) {
      if (arg == known) arg = spelled;
    }
    args.emplace_back(arg);
  }
  return args;
}

// The parser's own text, but for an unknown command: there it only misses a known one.
std::string problem(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining();
  if (!app.get_subcommands().empty() || unknown.empty()) return error.what();
  return sluice::cat("'", unknown.front(), "' is no command");
}

int run(int argc, char** argv) {
  CLI::App app("Mixture-of-Experts language models larger than the GPU's memory");
  app.name("sluice");
  app.require_subcommand(1);
  app.footer(kPromises);
  app.set_version_flag("--version", std::string("sluice ") + SLUICE_VERSION);
  sluice::cli::add_run(app);
  sluice::cli::add_plan(app);
  sluice::cli::add_simulate(app);
  sluice::cli::add_bench(app);
  sluice::cli::add_inspect(app);
  sluice::cli::add_logits(app);
  sluice::cli::add_tokenize(app);
  sluice::cli::add_perplexity(app);
  sluice::cli::add_synth(app);
  sluice::cli::add_quantize(app);
  try {
    app.parse(arguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::fprintf(stderr, "sluice: %s; see sluice --help\n",
                 sluice::cli::one_line(problem(app, error)).c_str());
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  sluice::cli::remove_partial_files_on_signals();
  try {
    const int code = run(argc, argv);
    sluice::cli::require_output();  // what was printed may have gone into a buffer only
    return code;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "sluice: error: out of memory; use a smaller context (-c) or model\n");
  } catch (const std::exception& error) {
    sluice::cli::print_error(error.what());
  }
  return 1;
}
