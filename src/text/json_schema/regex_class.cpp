// See regex_class.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/json_schema/regex_class.h"

#include "base/error.h"

namespace sluice::text::grammar {
namespace {

CodePointSet digits() { return CodePointSet().add('0', '9'); }

CodePointSet word_characters() { return digits().add('a', 'z').add('A', 'Z').add('_', '_'); }

// ECMAScript's WhiteSpace and LineTerminator.
CodePointSet spaces() {
  return CodePointSet::of(" \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff")
      .add('\t', '\r')
      .add(0x2000, 0x200a);
}

CodePointSet only(char32_t c) { return CodePointSet().add(c, c); }

bool is_surrogate(char32_t c) { return c >= 0xd800 && c <= 0xdfff; }

// What follows \u: four digits, a pair of such escapes, or any number in braces.
char32_t take_unicode(RegexScanner& scan) {
  char32_t value = 0;
  if (scan.take('{')) {
    do {
      value = value << 4 | scan.take_hex(1);
      if (value > kLastCodePoint) scan.refuse("an escape above U+10FFFF");
    } while (!scan.take('}'));
  } else {
    value = scan.take_hex(4);
    if (value >= 0xd800 && value < 0xdc00 && scan.peek() == '\\' && scan.peek(1) == 'u') {
      scan.take('\\');
      scan.take('u');
      const char32_t low = scan.take_hex(4);
      if (low < 0xdc00 || low > 0xdfff) scan.refuse("half of a surrogate pair");
      value = 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00);
    }
  }
  if (is_surrogate(value)) scan.refuse("half of a surrogate pair");
  return value;
}

// Behind the backslash.
CodePointSet take_escape(RegexScanner& scan, bool in_class) {
  if (scan.at_end()) scan.refuse("a backslash at the end");
  const char32_t c = scan.take_character();
  switch (c) {
    case 'd':
      return digits();
    case 'D':
      return digits().negated();
    case 'w':
      return word_characters();
    case 'W':
      return word_characters().negated();
    case 's':
      return spaces();
    case 'S':
      return spaces().negated();
    case 't':
      return only('\t');
    case 'n':
      return only('\n');
    case 'v':
      return only('\v');
    case 'f':
      return only('\f');
    case 'r':
      return only('\r');
    case 'x':
      return only(scan.take_hex(2));
    case 'u':
      return only(take_unicode(scan));
    default:
      break;
  }
  if (c == 'b' && in_class) return only('\b');
  if (c == '0' && (scan.peek() < '0' || scan.peek() > '9')) return only(0);
  const bool is_mark =
      std::string_view("^$\\.*+?()[]{}|/-").find(static_cast<char>(c)) != std::string_view::npos;
  if (c > 0x7f || !is_mark) {
    std::string name;
    append_utf8(name, c);
    scan.refuse(cat("\\", shown(name), ", which is not supported"));
  }
  return only(c);
}

CodePointSet take_class(RegexScanner& scan) {
  const bool negated = scan.take('^');
  CodePointSet set;
  const auto take_part = [&] {
    return scan.take('\\') ? take_escape(scan, true) : only(scan.take_character());
  };
  while (!scan.take(']')) {
    if (scan.at_end()) scan.refuse("a class without its ]");
    const CodePointSet first = take_part();
    if (scan.peek() != '-' || scan.peek(1) == ']') {
      set.add(first);
      continue;
    }
    scan.take('-');
    if (scan.at_end()) scan.refuse("a class without its ]");
    const CodePointSet last = take_part();
    if (first.size() != 1 || last.size() != 1) scan.refuse("a range between classes");
    const char32_t low = first.ranges()[0].first, high = last.ranges()[0].first;
    if (low > high) scan.refuse("a range that runs backwards");
    set.add(low, high);
  }
  return negated ? set.negated() : set;
}

}  // namespace

char32_t RegexScanner::take_character() { return decode_utf8(pattern_, at_); }

char32_t RegexScanner::take_hex(int n_digits) {
  char32_t value = 0;
  for (int i = 0; i < n_digits; ++i) {
    const char c = peek();
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) refuse("an escape without its hexadecimal digits");
    value = value << 4 | static_cast<char32_t>(digit);
    ++at_;
  }
  return value;
}

void RegexScanner::refuse(const std::string& found) const {
  throw Error(Errc::bad_request,
              cat("pattern ", shown(pattern_), ": found, ", at_, " bytes in, ", found));
}

CodePointSet take_character_set(RegexScanner& scan) {
  if (scan.take('[')) return take_class(scan);
  if (scan.take('\\')) return take_escape(scan, false);
  if (scan.take('.')) return CodePointSet::of("\n\r\u2028\u2029").negated();
  return only(scan.take_character());
}

}  // namespace sluice::text::grammar
