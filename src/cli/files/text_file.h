// Texts from outside: files and standard input, and the check that they are text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace sluice::cli {

// All bytes of a file; of standard input for "-". Throws Errc::bad_request with its name.
std::string read_text_file(const std::string& path);

// Throws Errc::bad_request, with `what` and the place, unless the text is valid UTF-8.
void require_utf8(std::string_view text, std::string_view what);

}  // namespace sluice::cli
