// See byte_alphabet.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/byte_alphabet.h"

namespace sluice::text {
namespace {

std::string utf8_up_to_7ff(unsigned code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))};
}

std::array<std::string, 256> make_alphabet() {
  std::array<std::string, 256> alphabet;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    alphabet[byte] = utf8_up_to_7ff(itself ? byte : next++);
  }
  return alphabet;
}

}  // namespace

const std::array<std::string, 256>& byte_alphabet() {
  static const auto kAlphabet = make_alphabet();
  return kAlphabet;
}

}  // namespace sluice::text
