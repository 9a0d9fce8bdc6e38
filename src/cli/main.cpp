// sluice: the program. Reads flags, runs one command, and turns every failure into one line on
// standard error and an exit code: 1 for what went wrong, 2 for flags that make no sense.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/flags/command_line.h"
#include "cli/flags/translate.h"
#include "cli/help/help_formatter.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/terminal_text.h"

namespace {

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

int refuse(const std::string& text, const std::string& where) {
  std::fprintf(stderr, "sluice: %s%s\n", sluice::cli::one_line(text).c_str(), where.c_str());
  return 2;
}

int run(int argc, char** argv) {
  CLI::App app("Mixture-of-Experts language models larger than the GPU's memory");
  app.name("sluice");
  app.formatter(std::make_shared<sluice::cli::HelpFormatter>());
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("sluice ") + SLUICE_VERSION);
  sluice::cli::add_commands(app);
  app.footer(kPromises);  // of the program's help alone: commands would take it over
  const std::vector<std::string> typed(argv + 1, argv + argc);
  const std::string where = sluice::cli::where_to_read_on(app, typed);
  try {
    sluice::cli::CommandLine line = sluice::cli::read_command_line(app, typed);
    for (const std::string& note : line.notes) sluice::cli::print_note(note);
    std::ranges::reverse(line.args);  // as the parser takes them
    app.parse(line.args);
  } catch (const sluice::cli::FlagRefused& refused) {
    return refuse(refused.what(), where);
  } catch (const CLI::RuntimeError& ended) {
    return ended.get_exit_code();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return refuse(sluice::cli::describe_problem(app, error), where);
  } catch (const std::bad_alloc&) {
    const auto running = app.get_subcommands();
    const bool has_context = !running.empty() && running[0]->get_option_no_throw("--ctx-size");
    std::fprintf(stderr, "sluice: error: out of memory; use a smaller %smodel\n",
                 has_context ? "context (-c) or " : "");
    return 1;
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
  } catch (const std::exception& error) {
    sluice::cli::print_error(error.what());
  }
  return 1;
}
