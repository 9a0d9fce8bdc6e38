// Text from a file, made fit to stand in a one-line error message.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace sluice::gguf {

// 'text' in quotes: at most 60 of its bytes, and everything but printable ASCII as \xNN, so that a
// hostile file can neither forge a second line nor break the UTF-8 of a log or a JSON reply. (Not
// named quoted(): for a std::string argument, std::quoted would be preferred.)
std::string in_quotes(std::string_view text);

}  // namespace sluice::gguf
