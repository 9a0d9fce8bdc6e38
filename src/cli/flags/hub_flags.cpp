// See hub_flags.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/hub_flags.h"

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/flags/model_options.h"
#include "hub/repo_name.h"

namespace sluice::cli {
namespace {

std::string hub_name(const hub::RepoName& name) { return cat(hub::kHubPrefix, name.text()); }

}  // namespace

void add_hub_flags(CLI::App& command, std::string& name, CLI::Option* model) {
  // Their callbacks run in this order, whatever the order on the command line.
  CLI::Option* repo = command.add_option_function<std::string>(
      "--hf-repo",
      [&name, model](const std::string& typed) {
        name = hub_name(hub::parse_repo_name(typed));
        model->required(false);
      },
      "a model of Hugging Face, user/repo or user/repo:quant, also -hf; fetched where it is not "
      "here yet (quant: Q4_K_M, or the first file)");
  repo->type_name("REPO")->group(kModelGroup)->excludes(model);
  command
      .add_option_function<std::string>(
          "--hf-file",
          [&name](const std::string& file) {
            hub::RepoName repo_name = hub::parse_repo_name(name);
            repo_name.quant.clear();
            repo_name.file = file;
            name = hub_name(hub::parse_repo_name(repo_name.text()));
          },
          "a file of that repository, also -hff")
      ->type_name("FILE")
      ->group(kModelGroup)
      ->needs(repo);
}

}  // namespace sluice::cli
