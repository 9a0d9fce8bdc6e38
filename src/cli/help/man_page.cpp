// See man_page.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/help/man_page.h"

#include <CLI/CLI.hpp>
#include <string_view>

#include "base/error.h"
#include "cli/help/examples.h"
#include "cli/help/help_formatter.h"

namespace sluice::cli {
namespace {

// Text as roff takes it: dashes that can be copied, no line that begins as a request.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '-') {
      out += "\\-";
    } else if (c == '\\') {
      out += "\\e";
    } else if (c == '"') {
      out += "\\(dq";  // which ends no argument
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string option_entry(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames())
    names += cat(names.empty() ? "" : ", ", "-", name);
  for (const std::string& name : option.get_lnames())
    names += cat(names.empty() ? "" : ", ", "--", name);
  if (names.empty()) names = option.get_name(true);
  const std::string value = value_name(option);
  return cat(".TP\n.B ", roff(names), value.empty() ? "" : cat(" ", roff(value)), "\n",
             roff(description_of(option)), "\n");
}

std::string example_entries(std::string_view command) {
  std::string out;
  for (const Example& example : examples()) {
    if (example.command != command) continue;
    out += cat(".TP\n.B ", roff(example.line), "\n", roff(example.what), "\n");
  }
  return out;
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string out = cat(".TH SLUICE 1\n.SH NAME\nsluice \\- ", roff(app.get_description()),
                        "\n.SH SYNOPSIS\n.B sluice\n.I command\n[flags]\n.SH EXAMPLES\n",
                        example_entries(""), ".SH COMMANDS\n");
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    out += cat(".SS sluice ", command->get_name(), "\n", roff(command->get_description()), "\n",
               example_entries(command->get_name()));
    for (const CLI::Option* option : command->get_options()) out += option_entry(*option);
  }
  return out +
         ".SH EXIT STATUS\n.TP\n.B 0\nall went well\n.TP\n.B 1\nsomething went wrong; one line on "
         "standard error says what\n.TP\n.B 2\nthe command line makes no sense\n"
         ".SH ENVIRONMENT\n.TP\n.B SLUICE_MODELS\nfolders with models, a colon between them; "
         "sluice pull uses the first\n"
         ".TP\n.B HF_TOKEN\na token of Hugging Face, for repositories that ask for one\n"
         ".TP\n.B HF_ENDPOINT\nanother hub than Hugging Face's\n"
         ".TP\n.B HF_HUB_OFFLINE\n1: fetch nothing\n"
         ".TP\n.B NO_COLOR\nset to anything: no colours\n";
}

}  // namespace sluice::cli
