// Sets of Unicode characters, and how a range of them looks as bytes of UTF-8. Surrogates are not
// characters and are never in a set.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::text::grammar {

constexpr char32_t kLastCodePoint = 0x10ffff;

struct CodePointRange {
  char32_t first = 0;
  char32_t last = 0;
  friend bool operator==(const CodePointRange&, const CodePointRange&) = default;
};

class CodePointSet {
 public:
  CodePointSet() = default;
  static CodePointSet all();
  // The characters of valid UTF-8.
  static CodePointSet of(std::string_view text);

  CodePointSet& add(char32_t first, char32_t last);
  CodePointSet& add(const CodePointSet& other);
  CodePointSet& remove(const CodePointSet& other);
  CodePointSet negated() const;

  bool contains(char32_t c) const;
  bool empty() const { return ranges_.empty(); }
  size_t size() const;

  // Ascending, apart from each other.
  const std::vector<CodePointRange>& ranges() const { return ranges_; }

 private:
  std::vector<CodePointRange> ranges_;
};

void append_utf8(std::string& text, char32_t c);

// The character at byte `at` of valid UTF-8; moves `at` behind it.
char32_t decode_utf8(std::string_view text, size_t& at);

// Valid UTF-8 as part of a message: on one line, and cut where it is long.
std::string shown(std::string_view text);

struct ByteRange {
  uint8_t first = 0;
  uint8_t last = 0;
};

// One to four byte ranges; the strings that take a byte of each, in turn, are the characters meant.
struct ByteRangeSequence {
  std::array<ByteRange, 4> ranges;
  size_t n_bytes = 0;
};

// The range as byte sequences, none of which overlap.
std::vector<ByteRangeSequence> utf8_sequences(CodePointRange range);

}  // namespace sluice::text::grammar
