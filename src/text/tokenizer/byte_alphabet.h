// How byte-level BPE writes bytes as text: printable Latin-1 characters stand for themselves, and
// the other 68 bytes for the characters from U+0100 on, so that every byte string is a valid word.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

namespace sluice::text {

// By byte value, each as UTF-8.
const std::array<std::string, 256>& byte_alphabet();

}  // namespace sluice::text
