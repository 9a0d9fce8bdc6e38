// sluice list: the models that can be named, where they are, and how large.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "base/error.h"
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
  for (const StoredModel& model : stored_models()) {
    if (flags.json) {
      all.push_back({{"name", model.name},
                     {"bytes", model.n_bytes},
                     {"path", model.path},
                     {"source", model.source},
                     {"whole", model.is_whole}});
    } else if (flags.names) {
      if (model.is_whole) std::printf("%s\n", one_line(model.name).c_str());
    } else {
      const std::string state =
          model.is_whole ? "" : cat("  (unfinished: sluice pull ", model.name, " goes on)");
      std::printf("%-32s %12s  %s%s\n", one_line(model.name).c_str(),
                  format_bytes(model.n_bytes).c_str(), one_line(model.path).c_str(),
                  one_line(state).c_str());
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
