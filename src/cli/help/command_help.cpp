// sluice help, version and completions: what the tables of flags know, for people and for shells.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "base/error.h"
#include "cli/command.h"
#include "cli/flags/foreign_flags.h"
#include "cli/flags/translate.h"
#include "cli/help/completions.h"
#include "cli/help/man_page.h"

namespace sluice::cli {
namespace {

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

std::string topic_text(const CLI::App& app, const std::string& topic) {
  // Not app.help(), which is that of the command that was given: this one's.
  if (topic.empty()) {
    return app.get_formatter()->make_help(&app, "sluice", CLI::AppFormatMode::Normal);
  }
  if (topic == "flags") return foreign_flags_page();
  if (topic == "man") return man_page(app);
  std::vector<std::string> names = {"flags", "man"};
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == topic) return command->help("sluice");
    names.push_back(command->get_name());
  }
  const std::string similar = nearest(topic, names);
  throw Error(Errc::bad_request, cat("there is no help about '", topic.substr(0, 40), "'",
                                     similar.empty() ? "; expected a command, flags or man"
                                                     : cat("; did you mean ", similar, "?")));
}

}  // namespace

void add_help(CLI::App& app) {
  CLI::App* command = app.add_subcommand("help", "explain a command, or other programs' flags");
  const auto topic = std::make_shared<std::string>();  // lives in the callback
  command->add_option("topic", *topic, "a command; flags: those of llama.cpp and Ollama; man");
  command->callback([&app, topic] { print(topic_text(app, *topic)); });
}

void add_version(CLI::App& app) {
  app.add_subcommand("version", "print the version")->callback([] {
    std::printf("sluice %s\n", SLUICE_VERSION);
  });
}

void add_completions(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completions", "print what makes a shell complete flags");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, shell] {
    print(*shell == "bash"  ? bash_completions(app)
          : *shell == "zsh" ? zsh_completions(app)
                            : fish_completions(app));
  });
}

void add_commands(CLI::App& app) {
  add_run(app);
  add_serve(app);
  add_plan(app);
  add_pull(app);
  add_list(app);
  add_rm(app);
  add_inspect(app);
  add_bench(app);
  add_simulate(app);
  add_perplexity(app);
  add_logits(app);
  add_tokenize(app);
  add_quantize(app);
  add_synth(app);
  add_completions(app);
  add_help(app);
  add_version(app);
}

}  // namespace sluice::cli
