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

#include "cli/command.h"

namespace {

// Flags users know from llama.cpp that have one dash and several letters, which the parser cannot.
constexpr std::array<std::array<std::string_view, 2>, 2> kSpellings = {{
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
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

int run(int argc, char** argv) {
  CLI::App app("Mixture-of-Experts language models larger than the GPU's memory");
  app.name("sluice");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("sluice ") + SLUICE_VERSION);
  sluice::cli::add_run(app);
  sluice::cli::add_inspect(app);
  sluice::cli::add_logits(app);
  sluice::cli::add_synth(app);
  sluice::cli::add_quantize(app);
  try {
    app.parse(arguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::fprintf(stderr, "sluice: %s; see sluice --help\n", error.what());
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "sluice: error: out of memory; use a smaller context (-c) or model\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sluice: error: %s\n", error.what());
  }
  return 1;
}
