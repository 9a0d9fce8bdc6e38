// Where in the user's folders the program keeps what it can do without: routing profiles, and what
// was measured on this machine. All paths are empty where the environment names no folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace sluice::cli {

std::string cache_folder();  // ~/.cache/sluice, or under $XDG_CACHE_HOME

// Of the routing profile of a model: <cache folder>/profiles/<name>-<bytes>.slrp, after the model's
// file, of a split one the first. Empty also where there is no such file.
std::string profile_path(const std::string& model_file);

std::string machine_path();  // of engine/machine_record.h's file

}  // namespace sluice::cli
