// From what was typed to what the parser reads: the command by any of its names, and its flags in
// the words of this program (translate.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace sluice::cli {

struct CommandLine {
  std::vector<std::string> args;  // the command first
  std::vector<std::string> notes;
};

// `typed`: without the program's name. Flags without a command are those of `run`. Throws
// FlagRefused for a command or a flag that is none.
CommandLine read_command_line(const CLI::App& app, std::vector<std::string> typed);

// Why the parser gave up, in one line, and where to read on.
std::string describe_problem(const CLI::App& app, const CLI::ParseError& error);

// "; see sluice run --help"
std::string where_to_read_on(const CLI::App& app, const std::vector<std::string>& typed);

}  // namespace sluice::cli
