// Bytes in, text out, as soon as possible: a token may end within a character, and what a person or
// a JSON reader sees must not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace sluice::text {

// What all calls return, put together, is the same however the bytes were cut up.
class Utf8Stream {
 public:
  // All that is decided by now: valid UTF-8, with U+FFFD for what no continuation can repair. At
  // most 3 bytes are held back.
  std::string push(std::string_view bytes);

  // Ends the text: U+FFFD for a character that was never completed. Then as new.
  std::string flush();

 private:
  std::string held_;
};

}  // namespace sluice::text
