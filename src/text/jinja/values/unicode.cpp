// See unicode.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/unicode.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/check.h"
#include "text/jinja/values/case_tables.h"

namespace sluice::text::jinja {
namespace {

// The only character whose small letter is two.
constexpr uint32_t kDottedI = 0x130;

// The only letter whose small form depends on its place: σ, but ς at the end of a word.
constexpr uint32_t kSigma = 0x3a3;
constexpr size_t kSigmaBytes = 2;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

template <size_t n>
uint32_t moved(const CaseRange (&ranges)[n], uint32_t c) {
  const auto* after = std::upper_bound(
      std::begin(ranges), std::end(ranges), c,
      [](uint32_t character, const CaseRange& range) { return character < range.first; });
  if (after == std::begin(ranges)) return c;
  const CaseRange& range = *std::prev(after);
  if (c > range.last || (c - range.first) % range.step != 0) return c;
  return c + static_cast<uint32_t>(range.distance);
}

bool append_long_capital(std::string& text, uint32_t character) {
  const auto* found = std::lower_bound(
      std::begin(kLongCapitals), std::end(kLongCapitals), character,
      [](const LongCapital& capital, uint32_t c) { return capital.character < c; });
  if (found == std::end(kLongCapitals) || found->character != character) return false;
  for (const uint32_t c : found->capitals) {
    if (c != 0) append_character(text, c);
  }
  return true;
}

std::string_view first_character(std::string_view text) {
  return text.empty() ? text : text.substr(0, n_character_bytes(text[0]));
}

std::string_view last_character(std::string_view text) {
  size_t start = text.size();
  while (start > 0 && is_continuation(text[--start])) {
  }
  return text.substr(start);
}

// Whether a word ends with what ends at byte `i`, a capital sigma.
bool is_final_sigma(std::string_view text, size_t i) {
  return has_case(last_character(text.substr(0, i - kSigmaBytes))) &&
         !has_case(first_character(text.substr(i)));
}

}  // namespace

size_t n_character_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return 1;
  if (byte < 0xe0) return 2;
  return byte < 0xf0 ? 3 : 4;
}

size_t n_characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

uint32_t next_character(std::string_view text, size_t& i) {
  const size_t n = n_character_bytes(text[i]);
  DCHECK(n <= text.size() - i);
  constexpr std::array<uint32_t, 5> kLeadBits = {0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t character = static_cast<unsigned char>(text[i]) & kLeadBits[n];
  for (size_t k = 1; k < n; ++k) {
    character = character << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3f);
  }
  i += n;
  return character;
}

void append_character(std::string& text, uint32_t c) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xc0 | (c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xe0 | (c >> 12));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0 | (c >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::vector<std::string_view> split_characters(std::string_view text) {
  std::vector<std::string_view> characters;
  for (size_t i = 0; i < text.size();) {
    const size_t n = n_character_bytes(text[i]);
    characters.push_back(text.substr(i, n));
    i += n;
  }
  return characters;
}

bool is_space(uint32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

std::string_view strip_left(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    size_t next = i;
    if (!is_space(next_character(text, next))) break;
    i = next;
  }
  return text.substr(i);
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    const std::string_view last = last_character(text);
    size_t i = 0;
    if (!is_space(next_character(last, i))) break;
    text.remove_suffix(last.size());
  }
  return text;
}

std::string to_upper(std::string_view text) {
  std::string upper;
  upper.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = next_character(text, i);
    if (c < 0x80) {
      upper += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    } else if (!append_long_capital(upper, c)) {
      append_character(upper, moved(kUpperRanges, c));
    }
  }
  return upper;
}

std::string to_lower(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = next_character(text, i);
    if (c < 0x80) {
      lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    } else if (c == kDottedI) {
      lower += "i\u0307";
    } else if (c == kSigma) {
      lower += is_final_sigma(text, i) ? "ς" : "σ";
    } else {
      append_character(lower, moved(kLowerRanges, c));
    }
  }
  return lower;
}

bool has_case(std::string_view character) {
  return to_upper(character) != character || to_lower(character) != character;
}

}  // namespace sluice::text::jinja
