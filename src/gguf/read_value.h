// Reads one metadata value. Part of the parser; see parse.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "gguf/byte_reader.h"
#include "gguf/value.h"

namespace sluice::gguf {

// The type id and what follows it. `where` names the key in error texts.
Value read_value(ByteReader& reader, const std::string& where);

}  // namespace sluice::gguf
