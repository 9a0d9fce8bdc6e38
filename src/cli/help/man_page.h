// The manual page, made from the same tables as the help.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace sluice::cli {

// In roff, for man(1): sluice.1.
std::string man_page(const CLI::App& app);

}  // namespace sluice::cli
