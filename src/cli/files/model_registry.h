// Models by name: the ones that ship with the program, and those in the user's model folders.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

// What `sluice run` uses where no model is named.
inline constexpr const char* kDefaultModel = "demo-attn";

// The file of a model: `name` itself where it is a path, else NAME.gguf (of a split model the first
// shard) in the first folder that has it. Throws Errc::bad_request with the names there are.
std::string find_model(const std::string& name);

// In the order they are searched: $SLUICE_MODELS (several, with ':' between), the user's own
// (~/.local/share/sluice/models, or under $XDG_DATA_HOME), and those of the program.
std::vector<std::string> model_folders();

}  // namespace sluice::cli
