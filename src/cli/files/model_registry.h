// Models by name: the ones that ship with the program, those in the user's model folders, those
// that were pulled, and what LM Studio and Ollama keep on this machine. SPDX-License-Identifier:
// Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/files/model_stores.h"
#include "sluice/chat.h"

namespace sluice::cli {

// What `sluice run` uses where no model is named.
inline constexpr const char* kDefaultModel = "demo-attn";

// Sorted, each name once: of two the one of the user's folders (model_folders.h), then of the
// program, then pulled, then LM Studio's, then Ollama's. Unfinished ones too.
std::vector<StoredModel> stored_models();

// Those that can be used.
std::vector<FoundModel> list_models();

// The file of a model: `name` itself where it is a path; a model of that name, where a missing
// ":latest" or ":Q4_K_M" does not matter. A name that begins with hf.co/ is pulled where it is not
// here. Throws Errc::bad_request with the names there are.
std::string find_model(const std::string& name);

}  // namespace sluice::cli
