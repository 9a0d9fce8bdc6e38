// See completions.h. Words that belong to no flag are completed with models and files.
// SPDX-License-Identifier: Apache-2.0
#include "cli/help/completions.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "base/error.h"

namespace sluice::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// In single quotes, for all three shells.
std::string in_single_quotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// "-m --model ..."
std::string flags_line(const CLI::App& command) {
  std::string out;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_snames()) out += cat(" -", name);
    for (const std::string& name : option->get_lnames()) out += cat(" --", name);
  }
  return out.empty() ? out : out.substr(1);
}

std::string command_names(const CLI::App& app) {
  std::string out;
  for (const CLI::App* command : commands_of(app))
    out += cat(out.empty() ? "" : " ", command->get_name());
  return out;
}

}  // namespace

// The word comes from the line: bash's own words end at colons, which names of models have.
std::string bash_completions(const CLI::App& app) {
  std::string out =
      cat("# bash completion for sluice; made by: sluice completions bash\n"
          "_sluice() {\n"
          "  local line=${COMP_LINE:0:COMP_POINT} flags=\n"
          "  local word=${line##*[[:space:]]}\n"
          "  local -a words\n"
          "  read -ra words <<< \"${line%\"$word\"}\"\n"
          "  COMPREPLY=()\n"
          "  if (( ${#words[@]} == 1 )) && [[ $word != -* ]]; then\n"
          "    mapfile -t COMPREPLY < <(compgen -W '",
          command_names(app),
          "' -- \"$word\")\n"
          "    return\n"
          "  fi\n"
          "  case ${words[1]-} in\n");
  for (const CLI::App* command : commands_of(app)) {
    const std::string name = command->get_name();
    const std::string pattern = name == "run" ? "run | -*" : name;  // flags alone are those of run
    out += cat("    ", pattern, ") flags=", in_single_quotes(flags_line(*command)), " ;;\n");
  }
  return out +
         "    '') flags='--help --version' ;;\n"
         "  esac\n"
         "  if [[ $word == -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$word\")\n"
         "    return\n"
         "  fi\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$(sluice list --names 2>/dev/null)\" -- "
         "\"$word\")\n"
         "  if [[ -z $word || ${#COMPREPLY[@]} -eq 0 ]]; then\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$word\")\n"
         "  fi\n"
         "  # What is typed up to a colon stays as it is.\n"
         "  if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then\n"
         "    COMPREPLY=(\"${COMPREPLY[@]#\"${word%\"${word##*:}\"}\"}\")\n"
         "  fi\n"
         "}\n"
         "complete -F _sluice sluice\n";
}

std::string zsh_completions(const CLI::App& app) {
  std::string out =
      "#compdef sluice\n"
      "# made by: sluice completions zsh\n"
      "_sluice() {\n"
      "  local -a commands flags\n"
      "  commands=(\n";
  const auto entry = [](const std::string& name, const std::string& what) {
    std::string escaped;
    for (const char c : name) escaped += c == ':' ? std::string("\\:") : std::string(1, c);
    return cat("    ", in_single_quotes(cat(escaped, ":", what)), "\n");
  };
  for (const CLI::App* command : commands_of(app)) {
    out += entry(command->get_name(), command->get_description());
  }
  out +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  case $words[2] in\n";
  for (const CLI::App* command : commands_of(app)) {
    out += cat("  ", command->get_name(), ")\n    flags=(\n");
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_snames())
        out += entry("-" + name, option->get_description());
      for (const std::string& name : option->get_lnames())
        out += entry("--" + name, option->get_description());
    }
    out += "    ) ;;\n";
  }
  return out +
         "  esac\n"
         "  if [[ $words[CURRENT] == -* ]]; then\n"
         "    _describe flag flags\n"
         "  else\n"
         "    compadd -- ${(f)\"$(sluice list --names 2>/dev/null)\"}\n"
         "    _files\n"
         "  fi\n"
         "}\n"
         // As a file of $fpath it is the body of this function at the first Tab.
         "if [[ ${funcstack[1]-} == _sluice ]]; then\n"
         "  _sluice \"$@\"\n"
         "else\n"
         "  compdef _sluice sluice\n"
         "fi\n";
}

std::string fish_completions(const CLI::App& app) {
  std::string out = "# fish completion for sluice; made by: sluice completions fish\n";
  for (const CLI::App* command : commands_of(app)) {
    out += cat("complete -c sluice -n __fish_use_subcommand -f -a ", command->get_name(), " -d ",
               in_single_quotes(command->get_description()), "\n");
  }
  for (const CLI::App* command : commands_of(app)) {
    const std::string where =
        cat("complete -c sluice -n '__fish_seen_subcommand_from ", command->get_name(), "'");
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_lnames().empty() && option->get_snames().empty()) continue;
      out += where;
      for (const std::string& name : option->get_snames()) out += cat(" -s ", name);
      for (const std::string& name : option->get_lnames()) out += cat(" -l ", name);
      if (option->get_items_expected_max() > 0) out += " -r";
      out += cat(" -d ", in_single_quotes(option->get_description()), "\n");
    }
    out += cat(where, " -a '(sluice list --names 2>/dev/null)'\n");
  }
  return out;
}

}  // namespace sluice::cli
