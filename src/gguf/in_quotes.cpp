// See in_quotes.h.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/in_quotes.h"

#include <algorithm>

namespace sluice::gguf {

std::string in_quotes(std::string_view text) {
  constexpr size_t kMaxBytes = 60;
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "'";
  for (size_t i = 0; i < std::min(text.size(), kMaxBytes); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c < 0x7f && c != '\'' && c != '\\') {
      out += text[i];
    } else {
      out += {'\\', 'x', kHex[c >> 4], kHex[c & 15]};
    }
  }
  out += text.size() > kMaxBytes ? "...'" : "'";
  return out;
}

}  // namespace sluice::gguf
