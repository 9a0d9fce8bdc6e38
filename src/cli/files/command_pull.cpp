// sluice pull: fetches a model from Hugging Face, or a hub that speaks as it does, and goes on
// where an earlier attempt broke off. SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/files/hub_models.h"
#include "cli/files/json_text.h"
#include "cli/flags/flag_checks.h"
#include "cli/terminal/terminal_text.h"

namespace sluice::cli {
namespace {

struct PullFlags {
  std::string name;
  PullOptions options;
  bool list = false;
  bool json = false;
};

void print_repo(const hub::RepoName& name, const PullFlags& flags) {
  Json all = Json::array();
  for (const hub::RepoModel& model : list_repo(name, flags.options)) {
    const std::string quant = hub::quant_of(model.stem);
    if (flags.json) {
      Json files = Json::array();
      for (const hub::RepoFile& file : model.files) {
        files.push_back({{"path", file.path}, {"bytes", file.n_bytes}, {"sha256", file.sha256}});
      }
      all.push_back(
          {{"name", cat(name.id(), ":", quant)}, {"bytes", model.n_bytes()}, {"files", files}});
    } else {
      std::printf("%-16s %12s  %s\n", one_line(quant).c_str(),
                  format_bytes(model.n_bytes()).c_str(), one_line(model.files[0].path).c_str());
    }
  }
  if (flags.json) std::printf("%s\n", dump(all, 2).c_str());
}

void print_pulled(const PulledModel& pulled, bool json) {
  if (json) {
    const Json object = {{"name", pulled.name},
                         {"path", pulled.path},
                         {"bytes", pulled.n_bytes},
                         {"bytes_fetched", pulled.n_fetched},
                         {"n_failures", pulled.n_failures},
                         {"seconds", pulled.seconds}};
    std::printf("%s\n", dump(object).c_str());
    return;
  }
  if (pulled.n_fetched == 0) {
    std::fprintf(stderr, "%s is here already\n", one_line(pulled.name).c_str());
  } else {
    const double rate =
        static_cast<double>(pulled.n_fetched) / (pulled.seconds > 0.0 ? pulled.seconds : 1.0);
    std::fprintf(stderr, "%s fetched in %.0f s, %s/s; SHA-256 and size are right%s\n",
                 format_bytes(pulled.n_fetched).c_str(), pulled.seconds,
                 format_bytes(static_cast<uint64_t>(rate)).c_str(),
                 pulled.n_failures == 0
                     ? ""
                     : cat("; taken up again ", pulled.n_failures, " times").c_str());
  }
  std::printf("%s  %s  %s\n", one_line(pulled.name).c_str(), format_bytes(pulled.n_bytes).c_str(),
              one_line(pulled.path).c_str());
}

void run(const PullFlags& flags) {
  const hub::RepoName name = hub::parse_repo_name(flags.name);
  if (flags.list) return print_repo(name, flags);
  print_pulled(pull_model(name, flags.options), flags.json);
}

}  // namespace

void add_pull(CLI::App& app) {
  CLI::App* command = app.add_subcommand("pull", "fetch a model from Hugging Face");
  const auto flags = flags_for<PullFlags>(*command, run);
  command
      ->add_option("--hf-repo,model", flags->name,
                   "user/repo, user/repo:quant or user/repo/file.gguf (quant: Q4_K_M, or the "
                   "first file)")
      ->required()
      ->type_name("REPO");
  command->add_flag("--list", flags->list, "show what the repository holds, and fetch nothing");
  command
      ->add_option("--connections", flags->options.n_connections,
                   "parts that are fetched at the same time (4)")
      ->transform(whole_number(1, 32));
  command
      ->add_option("--retries", flags->options.n_retries,
                   "failures of a part in a row before it gives up (8)")
      ->transform(whole_number(0, 1000));
  command
      ->add_option("--timeout", flags->options.stall_seconds,
                   "seconds without data after which a connection counts as lost (30)")
      ->transform(number_between(1.0, 3600.0));
  command->add_flag("--json", flags->json, "print JSON");
}

}  // namespace sluice::cli
