// See code_points.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/code_points.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::text::grammar {
namespace {

constexpr char32_t kBeforeSurrogates = 0xd7ff;
constexpr char32_t kAfterSurrogates = 0xe000;

// Puts a range among sorted ones, joined with those it overlaps or touches.
void insert(std::vector<CodePointRange>& ranges, CodePointRange range) {
  const auto begin = std::ranges::lower_bound(ranges, range.first, {},
                                              [](const CodePointRange& r) { return r.last + 1; });
  auto end = begin;
  for (; end != ranges.end() && end->first <= range.last + 1; ++end) {
    range.first = std::min(range.first, end->first);
    range.last = std::max(range.last, end->last);
  }
  ranges.insert(ranges.erase(begin, end), range);
}

size_t encode(char32_t c, std::array<uint8_t, 4>& bytes) {
  const auto tail = [&](int shift) { return static_cast<uint8_t>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    bytes = {static_cast<uint8_t>(c)};
    return 1;
  }
  if (c < 0x800) {
    bytes = {static_cast<uint8_t>(0xc0 | (c >> 6)), tail(0)};
    return 2;
  }
  if (c < 0x10000) {
    bytes = {static_cast<uint8_t>(0xe0 | (c >> 12)), tail(6), tail(0)};
    return 3;
  }
  bytes = {static_cast<uint8_t>(0xf0 | (c >> 18)), tail(12), tail(6), tail(0)};
  return 4;
}

// Splits until all characters of a range have one length and, behind the first byte that differs,
// every continuation byte: then its ends, byte by byte, are the byte ranges.
void split(char32_t first, char32_t last, std::vector<ByteRangeSequence>& out) {
  const auto halves = [&](char32_t end_of_first) {
    split(first, end_of_first, out);
    split(end_of_first + 1, last, out);
  };
  for (const char32_t end : {0x7f, 0x7ff, 0xffff}) {
    if (first <= end && end < last) return halves(end);
  }
  for (int n_tail = 1; n_tail < 4 && last > 0x7f; ++n_tail) {
    const char32_t mask = (char32_t{1} << (6 * n_tail)) - 1;
    if ((first & ~mask) == (last & ~mask)) continue;
    if ((first & mask) != 0) return halves(first | mask);
    if ((last & mask) != mask) return halves((last & ~mask) - 1);
  }
  std::array<uint8_t, 4> low{}, high{};
  ByteRangeSequence sequence;
  sequence.n_bytes = encode(first, low);
  CHECK(encode(last, high) == sequence.n_bytes);
  for (size_t i = 0; i < sequence.n_bytes; ++i) sequence.ranges[i] = {low[i], high[i]};
  out.push_back(sequence);
}

}  // namespace

CodePointSet CodePointSet::all() { return CodePointSet().add(0, kLastCodePoint); }

CodePointSet CodePointSet::of(std::string_view text) {
  CodePointSet set;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = decode_utf8(text, at);
    set.add(c, c);
  }
  return set;
}

CodePointSet& CodePointSet::add(char32_t first, char32_t last) {
  CHECK(first <= last && last <= kLastCodePoint);
  if (first <= kBeforeSurrogates) insert(ranges_, {first, std::min(last, kBeforeSurrogates)});
  if (last >= kAfterSurrogates) insert(ranges_, {std::max(first, kAfterSurrogates), last});
  return *this;
}

CodePointSet& CodePointSet::add(const CodePointSet& other) {
  for (const CodePointRange& range : other.ranges_) insert(ranges_, range);
  return *this;
}

CodePointSet& CodePointSet::remove(const CodePointSet& other) {
  return *this = negated().add(other).negated();
}

CodePointSet CodePointSet::negated() const {
  CodePointSet out;
  char32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (range.first > next) out.add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) out.add(next, kLastCodePoint);
  return out;
}

bool CodePointSet::contains(char32_t c) const {
  return std::ranges::any_of(
      ranges_, [c](const CodePointRange& range) { return range.first <= c && c <= range.last; });
}

size_t CodePointSet::size() const {
  size_t n = 0;
  for (const CodePointRange& range : ranges_) n += range.last - range.first + 1;
  return n;
}

void append_utf8(std::string& text, char32_t c) {
  std::array<uint8_t, 4> bytes{};
  const size_t n = encode(c, bytes);
  for (size_t i = 0; i < n; ++i) text.push_back(static_cast<char>(bytes[i]));
}

char32_t decode_utf8(std::string_view text, size_t& at) {
  const auto lead = static_cast<uint8_t>(text[at]);
  const size_t n = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  CHECK(at + n <= text.size());
  char32_t c = n == 1 ? lead : lead & (0x7f >> n);
  for (size_t i = 1; i < n; ++i) c = c << 6 | (static_cast<uint8_t>(text[at + i]) & 0x3f);
  at += n;
  return c;
}

std::string shown(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (at >= kLongest) return out + "...";
    const char32_t c = decode_utf8(text, at);
    append_utf8(out, c < 0x20 || c == 0x7f ? U'?' : c);
  }
  return out;
}

std::vector<ByteRangeSequence> utf8_sequences(CodePointRange range) {
  std::vector<ByteRangeSequence> out;
  split(range.first, range.last, out);
  return out;
}

}  // namespace sluice::text::grammar
