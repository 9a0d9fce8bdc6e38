// sluice list: the models that can be named, where they are, and how large.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>

#include "base/units.h"
#include "cli/command.h"
#include "cli/files/json_text.h"
#include "cli/files/model_registry.h"
#include "cli/terminal/terminal_text.h"

namespace sluice::cli {
namespace {

struct ListFlags {
  bool names = false;
  bool json = false;
};

void run(const ListFlags& flags) {
  Json all = Json::array();
  for (const FoundModel& model : list_models()) {
    std::error_code ignored;
    const uint64_t n_bytes = std::filesystem::file_size(model.path, ignored);  // of a first shard
    if (flags.json) {
      all.push_back({{"name", model.name}, {"bytes", n_bytes}, {"path", model.path}});
    } else if (flags.names) {
      std::printf("%s\n", one_line(model.name).c_str());
    } else {
      std::printf("%-32s %12s  %s\n", one_line(model.name).c_str(), format_bytes(n_bytes).c_str(),
                  one_line(model.path).c_str());
    }
  }
  if (flags.json) std::printf("%s\n", dump(all, 2).c_str());
}

}  // namespace

void add_list(CLI::App& app) {
  CLI::App* command = app.add_subcommand("list", "show the models that can be named");
  const auto flags = flags_for<ListFlags>(*command, run);
  command->add_flag("--names", flags->names, "names alone");
  command->add_flag("--json", flags->json, "print JSON");
}

}  // namespace sluice::cli
