// sluice: the program. Reads flags, runs one command, and turns every failure into one line on
// standard error and an exit code: 1 for what went wrong, 2 for flags that make no sense.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/terminal/terminal_text.h"

namespace {

// Flags users know from llama.cpp that have one dash and several letters, which the parser cannot.
constexpr std::array<std::array<std::string_view, 2>, 4> kSpellings = {{
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-ngl", "--n-gpu-layers"},
    {"-np", "--parallel"},
}};

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

// What was printed may have gone into a buffer only; whether anybody took it shows here.
void flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw sluice::Error(
      sluice::Errc::bad_request,
      sluice::cat("standard output cannot be written (", std::generic_category().message(errno),
                  "); expected a place with enough room, and a reader"));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    flush_output();
    return code;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "sluice: error: out of memory; use a smaller context (-c) or model\n");
  } catch (const std::exception& error) {
    sluice::cli::print_error(error.what());
  }
  return 1;
}
