// Scripts that let a shell complete commands, flags and models, made from the parser's own tables.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace sluice::cli {

std::string bash_completions(const CLI::App& app);
std::string zsh_completions(const CLI::App& app);
std::string fish_completions(const CLI::App& app);

}  // namespace sluice::cli
