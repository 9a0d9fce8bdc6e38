// Texts from outside: files and standard input.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace sluice::cli {

// All bytes of a file; of standard input for "-". Throws Errc::bad_request with its name.
std::string read_text_file(const std::string& path);

}  // namespace sluice::cli
