// See command_line.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "cli/flags/foreign_flags.h"
#include "cli/flags/translate.h"

namespace sluice::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* find_command(const CLI::App& app, std::string_view name) {
  for (const CLI::App* command : commands_of(app)) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

// The options of a command and of the groups in it.
std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  std::vector<const CLI::Option*> options = command.get_options();
  for (const CLI::App* group : command.get_subcommands([](const CLI::App*) { return true; })) {
    const std::vector<const CLI::Option*> more = group->get_options();
    options.insert(options.end(), more.begin(), more.end());
  }
  return options;
}

// The option of this name, "-m" or "--model"; null: there is none.
const CLI::Option* find_option(const std::vector<const CLI::Option*>& options,
                               std::string_view name) {
  const bool is_long = name.starts_with("--");
  const std::string bare(name.substr(std::min<size_t>(is_long ? 2 : 1, name.size())));
  for (const CLI::Option* option : options) {
    const std::vector<std::string>& names = is_long ? option->get_lnames() : option->get_snames();
    if (std::ranges::find(names, bare) != names.end()) return option;
  }
  return nullptr;
}

KnownFlags flags_of(const CLI::App& app, const CLI::App& command) {
  KnownFlags known;
  known.command = command.get_name();
  const auto options = options_of(command);
  for (const CLI::Option* option : options) {
    for (const std::string& name : option->get_lnames()) known.names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) known.names.push_back("-" + name);
  }
  known.takes_value = [options](std::string_view name) -> std::optional<bool> {
    const CLI::Option* option = find_option(options, name);
    return option ? std::optional(option->get_items_expected_max() > 0) : std::nullopt;
  };
  known.owner = [&app](std::string_view name) -> std::string {
    for (const CLI::App* other : commands_of(app)) {
      if (find_option(options_of(*other), name)) return other->get_name();
    }
    return "";
  };
  return known;
}

// "list" for "ls"; the name itself where this program has it.
std::string own_name(const CLI::App& app, const std::string& typed) {
  if (find_command(app, typed)) return typed;
  std::vector<std::string> names;
  for (const ForeignCommand& known : foreign_commands()) {
    if (known.name != typed) continue;
    if (!known.ours.empty()) return std::string(known.ours);
    throw FlagRefused(cat("there is no command '", typed, "': ", known.instead));
  }
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  if (typed.ends_with(".gguf")) {
    throw FlagRefused(cat("'", typed, "' is no command; sluice run ", typed, " chats with it"));
  }
  const std::string similar = nearest(typed, names);
  throw FlagRefused(cat("'", typed, "' is no command",
                        similar.empty() ? "" : cat(" (did you mean ", similar, "?)")));
}

bool is_root_flag(const std::string& arg) {
  return arg == "-h" || arg == "--help" || arg == "--version" || arg == "-v";
}

}  // namespace

CommandLine read_command_line(const CLI::App& app, std::vector<std::string> typed) {
  if (typed.empty()) {
    throw FlagRefused("no command; sluice run chats with a demo model");
  }
  if (is_root_flag(typed[0])) {
    return {{typed[0] == "-v" ? "--version" : typed[0]}, {}};
  }
  if (typed[0].starts_with('-')) typed.insert(typed.begin(), "run");
  const std::string name = own_name(app, typed[0]);
  typed.erase(typed.begin());
  Translation translated = translate(typed, flags_of(app, *find_command(app, name)));
  translated.args.insert(translated.args.begin(), name);
  return {std::move(translated.args), std::move(translated.notes)};
}

std::string describe_problem(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::vector<CLI::App*> commands = app.get_subcommands();
  const std::string command = commands.empty() ? "" : commands.front()->get_name();
  constexpr std::string_view kConversion = "Could not convert: ";
  if (text.starts_with(kConversion)) {  // "Could not convert: --seed = x"
    const size_t equals = text.find(" = ", kConversion.size());
    return cat(text.substr(kConversion.size(), equals - kConversion.size()), " is '",
               equals == std::string::npos ? "" : text.substr(equals + 3, 40),
               "', which is no number");
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) && text.starts_with('-')) {
    const std::string name = text.substr(0, text.find(':'));
    const bool is_repeated = text.find("At Most") != std::string::npos;
    return cat(name, is_repeated ? " is given twice" : " needs a value");
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error)) {
    const std::string missing = text.substr(0, text.find(' '));
    if (missing == "model" || missing == "--model") {
      return cat("sluice ", command, " needs a model: sluice ", command,
                 " MODEL; sluice list shows those there are");
    }
  }
  return text;
}

std::string where_to_read_on(const CLI::App& app, const std::vector<std::string>& typed) {
  const std::string name = typed.empty() ? "" : typed[0].starts_with('-') ? "run" : typed[0];
  std::string ours = name;
  for (const ForeignCommand& known : foreign_commands()) {
    if (known.name == name && !find_command(app, name)) ours = std::string(known.ours);
  }
  return find_command(app, ours) ? cat("; see sluice ", ours, " --help") : "; see sluice --help";
}

}  // namespace sluice::cli
