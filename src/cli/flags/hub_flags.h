// The flags of a model that a hub has: --hf-repo and --hf-file. What they say becomes the model's
// name, which begins with hf.co/ (files/model_registry.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sluice::cli {

// Writes to `name`, which outlives the parse. `model`: the option that names a model otherwise; it
// is not needed where these are given, and not allowed with them.
void add_hub_flags(CLI::App& command, std::string& name, CLI::Option* model);

}  // namespace sluice::cli
