// See text.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/text.h"

#include <algorithm>

#include "text/jinja/values/operators.h"
#include "text/jinja/values/unicode.h"

namespace sluice::text::jinja {
namespace {

// Nothing stands before, between and after all characters.
Value insert_between(Runtime& runtime, std::string_view text, std::string_view what,
                     size_t n_most) {
  TextBuilder out(runtime);
  size_t n = 0;
  for (size_t i = 0; i < text.size();) {
    if (n++ < n_most) out.add(what);
    const size_t n_bytes = n_character_bytes(text[i]);
    out.add(text.substr(i, n_bytes));
    i += n_bytes;
  }
  if (n < n_most) out.add(what);
  return out.finish();
}

bool ends_line(uint32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

}  // namespace

Value replace_text(Runtime& runtime, std::string_view text, std::string_view from,
                   std::string_view to, size_t n_most) {
  runtime.work(text.size());
  if (from.empty()) return insert_between(runtime, text, to, n_most);
  size_t found = find_text(text, from);
  if (found == std::string_view::npos || n_most == 0) return Value::string(text);
  TextBuilder out(runtime);
  size_t done = 0;
  for (size_t n = 0; found != std::string_view::npos && n < n_most; ++n) {
    out.add(text.substr(done, found - done));
    out.add(to);
    done = found + from.size();
    runtime.work(from.size());  // the search looks at it anew
    found = find_text(text, from, done);
  }
  out.add(text.substr(done));
  return out.finish();
}

std::string_view strip(std::string_view text, Side side) {
  if (side != Side::right) text = strip_left(text);
  return side == Side::left ? text : strip_right(text);
}

std::string_view strip(std::string_view text, std::string_view characters, Side side) {
  std::vector<std::string_view> set = split_characters(characters);
  std::ranges::sort(set);
  const auto in_set = [&](std::string_view c) { return std::ranges::binary_search(set, c); };
  while (side != Side::right && !text.empty()) {
    const size_t n = n_character_bytes(text.front());
    if (!in_set(text.substr(0, n))) break;
    text.remove_prefix(n);
  }
  while (side != Side::left && !text.empty()) {
    size_t n = 1;
    while ((static_cast<unsigned char>(text[text.size() - n]) & 0xc0) == 0x80) ++n;
    if (!in_set(text.substr(text.size() - n))) break;
    text.remove_suffix(n);
  }
  return text;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t end = i;
    const uint32_t c = next_character(text, i);
    if (!ends_line(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(begin, (keep_ends ? i : end) - begin));
    begin = i;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

size_t find_last_text(std::string_view text, std::string_view part) {
  const std::string reversed(text.rbegin(), text.rend());
  const size_t found = find_text(reversed, std::string(part.rbegin(), part.rend()));
  return found == std::string_view::npos ? found : text.size() - found - part.size();
}

std::string capitalized(std::string_view text) {
  if (text.empty()) return {};
  const size_t n = n_character_bytes(text.front());
  return to_upper(text.substr(0, n)) + to_lower(text.substr(n));
}

Value padded(Runtime& runtime, std::string_view text, Side filled, int64_t width,
             std::string_view fill) {
  const auto n = static_cast<int64_t>(n_characters(text));
  if (width <= n) return Value::string(text);
  const int64_t missing = width - n;
  int64_t left = filled == Side::left ? missing : 0;
  if (filled == Side::both) left = missing / 2 + (missing & width & 1);  // as Python rounds
  TextBuilder out(runtime);
  out.repeat(fill, static_cast<size_t>(left));
  out.add(text);
  out.repeat(fill, static_cast<size_t>(missing - left));
  return out.finish();
}

}  // namespace sluice::text::jinja
