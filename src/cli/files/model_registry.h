// Models by name: the ones that ship with the program, and those in the user's model folders.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sluice/chat.h"

namespace sluice::cli {

// What `sluice run` uses where no model is named.
inline constexpr const char* kDefaultModel = "demo-attn";

// As sluice/chat.h's, in the folders of $SLUICE_MODELS (several, with ':' between) and the user's
// own
// (~/.local/share/sluice/models, or under $XDG_DATA_HOME), before those of the program.
std::string find_model(const std::string& name);
std::vector<FoundModel> list_models();

}  // namespace sluice::cli
