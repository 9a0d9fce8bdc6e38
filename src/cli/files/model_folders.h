// Where models are looked for, as the environment says: the user's own folders, and those of other
// programs. Folders that are not there are named too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

// The value of a variable of the environment; empty: none.
std::string environment(const char* name);

// Those of $SLUICE_MODELS (several, with ':' between), then ~/.local/share/sluice/models (or under
// $XDG_DATA_HOME).
std::vector<std::string> own_model_folders();

// Where pulled models go, as user/repo/file.gguf: the first of them. Throws Errc::bad_request where
// the environment names none.
std::string pull_folder();

// With the same layout: ~/.lmstudio/models, ~/.cache/lm-studio/models.
std::vector<std::string> lm_studio_folders();

// With manifests/ and blobs/: $OLLAMA_MODELS, or else ~/.ollama/models and that of the service.
std::vector<std::string> ollama_folders();

}  // namespace sluice::cli
