// The flags that every command which computes with a model shares.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/files/model_registry.h"
#include "cli/flags/device_flags.h"
#include "sluice/sluice.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sluice::cli {

struct ModelOptions {
  std::string name;  // a file, or a name that model_registry.h knows
  std::string tokens;
  int n_threads = 0;
  WeightMemory weights = WeightMemory::automatic;
  DeviceFlags device;
  SessionOptions session;  // with its device once the flags are parsed

  enum class Use { planning, computing };

  // -m (required unless there is a name already), -t, -c, --weights, -ctk, -ctv, --prefill-chunk,
  // and those of device_flags.h. Must outlive the parse.
  void add_to(CLI::App& command, Use use = Use::computing);
  // --tokens
  CLI::Option* add_tokens_to(CLI::App& command);

  // The file of the model; throws as find_model() does.
  std::string file() const { return find_model(name); }

  // With a progress bar on a terminal.
  Model load() const;

  // "1,2,3" -> ids; throws Errc::bad_request for what is not a number.
  std::vector<TokenId> token_ids() const;
};

// With a progress bar too, while experts are loaded; what the placement warns about is printed.
Session open_session(const Model& model, SessionOptions options);

}  // namespace sluice::cli
