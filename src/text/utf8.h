// UTF-8 as Unicode defines it: shortest forms only, no surrogates, nothing above U+10FFFF. Says
// what stands at the beginning of a byte string; converts nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::text {

enum class Utf8State {
  complete,    // one character
  incomplete,  // the bytes end within what may become a character
  invalid,     // no continuation makes this a character
};

struct Utf8Unit {
  Utf8State state;
  // Of the character; of all bytes when incomplete (at most 3); when invalid, of the longest
  // beginning of a character, at least 1: what Unicode replaces by one U+FFFD.
  size_t n_bytes;
};

// What `bytes`, which must not be empty, begin with.
Utf8Unit next_utf8(std::string_view bytes);

// The bytes of the longest beginning that is valid throughout.
size_t valid_utf8_length(std::string_view bytes);

// Throws Errc::bad_request, with `what` and the place, unless the text is valid UTF-8.
void require_utf8(std::string_view text, std::string_view what);

}  // namespace sluice::text
