// Texts from outside: files and standard input.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace sluice::cli {

// All bytes of a file; of standard input for "-". Throws Errc::bad_request with its name.
std::string read_text_file(const std::string& path);

// Whether standard input is a pipe or a file, where nobody types.
bool has_piped_input();

}  // namespace sluice::cli
