// See utf8.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/utf8.h"

#include <cstdint>

#include "base/check.h"
#include "base/error.h"

namespace sluice::text {
namespace {

uint8_t byte_at(std::string_view bytes, size_t i) { return static_cast<uint8_t>(bytes[i]); }

// What a first byte asks for: the length, and the range of the second byte, which is where the
// forms that are too long, the surrogates and the numbers above U+10FFFF are told from the rest.
struct Lead {
  size_t n_bytes;  // 0: no character begins so
  uint8_t second_min = 0x80;
  uint8_t second_max = 0xbf;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xc2) return {0};
  if (byte < 0xe0) return {2};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte < 0xf0) return {3};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte < 0xf4) return {4};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {0};
}

}  // namespace

Utf8Unit next_utf8(std::string_view bytes) {
  DCHECK(!bytes.empty());
  const Lead lead = lead_of(byte_at(bytes, 0));
  if (lead.n_bytes == 0) return {Utf8State::invalid, 1};
  for (size_t i = 1; i < lead.n_bytes; ++i) {
    if (i == bytes.size()) return {Utf8State::incomplete, i};
    const uint8_t min = i == 1 ? lead.second_min : 0x80;
    const uint8_t max = i == 1 ? lead.second_max : 0xbf;
    const uint8_t byte = byte_at(bytes, i);
    if (byte < min || byte > max) return {Utf8State::invalid, i};
  }
  return {Utf8State::complete, lead.n_bytes};
}

size_t valid_utf8_length(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    if (byte_at(bytes, at) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Unit unit = next_utf8(bytes.substr(at));
    if (unit.state != Utf8State::complete) break;
    at += unit.n_bytes;
  }
  return at;
}

void require_utf8(std::string_view text, std::string_view what) {
  const size_t n_valid = valid_utf8_length(text);
  if (n_valid == text.size()) return;
  throw Error(Errc::bad_request,
              cat(what, " is not valid UTF-8 from byte ", n_valid, " on; expected text in UTF-8"));
}

}  // namespace sluice::text
