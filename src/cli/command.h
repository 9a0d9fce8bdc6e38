// The commands of the program. Each file adds its own subcommand, with its flags, to the parser.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

namespace sluice::cli {

// The flags of a command that ends in run(flags). They live in its callback, as long as the parser.
template <typename Flags>
std::shared_ptr<Flags> flags_for(CLI::App& command, void (*run)(const Flags&)) {
  auto flags = std::make_shared<Flags>();
  command.callback([flags, run] { run(*flags); });
  return flags;
}

void add_bench(CLI::App& app);
void add_completions(CLI::App& app);
void add_help(CLI::App& app);
void add_inspect(CLI::App& app);
void add_list(CLI::App& app);
void add_logits(CLI::App& app);
void add_perplexity(CLI::App& app);
void add_plan(CLI::App& app);
void add_run(CLI::App& app);
void add_serve(CLI::App& app);
void add_simulate(CLI::App& app);
void add_synth(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_quantize(CLI::App& app);
void add_pull(CLI::App& app);
void add_rm(CLI::App& app);

void add_version(CLI::App& app);

// All of the above, in the order of the help.
void add_commands(CLI::App& app);

}  // namespace sluice::cli
