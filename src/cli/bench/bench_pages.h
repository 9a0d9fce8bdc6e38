// Whether a file is in the page cache, and how to get it out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

// The share of the files' bytes that the page cache holds, 0 to 1. Throws Errc::bad_file.
double cached_share(const std::vector<std::string>& paths);

// Asks the kernel to forget the files; what another process has mapped may stay.
void drop_from_cache(const std::vector<std::string>& paths);

}  // namespace sluice::cli
